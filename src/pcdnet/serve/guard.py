"""Guard: who may ask, how much may be sent, and what browsers must forbid; around the whole app.

A page anywhere in the web can send requests to this machine, and can even give its own name this machine's address.
So a request must name a host that we are known by, and one that may change something must come from our own page.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pcdnet.serve.access import LOCAL_HOSTS, Token, client_at, is_known
from pcdnet.serve.desk import CLIENT
from pcdnet.serve.limits import HELD_BYTES, SMALL_BYTES, in_words, most_bytes
from pcdnet.serve.refusal import Refusal, too_busy

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

LONGEST_LENGTH = 15
"""Digits of a Content-Length that is looked at."""

_SAFE = ("GET", "HEAD")


@dataclass(slots=True)
class Purse:
    """How many bytes requests and answers hold together."""

    held: int = 0


class Guard:
    """Lets through what is harmless, and answers the rest with a sentence."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: frozenset[str] = LOCAL_HOSTS,
        token: Token | None = None,
        purse: Purse | None = None,
    ) -> None:
        """`hosts` are the names that we are known by, without ports; guards of one server have one `purse`."""
        self._app, self._hosts, self._token = app, hosts, token
        self._purse = purse or Purse()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        CLIENT.set(client_at((scope.get("client") or ("",))[0]))
        extra = dict(HEADERS)
        if self._token is not None and self._token.opens(scope):
            extra["Set-Cookie"] = self._token.cookie(scope)
        tally = _Tally(self, _most(scope), asks=scope["method"] in _SAFE)
        # All files are small: they are sent whole, which a request for a part allows, however odd it is.
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"range"]}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in extra.items():
                    if name != "Cache-Control" or "private" not in headers.get(name, ""):
                        headers[name] = value
            await tally.send(message, send)

        try:
            refused = self._refusal(scope, opened="Set-Cookie" in extra)
            if refused is not None:
                await _complaint(refused)(scope, receive, answer)
            else:
                await self._app(scope, lambda: tally.receive(receive), answer)
        finally:
            tally.end()

    def hold(self, change: int) -> None:
        """Note that so many bytes more, or less, are in memory."""
        self._purse.held += change

    @property
    def full(self) -> bool:
        """Whether requests and answers hold as many bytes as they may."""
        return self._purse.held > HELD_BYTES

    def _refusal(self, scope: Scope, *, opened: bool) -> Refusal | None:
        """Why a request is not let through."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not is_known(scope, self._hosts):
            cure = "use the address that it printed when it started, or start it with --allow-host"
            return Refusal(421, f"this server is not known as {host!r:.100}; {cure}")
        if self._token is not None and not opened and not self._token.fits(scope):
            cure = "open the address that it printed when it started, or send Authorization: Bearer TOKEN"
            return Refusal(401, f"this server answers only those who have its token; {cure}")
        if scope["method"] not in _SAFE:
            origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
            # There may be a proxy in front of us that speaks HTTPS.
            ours = origin is None or origin in (f"http://{host}", f"https://{host}")
            if not ours or site not in ("same-origin", "none"):
                return Refusal(403, "a page from elsewhere asked for this; use this server's own page, or a program")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > LONGEST_LENGTH or int(length) > _most(scope):
            return too_large(_most(scope))
        return None


def too_large(most: int) -> Refusal:
    """What is said of a request with too many bytes."""
    return Refusal(413, f"the request has more than {in_words(most)}; send a smaller picture, or send it as a file")


class _Tally:
    """The bytes of one request and its answer: lengths can be lied about."""

    def __init__(self, guard: Guard, most: int, *, asks: bool = False) -> None:
        """A request that only asks for something needs no body: what comes of one is not looked at."""
        self._guard, self._most, self._asks = guard, most, asks
        self._seen = self._held = 0
        self._answering = False

    async def receive(self, receive: Receive) -> Message:
        """The next part of the request, which ends with an error as soon as there is too much of it.

        Once an answer has begun, there can be no other: then the client counts as gone.
        """
        message = await receive()
        self._seen += len(message.get("body", b""))
        large = self._seen > self._most
        if large and self._asks:  # whoever waits for the client to go away has nothing to complain of
            await asyncio.Future()
        if large and self._answering:
            return {"type": "http.disconnect"}
        if large:
            raise too_large(self._most)
        self._hold(max(0, self._seen - SMALL_BYTES))
        if self._guard.full and self._seen > SMALL_BYTES and not self._answering:
            raise too_busy()
        return message

    async def send(self, message: Message, send: Send) -> None:
        """Send a part of the answer, piece by piece: it is held until all of it is taken."""
        self._answering = True
        body = message.get("body", b"")
        if len(body) <= SMALL_BYTES:
            await send(message)
            return
        self._hold(self._held + len(body) - SMALL_BYTES)
        for start in range(0, len(body), SMALL_BYTES):
            more = message.get("more_body", False) or start + SMALL_BYTES < len(body)
            await send({**message, "body": body[start : start + SMALL_BYTES], "more_body": more})
            await asyncio.sleep(0)  # others have their turn, and it is noticed if the client is gone

    def end(self) -> None:
        """The answer is sent, or nobody wants it."""
        self._hold(0)

    def _hold(self, size: int) -> None:
        self._guard.hold(size - self._held)
        self._held = size


def _most(scope: Scope) -> int:
    kind = Headers(scope=scope).get("content-type", "")
    return most_bytes(scope["path"], kind.partition(";")[0].strip().lower())


def _complaint(refused: Refusal) -> JSONResponse:
    headers = {**refused.headers, **({"WWW-Authenticate": "Bearer"} if refused.status == 401 else {})}
    return JSONResponse({"error": str(refused), "fit": False}, refused.status, headers)
