"""Laws of work done side by side: results in order, few parts taken ahead, one thread each, failures told."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from pcdnet.model.abreast import abreast
from pcdnet.model.compiled import reference, usable


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    """Three of torch's threads, whatever there were."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_results_come_in_order_however_long_each_takes() -> None:
    """The first waits for the third, which waits for nothing."""
    third = threading.Event()

    def work(part: int) -> int:
        if part == 0:
            assert third.wait(10)
        if part == 2:
            third.set()
        return 10 * part

    assert list(abreast(work, range(8))) == [10 * part for part in range(8)]


def test_each_part_has_one_thread_and_the_caller_keeps_all() -> None:
    assert list(abreast(lambda _: torch.get_num_threads(), range(5))) == [1] * 5
    assert torch.get_num_threads() == 3


def test_a_single_part_has_all_threads() -> None:
    here = threading.get_ident()
    assert list(abreast(lambda _: (torch.get_num_threads(), threading.get_ident()), [0])) == [(3, here)]
    assert list(abreast(str, [])) == []


def test_few_parts_are_taken_ahead() -> None:
    taken = 0

    def parts() -> Iterator[int]:
        nonlocal taken
        for part in range(100):
            taken += 1
            yield part

    results = abreast(str, parts())
    assert [next(results) for _ in range(10)] == [str(n) for n in range(10)]
    assert taken <= 10 + 3 + 1
    results.close()
    assert taken <= 10 + 3 + 1


def test_a_failure_is_the_callers() -> None:
    def work(part: int) -> int:
        if part == 3:
            raise ValueError("part 3")
        return part

    results = abreast(work, range(9))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="part 3"):
        next(results)


def test_what_holds_for_the_caller_holds_for_the_work() -> None:
    """As whether compiled loops may be used."""
    with reference():
        assert not any(abreast(lambda _: usable(torch.zeros(1)), range(6)))
