"""Access control of the explorer: only the person who started it, and no other page in their browser."""

import hmac
import ipaddress
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_BODY = 2**24
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NOT_YOURS = (
    "This page belongs to the person who started lsdc explore. Open the address that the command printed, "
    "with its token."
)


class Guard:
    """Checks host, origin and token of every request, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], port: int, token: str) -> None:
        self.app, self.port, self.token = app, port, token
        self.hosts = set(hosts)
        self.cookie = f"lsdc-{port}"  # cookies ignore ports, and two explorers may be open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if self._has_token_in_address(scope):
                    headers["Set-Cookie"] = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, receive, safely)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if not self._is_ours(headers.get("host", "")):
            return PlainTextResponse("this host name does not belong to the explorer\n", 403)  # DNS rebinding
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return PlainTextResponse("requests from other pages are not answered\n", 403)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and scope["path"] != "/":
            return PlainTextResponse("requests from other pages are not answered\n", 403)
        if not (self._has_token_in_address(scope) or self._has_token(headers)):
            return PlainTextResponse(NOT_YOURS + "\n", 403)
        if scope["method"] not in ("GET", "HEAD"):
            length = headers.get("content-length", "")
            if not length.isdecimal():
                return PlainTextResponse("the length of the request is missing\n", 411)
            if int(length[:20]) > LONGEST_BODY:
                return PlainTextResponse("the request is too long; change fewer samples at a time\n", 413)
        return None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        return name in self.hosts or ("*" in self.hosts and _is_address(name))

    def _has_token_in_address(self, scope: Scope) -> bool:
        """Whether this is the address that was printed, with the token in it."""
        if scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return self._same(given)

    def _has_token(self, headers: Headers) -> bool:
        """Whether the token is in the cookie or, for scripts, in the header ``Authorization: Bearer``."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind == "Bearer" and self._same(given):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return cookie is not None and self._same(cookie.value)

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _is_address(name: str) -> bool:
    """Whether a host is an IP address, which no foreign name server can point elsewhere."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def hosts_of(host: str) -> list[str]:
    """The host names of a server on this host; on all interfaces, any IP address."""
    loopback = ["127.0.0.1", "localhost", "[::1]"]
    if host in ("0.0.0.0", "::"):  # noqa: S104 (only compared)
        return [*loopback, socket.gethostname(), "*"]
    return [*loopback, f"[{host}]" if ":" in host else host]
