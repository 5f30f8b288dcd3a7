"""Lockstep: on accelerators all images take every step together, whether or not there is something to do in each.

Finding out where there is something to do makes the host wait for the device, as reading any number of a tensor does:
in an inner loop the device would stand still most of the time. Each function here does what a function of the same name
in `selection` or `refinement` does, and hardly ever looks at a result on the way; the others are quicker on a CPU.
"""

from __future__ import annotations

from torch import Tensor


def in_lockstep(values: Tensor) -> bool:
    """Whether the host would wait for what it reads of a tensor."""
    return values.device.type != "cpu"


def looks(steps: int) -> frozenset[int]:
    """The few steps, of so many, before which it is worth a wait to see whether anything is left to do."""
    return frozenset({steps // 8, steps // 4, steps // 2} - {0})
