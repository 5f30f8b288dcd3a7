"""Guard: who may ask, how much may be sent, and what browsers must forbid; around the whole app.

A page anywhere in the web can send requests to this machine, and can even give its own name this machine's address.
So a request must name a host that we are known by, and one that may change something must come from our own page.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer says to browsers."""

_SAFE = ("GET", "HEAD")


class Guard:
    """Lets through what is harmless, and answers the rest with a sentence."""

    def __init__(self, app: ASGIApp, *, most_bytes: int, hosts: Collection[str] | None = None) -> None:
        """`hosts` are the names that we are known by, without ports; None stands for any."""
        self._app, self._most, self._hosts = app, most_bytes, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            status, sentence = refused
            await JSONResponse({"error": sentence, "fit": False}, status)(scope, receive, answer)
        else:
            await self._app(scope, _counted(receive, self._most), answer)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the sentence for a request that is not let through."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts is not None and hostname(host) not in self._hosts:
            return 421, f"this server is not known as {host!r:.100}; use the address that it printed when it started"
        if scope["method"] not in _SAFE:
            origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
            ours = origin is None or origin == f"{scope['scheme']}://{host}"
            if not ours or site not in ("same-origin", "none"):
                return 403, "a page from elsewhere asked for this; use this server's own page, or a program"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most:
            return 413, too_large(self._most)
        return None


def hostname(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdecimal() or not port) else host).lower()


def too_large(most: int) -> str:
    """What is said of a request with too many bytes."""
    return f"the request has more than {most >> 20} MiB; send a smaller picture"


def _counted(receive: Receive, most: int) -> Receive:
    """The same stream, which ends with an error as soon as there is too much of it: lengths can be lied about."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, too_large(most))
        return message

    return counted
