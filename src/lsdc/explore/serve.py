"""The server: a socket, an address with a token, and a clean shutdown."""

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
    """A bound socket; port 0 picks a free one."""
    found = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        if found is not None:
            found.close()
        why = (error.strerror or str(error)).lower()
        raise InputError(
            f"cannot listen on {host}:{port} ({why}); choose another port, or 0 for a free one", "port"
        ) from None
    return found


def server_on(bound: socket.socket, host: str, session: Session) -> tuple[uvicorn.Server, str]:
    """A server for a socket, and the address of its page with the token in it."""
    port, token = bound.getsockname()[1], secrets.token_urlsafe(24)
    config = uvicorn.Config(
        Guard(build(session), hosts_of(host), port, token),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    everywhere = host in ("0.0.0.0", "::")  # noqa: S104 (only compared)
    name = "127.0.0.1" if everywhere else hosts_of(host)[-1]
    return uvicorn.Server(config), f"http://{name}:{port}/?token={token}"


def serve(session: Session, host: str, port: int, opened: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; ``opened`` is called with the address once there is one."""
    bound = listening(host, port)
    try:
        server, address = server_on(bound, host, session)
        threading.Thread(target=session.work, daemon=True).start()
        opened(address)
        server.run(sockets=[bound])
    finally:
        bound.close()
