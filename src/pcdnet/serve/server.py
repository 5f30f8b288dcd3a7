"""Server: an app on an address of this machine."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from pcdnet.errors import PcdnetError, Setting
from pcdnet.serve.desk import Desk
from pcdnet.serve.patience import PatientProtocol

if TYPE_CHECKING:
    from pcdnet.serve.gallery import Gallery

NEARBY = 100
"""Ports that are tried to offer another one."""
LAST_WORDS = 0.2
"""Seconds that answers have to be taken when the server ends."""


def bind(host: str, port: int) -> socket.socket:
    """Take an address; a port that is taken already is refused with the next that is free. 0 takes any."""
    if not 0 <= port <= 65535:
        raise PcdnetError(f"the port {port} does not exist; use one of 1024 to 65535")
    cure: tuple[str | Setting, ...] = ("use ", Setting("host", "127.0.0.1"))
    try:
        return _bound(host, port)
    except socket.gaierror:
        problem = f"the host {host!r} is no address of this machine"
    except OSError as error:
        problem = f"cannot serve on {host!r}: {os.strerror(error.errno or 0)}"
        if error.errno == errno.EADDRINUSE:
            free = _free(host, port)
            problem = f"port {port} is in use"
            cure = ("use ", Setting("port", free), ", which is free") if free else ("use another ", Setting("port"))
        elif error.errno == errno.EACCES:
            problem, cure = f"port {port} is not for every user", ("use 1024 or more as ", Setting("port"))
    raise PcdnetError(f"{problem}; ", *cure)


def address(bound: socket.socket) -> str:
    """The address of a server's page, as a browser on this machine wants it."""
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """A server that ends on Ctrl-C and SIGTERM alike: soon, quietly and with success, whoever is waiting."""

    def __init__(self, config: uvicorn.Config, desk: Desk, end: Callable[[], None]) -> None:
        """`end` ends what goes on in the background."""
        super().__init__(config)
        self._desk, self._end = desk, end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; who is waiting gets an answer that says so, if he takes it at once."""
        closing = asyncio.ensure_future(self._close())
        await super().shutdown(sockets)
        await closing

    async def _close(self) -> None:
        ending = asyncio.get_running_loop().run_in_executor(None, self._end)
        await self._desk.close()
        await ending
        await asyncio.sleep(LAST_WORDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server and nothing else; uvicorn's own raises them again when it has ended."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def make_server(app: FastAPI | Gallery) -> Server:
    """A server for the app: `run(sockets=[...])` works until it is asked to end."""
    # Or every stranger could fill the disk with warnings of what he sent, here and below.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who is not behind a proxy must not believe what strangers say of one
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=3,
    )
    return Server(config, app.state.desk, app.state.close)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    taken = socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=both)
    # Connections inherit it: without it the end of every answer waits some 40 ms for an acknowledgement.
    taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return taken


def _free(host: str, port: int) -> int | None:
    """The next port that could be taken."""
    for other in range(port + 1, min(port + NEARBY, 65536)):
        with suppress(OSError):
            _bound(host, other).close()
            return other
    return None
