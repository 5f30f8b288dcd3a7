"""Ranks: one training in several processes, on one machine or on more, as torchrun starts them.

Each rank learns from its own rows of every batch. Sums over all ranks are the same on all of them, and so is all that
follows from them. The first rank chooses, writes and talks; what it says the others hear. Tensors and text are all that
is exchanged, and nothing is a pickle.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from pcdnet.errors import Elsewhere, Interrupted, PcdnetError, Setting
from pcdnet.model.sharing import Rows, Sharing
from pcdnet.training.launch import number, present_rank, world_size

PATIENCE = 1800.0
"""Seconds that ranks wait for each other at most: the first one chooses, validates and settles alone."""
COMING = 300.0
"""Seconds in which all ranks must have come."""
GLANCE = timedelta(seconds=1)
"""How often a rank that waits looks whether another one reported a problem, and hears signals."""
LAST_WORDS = 5.0
"""Seconds that a rank has to say why it went away."""
EXPECTED = (PcdnetError, KeyboardInterrupt, MemoryError, OSError)
"""Errors of which a sentence says all; of others the process that had them shows more."""
_PROBLEM, _ENDED = "problem", "ended"

Json = TypeVar("Json")


class Ranks:
    """All processes of a training, seen from one of them. By default there is only this one, and nothing is sent."""

    def __init__(self, rank: int = 0, world: int = 1, store: Store | None = None) -> None:
        self.rank, self.world, self._store = rank, world, store
        self._vanished = False  # whether another rank ended without a word

    @property
    def alone(self) -> bool:
        """Whether there is only one."""
        return self.world == 1

    @property
    def first(self) -> bool:
        """Whether this is the one that chooses, writes and talks."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks, in place; it has no gradient."""
        if not self.alone:
            self._wait(dist.all_reduce(values, async_op=True), values)
        return values

    def rows_of_all(self, own: Tensor, count: int) -> Tensor:
        """From the rows r, r + world, ... of each rank r the first `count` of all."""
        most = -(-count // self.world)
        kind = torch.uint8 if own.dtype == torch.bool else own.dtype
        mine = own.new_zeros(most, *own.shape[1:], dtype=kind)
        mine[: len(own)] = own
        parts = [torch.empty_like(mine) for _ in range(self.world)]
        self._wait(dist.all_gather(parts, mine, async_op=True), mine)
        return torch.stack(parts, dim=1).flatten(0, 1)[:count].to(own.dtype)

    def heard(self, seconds: float, asked: bool) -> tuple[float, bool]:
        """The first rank's clock, and whether any rank was asked to stop."""
        if self.alone:
            return seconds, asked
        told = self.sum(torch.tensor([seconds if self.first else 0.0, float(asked)], dtype=torch.float64)).tolist()
        return told[0], told[1] > 0

    def meet(self) -> None:
        """Go on when all ranks are here."""
        self.sum(torch.zeros(1))

    def said(self, value: Json) -> Json:
        """What the first rank says, on all of them: anything that JSON can say; what the others give is ignored."""
        if self.alone:
            return value
        words: Json = json.loads(self._sent(json.dumps(value).encode() if self.first else b""))
        return words

    def tensors(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The first rank's tensors, on all of them; what the others give is ignored."""
        if self.alone:
            return tensors
        plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()} if self.first else {}
        return load(self._sent(save(plain) if self.first else b""))

    def files(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """The first rank's files, by name, on all of them; what the others give is ignored."""
        return {name: self._sent(files.get(name, b"")) for name in self.said(sorted(files))}

    def _sent(self, content: bytes) -> bytes:
        """Bytes of the first rank, their number first."""
        length = self.sum(torch.tensor([len(content) if self.first else 0]))
        there = bytearray(content) if self.first else bytearray(int(length))
        if not there:
            return b""
        values = torch.frombuffer(there, dtype=torch.uint8)
        self._wait(dist.broadcast(values, src=0, async_op=True), values)
        return bytes(there)

    def _wait(self, work: Any, values: Tensor) -> None:
        """Wait until all ranks did their part, or until it is clear that one of them never will."""
        if values.is_cuda:  # nccl keeps the time itself
            work.wait()
            return
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                work.wait(GLANCE)
            except RuntimeError:
                self._raise_problem()
                if work.is_completed():
                    self._lost("another process of this training ended, or cannot be reached any more; go on with ")
                if time.monotonic() > deadline:
                    self._lost("another process of this training was silent for too long; go on with ")
            else:
                return

    def _lost(self, words: str) -> None:
        """Another rank is gone: end with what it said last, or with these words."""
        deadline = time.monotonic() + LAST_WORDS
        while time.monotonic() < deadline:
            self._raise_problem()
            time.sleep(0.05)
        self._vanished = True
        raise PcdnetError(words, Setting("resume", True))

    def _raise_problem(self) -> None:
        """End with the problem that another rank reported, if one did."""
        problem = None
        with suppress(RuntimeError):  # where the first rank keeps the store, it may be gone
            if self._store is not None and self._store.check([_PROBLEM]):
                problem = json.loads(self._store.get(_PROBLEM))
        if problem is not None:
            raise (Interrupted if problem["interrupted"] else PcdnetError)(*map(_part, problem["parts"]))

    def _report(self, error: BaseException) -> bool:
        """Tell all ranks why this one ends; whether the first one is going to say so, or did."""
        if self._store is None:
            return False
        words = [part if isinstance(part, str) else {"name": part.name, "value": part.value} for part in _parts(error)]
        told = {"interrupted": isinstance(error, Interrupted | KeyboardInterrupt), "parts": words}
        with suppress(RuntimeError):
            if not self._store.check([_PROBLEM]):
                self._store.set(_PROBLEM, json.dumps(told, default=str))
        _leave()  # whoever waits for this rank hears of it at once
        return self.first or self._is_heard()

    def _is_heard(self) -> bool:
        """Wait until the first rank ends, too; it may be the one that vanished, and never say anything."""
        assert self._store is not None
        deadline = time.monotonic() + (LAST_WORDS if self._vanished else PATIENCE)
        while time.monotonic() < deadline:
            try:
                if self._store.check([_ENDED]):
                    return True
            except RuntimeError:  # it is gone, and its store with it
                return not self._vanished
            time.sleep(0.05)
        return False

    def _end(self) -> None:
        """Nothing more is said."""
        if self._store is not None and self.first:
            with suppress(RuntimeError):
                self._store.set(_ENDED, "1")
        _leave()


ALONE = Ranks()
"""The one process of a training that shares nothing."""


class SharedBatch(Sharing):
    """A batch whose rows go round: with two ranks the first one has those of even numbers."""

    def __init__(self, ranks: Ranks, batch: int) -> None:
        self._ranks, self._batch = ranks, batch

    @property
    def alone(self) -> bool:
        return False

    def rows(self, whole: Rows) -> Rows:
        return whole[self._ranks.rank :: self._ranks.world]

    def error(self, squares: Tensor) -> Tensor:
        part = squares.sum() / (squares[0].numel() * self._batch)
        return part + (self._ranks.sum(part.detach().clone()) - part.detach())

    def gathered(self, own: Tensor) -> Tensor:
        return _Gathered.apply(own, self)  # type: ignore[no-any-return, no-untyped-call]

    def own(self, whole: Tensor) -> Tensor:
        return _Own.apply(whole, self)  # type: ignore[no-any-return, no-untyped-call]

    def spread(self, one: Tensor) -> Tensor:
        return self.own(one.expand(self._batch, *one.shape[1:])) if one.requires_grad else one

    def of_all(self, own: Tensor) -> Tensor:
        """The rows of all ranks, in the order of the batch."""
        return self._ranks.rows_of_all(own.detach(), self._batch)


class _Gathered(torch.autograd.Function):
    """Own rows to those of all ranks; the gradient is known for all of them, and ours is ours."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, batch: SharedBatch) -> Tensor:
        ctx.batch = batch
        return batch.of_all(own)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.batch.rows(gradient).contiguous(), None


class _Own(torch.autograd.Function):
    """Rows that all ranks have to own ones; what flows back into those of all ranks is gathered."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, batch: SharedBatch) -> Tensor:
        ctx.batch = batch
        return batch.rows(whole).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.batch.of_all(gradient), None


@contextmanager
def open_ranks(stop: Callable[[], bool], device: str = "cpu") -> Iterator[Ranks]:
    """All processes that torchrun started for this training, until the block ends; by default only this one.

    An error in the block ends all of them: the first one raises it, whoever had it, and the others `Elsewhere`. `stop`
    ends the wait for those that have not come yet.
    """
    if world_size() == 1:
        yield Ranks()
        return
    if dist.is_initialized():
        raise PcdnetError("torch.distributed is in use already; call destroy_process_group() before training")
    hook = sys.excepthook  # torch.distributed puts its own in front of it each time
    ranks = _joined(stop, device)
    try:
        yield ranks
        ranks.meet()  # nobody leaves before all have heard everything
    except BaseException as error:
        heard = ranks._report(error)
        if heard and not ranks.first and isinstance(error, EXPECTED):
            raise Elsewhere(*_parts(error)) from None
        raise
    finally:
        ranks._end()
        sys.excepthook = hook


_trainings = 0
"""How many trainings of this process had several ranks: each has its own part of the store."""


def _joined(stop: Callable[[], bool], device: str) -> Ranks:
    """Wait for all ranks, and connect them."""
    global _trainings
    rank, world = present_rank(), world_size()
    host, port = os.environ["MASTER_ADDR"], number("MASTER_PORT")
    if port == 0:
        raise PcdnetError("MASTER_PORT is 0, where no process can meet another; start torchrun with --standalone")
    theirs = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun keeps the store itself
    attempt, _trainings = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), _trainings + 1
    try:
        whole = TCPStore(host, port, world, rank == 0 and not theirs, timedelta(seconds=COMING), multi_tenant=True)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise PcdnetError(f"the processes of this training cannot meet at {host}:{port}: {reason}") from None
    store = PrefixStore(f"pcdnet/{attempt}/{_trainings}", whole)
    ranks = Ranks(rank, world, store)
    try:
        _connect(ranks, store, stop, device)
    except dist.DistError as error:  # who was there has gone, perhaps while the others were on their way
        reason = str(error).splitlines()[0]
        raise PcdnetError(
            f"another process of this training vanished as it began: {reason}; start all of them"
        ) from None
    return ranks


def _connect(ranks: Ranks, store: PrefixStore, stop: Callable[[], bool], device: str) -> None:
    """Wait until all have come to the store, and let them form a group."""
    world, deadline = ranks.world, time.monotonic() + COMING
    there = store.add("there", 1)
    while there < world:
        ranks._raise_problem()
        if stop():
            raise Interrupted("stopped before training began")
        if time.monotonic() > deadline:
            raise PcdnetError(f"{there} of {world} processes came within {COMING / 60:.0f} minutes; start all of them")
        time.sleep(0.02)
        there = store.add("there", 0)
    # It keeps the group that is there when it is imported, as optimizers do: with the group its threads would outlive
    # the training, and abort the process if one of them needs Python while that ends.
    import_module("torch.distributed.nn.functional")
    backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
    dist.init_process_group(
        backend, store=store, rank=ranks.rank, world_size=world, timeout=timedelta(seconds=PATIENCE + COMING)
    )


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _parts(error: BaseException) -> tuple[str | Setting, ...]:
    """An error in the pieces of a message."""
    if isinstance(error, PcdnetError):
        return error.parts
    if isinstance(error, KeyboardInterrupt):
        return "training was stopped at once; go on with ", Setting("resume", True)
    return (f"process {present_rank()} failed: {type(error).__name__}: {error}",)


def _part(part: Any) -> str | Setting:
    """A piece of another rank's message."""
    if isinstance(part, str):
        return part
    value = part["value"]
    return Setting(part["name"], tuple(value) if isinstance(value, list) else value)
