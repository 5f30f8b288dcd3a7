"""Abreast: parts of work done side by side, one thread each.

Many small operations, one after the other, leave most threads idle, however many each of them may use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain, islice
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")


def abreast(work: Callable[[Part], Result], parts: Iterable[Part]) -> Generator[Result, None, None]:
    """The results in the order of the parts, as many of which are worked on at a time as torch has threads.

    Few parts are taken before there is a thread for them. A single one is worked on by all threads together.
    """
    threads, left = torch.get_num_threads(), iter(parts)
    first = list(islice(left, 2))
    if threads == 1 or len(first) < 2:
        yield from map(work, chain(first, left))
        return
    with ThreadPoolExecutor(threads, "pcdnet-abreast", initializer=torch.set_num_threads, initargs=(1,)) as pool:
        doing: deque[Future[Result]] = deque()
        try:
            for part in chain(first, left):
                doing.append(pool.submit(copy_context().run, work, part))
                if len(doing) > threads:  # one waits, so that no thread does
                    yield doing.popleft().result()
            while doing:
                yield doing.popleft().result()
        finally:
            for one in doing:
                one.cancel()
