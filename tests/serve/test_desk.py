"""Laws of the desk: queues have an end, nobody works for who has gone, and the end comes soon."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest

from pcdnet.serve import desk as module
from pcdnet.serve.desk import CLIENT, Desk, Gone, Large
from pcdnet.serve.refusal import Refusal

Message = dict[str, Any]


async def stays() -> Message:
    """What a client sends who waits."""
    await asyncio.Event().wait()
    raise AssertionError


def leaves(when: asyncio.Event) -> Callable[[], Awaitable[Message]]:
    """What a client sends who goes away at some time."""

    async def receive() -> Message:
        await when.wait()
        return {"type": "http.disconnect"}

    return receive


def run(law: Callable[[Desk, threading.Event], Awaitable[None]], threads: int = 1) -> None:
    """Try a law on a desk; the event lets work that waits for it go on."""

    async def tried() -> None:
        desk, event = Desk(threads), threading.Event()
        try:
            await asyncio.wait_for(law(desk, event), 10)
        finally:
            event.set()

    asyncio.run(tried())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that comes soon."""
    while not condition():
        await asyncio.sleep(0.001)


def test_who_finds_the_queue_full_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)

    async def law(desk: Desk, event: threading.Event) -> None:
        waiting = [asyncio.ensure_future(desk.do(lambda: event.wait(5), stays)) for _ in range(3)]
        await asyncio.sleep(0.01)
        with pytest.raises(Refusal, match="ask again in 2 seconds") as refused:
            await desk.do(lambda: None, stays)
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "2"})
        event.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        assert await desk.do(lambda: "again", stays) == "again"

    run(law)


def test_work_for_who_has_gone_is_not_begun() -> None:
    async def law(desk: Desk, event: threading.Event) -> None:
        done: list[str] = []
        gone = asyncio.Event()
        first = asyncio.ensure_future(desk.do(lambda: event.wait(5), stays))
        second = asyncio.ensure_future(desk.do(lambda: done.append("second"), leaves(gone)))
        third = asyncio.ensure_future(desk.do(lambda: done.append("third"), stays))
        await asyncio.sleep(0.01)
        gone.set()
        with pytest.raises(Gone):
            await second
        event.set()
        await asyncio.gather(first, third)
        assert done == ["third"]

    run(law)


def test_a_thread_whose_client_has_gone_is_free_when_its_work_is_done() -> None:
    async def law(desk: Desk, event: threading.Event) -> None:
        gone, done = asyncio.Event(), threading.Event()

        def fails() -> None:
            event.wait(5)
            done.set()
            raise ValueError("nobody hears this")

        first = asyncio.ensure_future(desk.do(fails, leaves(gone)))
        await asyncio.sleep(0.01)
        gone.set()
        with pytest.raises(Gone):
            await first
        second = asyncio.ensure_future(desk.do(done.is_set, stays))
        await asyncio.sleep(0.02)
        assert not second.done()
        assert not desk.idle
        event.set()
        assert await second
        await until(lambda: desk.idle)

    run(law)


def asked_by(client: str, asked: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A request of somebody."""
    context = copy_context()
    context.run(CLIENT.set, client)
    return asyncio.get_running_loop().create_task(asked, context=context)


def test_clients_have_their_turns_one_after_the_other_however_much_each_asks_for() -> None:
    async def law(desk: Desk, event: threading.Event) -> None:
        done: list[str] = []
        held = asyncio.ensure_future(desk.do(lambda: event.wait(5), stays))
        await asyncio.sleep(0.01)
        waiting = []
        for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
            waiting.append(asked_by(name[0], desk.do(partial(done.append, name), stays)))
            await asyncio.sleep(0.001)
        event.set()
        await asyncio.gather(held, *waiting)
        assert done == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
        await until(lambda: desk.idle)

    run(law)


def test_a_full_queue_of_one_client_has_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 4)

    async def law(desk: Desk, event: threading.Event) -> None:
        held = asyncio.ensure_future(desk.do(lambda: event.wait(5), stays))
        await asyncio.sleep(0.01)
        greedy = [asked_by("a", desk.do(lambda n=n: n, stays)) for n in range(4)]  # type: ignore[misc]
        await asyncio.sleep(0.01)
        modest = [asked_by(name, desk.do(lambda: "done", stays)) for name in "bc"]
        await asyncio.sleep(0.01)
        assert [one.done() for one in greedy] == [False, False, True, True]
        assert [isinstance(one.exception(), Refusal) for one in greedy[2:]] == [True] * 2
        with pytest.raises(Refusal, match="too many requests are waiting"):
            await asked_by("b", desk.do(lambda: None, stays))  # it would have as many as the greedy one
        event.set()
        assert await asyncio.gather(held, *greedy[:2], *modest) == [True, 0, 1, "done", "done"]
        await until(lambda: desk.idle)

    run(law)


def test_who_leaves_the_queue_leaves_nothing_there() -> None:
    async def law(desk: Desk, event: threading.Event) -> None:
        gone = asyncio.Event()
        held = asyncio.ensure_future(desk.do(lambda: event.wait(5), stays))
        await asyncio.sleep(0.01)
        left = [asked_by("a", desk.do(lambda: None, leaves(gone))) for _ in range(3)]
        await asyncio.sleep(0.01)
        gone.set()
        assert [type(each) for each in await asyncio.gather(*left, return_exceptions=True)] == [Gone] * 3
        event.set()
        await held
        assert await desk.do(lambda: "again", stays) == "again"
        await until(lambda: desk.idle)

    run(law)


def test_quick_work_does_not_wait_for_large_work() -> None:
    async def law(desk: Desk, event: threading.Event) -> None:
        def work() -> bool | Large[bool]:
            return Large(lambda: event.wait(5))

        large = [asyncio.ensure_future(desk.do(work, stays)) for _ in range(4)]
        await asyncio.sleep(0.01)
        assert await asyncio.wait_for(desk.do(lambda: "quick", stays), 1) == "quick"
        event.set()
        assert await asyncio.gather(*large) == [True] * 4

    run(law)


def test_at_the_end_everybody_gets_an_answer_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENDING", 0.1)

    async def law(desk: Desk, event: threading.Event) -> None:
        begun: list[int] = []

        def work(n: int) -> None:
            begun.append(n)
            event.wait(5)

        waiting = [asyncio.ensure_future(desk.do(lambda n=n: work(n), stays)) for n in range(3)]  # type: ignore[misc]
        await asyncio.sleep(0.01)
        await asyncio.wait_for(desk.close(), 1)
        for one in waiting:
            with pytest.raises(Refusal, match="being stopped"):
                await one
        with pytest.raises(Refusal, match="being stopped"):
            await desk.do(lambda: None, stays)
        assert begun == [0]
        assert not desk.idle

    run(law)


@pytest.mark.parametrize("threads", [1, 3])
def test_as_much_is_done_at_a_time_as_there_are_threads(threads: int) -> None:
    async def law(desk: Desk, event: threading.Event) -> None:
        both = threading.Barrier(threads)
        assert len(await asyncio.gather(*(desk.do(lambda: both.wait(5), stays) for _ in range(threads)))) == threads

    run(law, threads)
