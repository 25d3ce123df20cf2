"""The server process: a socket, an address with a token, and an orderly end."""

import secrets
import socket
import threading
from collections.abc import Callable

import uvicorn

from lsdc.errors import InputError
from lsdc.explore.api import build
from lsdc.explore.guard import Guard, hosts_of
from lsdc.explore.session import Session


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound; port 0 is any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--host {host} --port {port}: cannot listen there ({why}); choose another port") from None
    return found


def serve(session: Session, host: str, port: int, opened: Callable[[str], None]) -> None:
    """Answer until Ctrl-C; ``opened`` is told the address as soon as there is one."""
    bound = listening(host, port)
    port, token = bound.getsockname()[1], secrets.token_urlsafe(24)
    app = Guard(build(session), hosts_of(host), port, token)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    threading.Thread(target=session.work, daemon=True).start()
    name = hosts_of(host)[-1] if host not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104 (only compared)
    opened(f"http://{name}:{port}/?token={token}")
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()
