"""Target: one kind of input that strangers give, how it is mutated, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

Mutator = Callable[[bytes, Random], bytes]
"""Makes another input of one; whatever it raises counts as a mutation that did not work."""
Reader = Callable[[bytes], object]
"""Reads an input as the package does: whatever leaves it but a PcdnetError is a finding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One kind of input."""

    name: str
    """What it is asked for by."""
    seeds: Callable[[], Sequence[bytes]]
    """Inputs to begin with: sound ones, and odd ones that were made by hand."""
    mutate: Mutator
    """Makes inputs of inputs."""
    prepare: Callable[[Path], Reader]
    """What reads an input, with an empty folder of its own to work in."""
    megabytes: int = 256
    """MiB of memory that one input may take beyond what the process had before."""
    seconds: float = 5.0
    """Seconds of processor time that one input may take."""
