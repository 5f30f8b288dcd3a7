"""Launch: what torchrun, or whatever starts processes as it does, tells each of them; torch is not needed to ask."""

from __future__ import annotations

import os

from pcdnet.errors import PcdnetError

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells every process that it starts."""


def world_size() -> int:
    """How many processes share the training; 1 where nothing like torchrun started this one."""
    return number("WORLD_SIZE") if all(os.environ.get(name) for name in NEEDED) else 1


def present_rank() -> int:
    """Which of them this process is; the first is 0."""
    return number("RANK") if world_size() > 1 else 0


def own_device(device: str) -> str:
    """The device of this process: with several on one machine, `cuda` is another one for each."""
    shared = device == "cuda" and world_size() > 1 and "LOCAL_RANK" in os.environ
    return f"cuda:{number('LOCAL_RANK')}" if shared else device


def number(name: str) -> int:
    """A number of the environment."""
    text = os.environ.get(name, "")
    if not text.isascii() or not text.isdigit():
        raise PcdnetError(f"{name} is {text!r} in the environment, and no number; start training with torchrun")
    return int(text)
