"""Compiled: the inner loops of the search as machine code, for CPUs.

Tensors are fast where one operation works on much at once. Greedy selection is the opposite: many small windows, each
of which depends on the choice before it. Numba compiles these loops, image by image, and threads share the images.
Each function here does what a function of the same name in `peaks`, `selection` or `depth` does with tensors; that
one is the reference, and does the work on accelerators and where Numba is not installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from pcdnet.progress import compiling

_allowed: ContextVar[bool] = ContextVar("compiled", default=True)

Function = TypeVar("Function", bound=Callable[..., Any])


def usable(values: Tensor) -> bool:
    """Whether work on a tensor can be done by compiled loops: Numba is there, and the tensor is on a CPU."""
    return _allowed.get() and values.device.type == "cpu" and installed()


@cache
def installed() -> bool:
    """Whether Numba is there."""
    return importlib.util.find_spec("numba") is not None


@contextmanager
def reference() -> Iterator[None]:
    """Let tensors do all the work meanwhile, as where Numba is not installed."""
    token = _allowed.set(False)
    try:
        yield
    finally:
        _allowed.reset(token)


def compiled(function: Function) -> Function:
    """A function of NumPy arrays and numbers as machine code, which is kept on disk and holds no lock while it runs.

    Sums may be taken in any order; infinities and not-a-numbers keep their meaning. The order is the same in every
    process, as each function holds all that it calls: of several copies of a callee, optimised for different callers, a
    process would otherwise run another one when it loads them from disk than when it compiles them.
    """
    import numba

    _announce()
    loose = {"reassoc", "contract", "nsz", "arcp"}
    jit = numba.njit(nogil=True, fastmath=loose, error_model="numpy", forceinline=True)(function)
    with suppress(RuntimeError):  # nowhere to keep it: it is compiled anew by every process
        jit.enable_caching()
    return cast("Function", jit)


@cache
def _announce() -> None:
    """Have it said whenever something is compiled, which what is kept on disk is not."""
    from numba.core import event

    class Announcer(event.Listener):
        def __init__(self) -> None:
            self.ends: list[Callable[[], None]] = []

        def on_start(self, event: object) -> None:
            self.ends.append(compiling())

        def on_end(self, event: object) -> None:
            self.ends.pop()()

    event.register("numba:compile", Announcer())  # type: ignore[no-untyped-call]


def share(work: Callable[[int, int], None], count: int) -> None:
    """Do `work` on parts, from one number to another, of so many things: as many at a time as torch has threads."""
    threads = min(torch.get_num_threads(), count)
    if threads <= 1:
        return work(0, count)
    cuts = [n * count // threads for n in range(threads + 1)]
    jobs = [_pool().submit(work, *part) for part in pairwise(cuts[1:])]
    work(cuts[0], cuts[1])
    for job in jobs:
        job.result()
    return None


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="compiled")
