"""Desk: all work with the model, some requests at a time, while others wait their turn.

Quick requests and large ones wait in queues of their own and are done by threads of their own, so that nobody with a
small picture waits for a large one. In a queue the clients, told apart by their addresses, have their turns one after
the other, however many requests each has. A queue has an end. Who has gone away is not worked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeAlias, TypeVar

import torch
from starlette.types import Receive

from pcdnet.serve.limits import ENDING, MOST_WAITING
from pcdnet.serve.refusal import Refusal, too_busy

T = TypeVar("T")
Left: TypeAlias = "asyncio.Future[NoReturn]"
"""Fails when there is nobody to answer any more, or nobody who will."""


CLIENT: ContextVar[str] = ContextVar("client", default="")
"""Who asks for what is worked on, as `access.client_at` tells; the guard sets it for every request."""


class Gone(Exception):
    """The client has closed its connection."""


@dataclass(frozen=True, slots=True)
class Large(Generic[T]):
    """Work that turned out to be large, to be done among its like."""

    work: Callable[[], T]


class Desk:
    """The queues, and who works them off."""

    def __init__(self, threads: int) -> None:
        """`threads` work on quick requests, and half as many on large ones.

        In each, operations take one core: with two, a request took more processor time (ARCHITECTURE.md has figures).
        """
        self._quick, self._large = Lane("quick", threads), Lane("large", max(1, threads // 2))
        self._lefts: set[Left] = set()
        self._ending = False

    async def do(self, work: Callable[[], T | Large[T]], receive: Receive) -> T:
        """Wait for a turn, then for the work; work that is `Large` waits once more.

        `receive` is that of a request whose body has been read: all that can still come is that the client leaves.
        """
        if self._ending:
            raise _ended()
        with self._watched(receive) as left:
            answer = await self._quick.do(work, left)
            return await self._large.do(answer.work, left) if isinstance(answer, Large) else answer

    @property
    def idle(self) -> bool:
        """Whether no thread is at work."""
        return self._quick.idle and self._large.idle

    async def close(self) -> None:
        """Send away who waits, at once, and who is worked for, if that takes long."""
        self._ending = True
        for lane in (self._quick, self._large):
            lane.clear(_ended)
        loop = asyncio.get_running_loop()
        end = loop.time() + ENDING
        while not self.idle and loop.time() < end:
            await asyncio.sleep(0.02)
        for left in self._lefts:
            if not left.done():
                left.set_exception(_ended())

    @contextmanager
    def _watched(self, receive: Receive) -> Iterator[Left]:
        """Whether there is still somebody to answer."""
        left: Left = asyncio.get_running_loop().create_future()

        async def watch() -> None:
            reason: Exception = Gone()
            try:
                while (await receive())["type"] != "http.disconnect":
                    pass
            except Refusal as refused:  # of a body that nobody asked for
                reason = refused
            if not left.done():
                left.set_exception(reason)

        watching = asyncio.ensure_future(watch())
        self._lefts.add(left)
        try:
            yield left
        finally:
            self._lefts.discard(left)
            watching.cancel()
            if left.done():
                left.exception()  # or asyncio complains that nobody looked
            else:
                left.cancel()


class Lane:
    """A queue, and the threads that work it off."""

    def __init__(self, name: str, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, f"pcdnet-{name}", initializer=torch.set_num_threads, initargs=(1,))
        self._threads = self._free = threads
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by client; the first one is the next

    @property
    def idle(self) -> bool:
        """Whether none of the threads is at work."""
        return self._free == self._threads

    async def do(self, work: Callable[[], T], left: Left) -> T:
        """Wait for a thread, then for the work, but for neither if nobody wants the answer any more.

        When too many wait, the last request of the client that has most of them is sent away.
        """
        loop = asyncio.get_running_loop()
        if self._free:
            self._free -= 1
        else:
            if sum(map(len, self._waiting.values())) >= MOST_WAITING:
                self._make_room()
            await self._turn(loop.create_future(), left)
        answer = loop.run_in_executor(self._pool, work)
        # A thread cannot be interrupted: it is free when the work is done, whoever waits for that.
        answer.add_done_callback(self._done)
        return await _unless(left, answer)

    def clear(self, reason: Callable[[], Exception]) -> None:
        """Send away all who wait."""
        while self._waiting:
            for turn in self._waiting.popitem()[1]:
                turn.set_exception(reason())

    def _make_room(self) -> None:
        """Send away the last request of the client that has most, unless that is the one who comes, too."""
        turns = max(self._waiting.values(), key=len)
        if len(turns) <= len(self._waiting.get(CLIENT.get(), ())) + 1:
            raise too_busy()
        turns.pop().set_exception(too_busy())

    async def _turn(self, turn: asyncio.Future[None], left: Left) -> None:
        client = CLIENT.get()
        self._waiting.setdefault(client, deque()).append(turn)
        try:
            await _unless(left, turn)
        except BaseException:
            if turn in (turns := self._waiting.get(client, deque())):
                turns.remove(turn)
                if not turns:
                    del self._waiting[client]
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._next()  # it came too late
            raise

    def _done(self, answer: asyncio.Future[T]) -> None:
        if not answer.cancelled():
            answer.exception()  # or asyncio complains of what nobody waited for
        self._next()

    def _next(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        client = next(iter(self._waiting))
        turns = self._waiting.pop(client)
        turns.popleft().set_result(None)
        if turns:
            self._waiting[client] = turns  # after all others


async def _unless(left: Left, awaited: asyncio.Future[T]) -> T:
    """What is awaited, or why it is not."""
    await asyncio.wait((left, awaited), return_when=asyncio.FIRST_COMPLETED)
    return left.result() if left.done() else awaited.result()


def _ended() -> Refusal:
    return Refusal(503, "the server is being stopped; ask again when it is back")
