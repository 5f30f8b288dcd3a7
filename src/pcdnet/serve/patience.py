"""Patience: how long a connection may keep the server waiting or reading, which uvicorn itself does for ever.

The head of a request, its body and the taking of its answer each have their time. Whoever needs longer is cut off, and
so is who sends what takes longer to read than to send.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pcdnet.serve.access import client_at
from pcdnet.serve.limits import (
    HEAD_BYTES,
    LEAST_CHUNK,
    LEAST_RATE,
    MOST_BYTES,
    MOST_CHUNKS,
    MOST_CONNECTIONS,
    MOST_HEADERS,
    PATIENCE,
)

Phase = Literal["head", "body"]
_BLANK_LINE = re.compile(rb"\n\r?\n")


class TerseConnection(h11.Connection):
    """One side of HTTP that reads no endless heads, and no bodies in crumbs: every header and every chunk takes time.

    h11 itself limits heads that are not complete yet, and so none that comes in one packet.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, HEAD_BYTES)
        self._chunks = self._bytes = 0

    def next_event(self) -> Any:
        """The next part of a request, if reading it is not too much."""
        if self.their_state is h11.IDLE:
            self._check_head(self.trailing_data[0])
        try:
            event = super().next_event()
        except ValueError:  # of a length of thousands of digits
            raise h11.RemoteProtocolError("the length is no number") from None
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                # A proxy in front may think that another request begins where we think that it does not.
                raise h11.RemoteProtocolError("there are two lengths")
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > MOST_CHUNKS + self._bytes // LEAST_CHUNK:
                raise h11.RemoteProtocolError("the body comes in crumbs")
        return event

    @staticmethod
    def _check_head(received: bytes) -> None:
        end = found.end() if (found := _BLANK_LINE.search(received)) else len(received)
        if end > HEAD_BYTES or received.count(b"\n", 0, end) > MOST_HEADERS:
            raise h11.RemoteProtocolError("the head is too large", error_status_hint=431)


class PatientProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, with an end to every wait for the client."""

    patience = PATIENCE

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = TerseConnection()
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        self._began = self._last = 0.0
        self._received = self._answered = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._phase = None
        for timer in (self._timer, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        self._last = self.loop.time()
        for start in range(0, len(data), HEAD_BYTES):  # h11 limits what is incomplete, and so none that comes at once
            if not self.transport.is_closing():
                super().data_received(data[start : start + HEAD_BYTES])
        self._watch()
        answered = self.cycle is not None and self.cycle.response_complete
        if self._phase == "body" and answered and self._received > 2 * MOST_BYTES:
            self.transport.abort()  # it was refused, and goes on all the same

    def on_response_complete(self) -> None:
        self._answered += 1
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def send_400_response(self, msg: str) -> None:
        """Cut off who does not speak HTTP; whoever has no answer yet is told why."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            problem = "the request is no HTTP, too much of it, or in too small pieces"
            self._complain(400, f"{problem}; send what /openapi.json describes")
        self.transport.close()

    def shutdown(self) -> None:
        """End: whoever has not sent a whole request, or does not take the answer, is cut off."""
        if self._phase == "body" or self._taking is not None:
            self.transport.abort()
        else:
            super().shutdown()

    def _watch(self) -> None:
        """Start the clock when something else is waited for than before."""
        states: dict[Any, Phase] = {h11.IDLE: "head", h11.SEND_BODY: "body"}
        phase = None if self.transport.is_closing() else states.get(self.conn.their_state)
        if phase == self._phase:
            return
        self._phase = phase
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if phase is not None:
            self._began = self._last = self.loop.time()
            self._received = 0
            self._timer = self.loop.call_later(self.patience, self._late)

    def _late(self) -> None:
        """Cut the client off, unless a body came in as quickly as it should."""
        due = self._began + self.patience
        if self._phase == "body":
            due = min(self._last + self.patience, due + self._received / LEAST_RATE)
        if (left := due - self.loop.time()) > 0.001:
            self._timer = self.loop.call_later(left, self._late)
            return
        begun = self._phase == "body" or self._received > 0
        if begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._complain(408, f"the request was not sent within {self.patience:g} seconds; send it at once")
        if self.flow.write_paused:
            self.transport.abort()
        else:
            self.transport.close()

    def _complain(self, status: int, sentence: str) -> None:
        body = json.dumps({"error": sentence, "fit": False}).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", f"{len(body)}"), ("Connection", "close")]
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # what the app would answer now, nobody wants
            self.cycle.message_event.set()

    def _make_room(self) -> None:
        """Close the connection that has been waited for longest, of the client that is waited for at most of them.

        First of those that never asked for anything, then of those that do not take their answers.
        """
        # Connections that are closed stay in the list for a moment, in which many others may come.
        others = [one for one in self.connections if isinstance(one, PatientProtocol) and one is not self]
        others = [one for one in others if not one.transport.is_closing()]
        if len(others) < MOST_CONNECTIONS:
            return
        waited_for = [one for one in others if one._phase is not None or one._taking is not None]
        often = Counter(one._address for one in waited_for)
        most = max(often.values(), default=0)
        greedy = (one for one in waited_for if often[one._address] == most)
        min(greedy, key=PatientProtocol._use, default=self).transport.abort()

    @property
    def _address(self) -> str:
        return client_at(self.client[0] if self.client else "")

    def _use(self) -> tuple[int, float]:
        """How much would be lost with this connection."""
        if self._taking is not None:
            return 1, self._taking.when()
        return 2 if self._answered else 0, self._began
