"""Budget: the minutes that a training may take by the clock, from the beginning of the command to the verdict.

What comes before the first step is known when it is made. What comes after the last one, settling, colours, verdict and
report, is the search of so many images; how long one takes is measured in the midst of training.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import UInt8

from pcdnet.config import Config
from pcdnet.model.network import PCDNet
from pcdnet.pixels import Pixels, spread
from pcdnet.training.colours import looked_at
from pcdnet.training.diagnosis import MOST_IMAGES as JUDGED
from pcdnet.training.settling import IMAGES, TRIED

LEAST = 0.25
"""Share of the time that is left to the steps in any case, whatever comes before and after them."""
GUESSED = 0.1
"""Share of the time that is left for the end before it is measured how long a search takes."""
MEASURED = 0.3
"""Share of the steps after which it is measured."""
ROUNDS = 1.5
"""How often settling tries every prototype, mostly."""
PAGE = 2.0
"""Seconds that a report takes beside the search, about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """How long a training may take, and what is to be done when its steps are over."""

    minutes: float
    """In all."""
    began: float = field(default_factory=time.monotonic)
    """When the clock was started, as `time.monotonic` tells it."""
    greedy: int = 0
    """Images that are searched when training is over."""
    refined: int = 0
    """Those that are searched with refinement."""
    page: bool = False
    """Whether a report is made."""

    def left(self, before: float, after: float | None) -> float:
        """The seconds that are left for steps: `before` are those until the first one, `after` those after the last."""
        total = 60 * self.minutes
        if not self.greedy + self.refined:
            after = 0.0
        return max(total - before - (GUESSED * total if after is None else after), LEAST * total)

    def after(self, model: PCDNet, images: UInt8[Pixels, "N H W C"]) -> float:
        """The seconds after the last step, told from how long the model searches some of the images."""
        if not self.greedy + self.refined:
            return 0.0
        some = spread(images, max(1, len(images) // TRIED), TRIED)
        model.decompose_all(some[:1])  # what is compiled or planned once does not count
        greedy, refined = (_seconds(model, some, refined) / len(some) for refined in (False, True))
        return self.greedy * greedy + self.refined * refined + (PAGE if self.page else 0.0)


def budget_for(
    minutes: float,
    config: Config,
    images: UInt8[Pixels, "N H W C"],
    validation: UInt8[Pixels, "M H W C"],
    *,
    began: float,
    settles: bool,
    report: int,
) -> Budget:
    """The budget of a training on images, of which so many are decomposed for a `report` at its end."""
    judged, kinds = min(JUDGED, len(validation)), config.model.num_prototypes
    shown = min(report, len(validation))
    settling = (2 + ROUNDS) * min(IMAGES, len(images)) + ROUNDS * kinds * min(TRIED, len(images)) if settles else 0
    return Budget(
        minutes=minutes,
        began=began,
        greedy=looked_at(images) + 2 * judged + shown,
        refined=math.ceil(settling) + shown,
        page=report > 0,
    )


def _seconds(model: PCDNet, images: UInt8[np.ndarray, "n H W C"], refined: bool) -> float:
    """How long it takes to search images."""
    start = time.perf_counter()
    model.decompose_all(images, refined=refined)
    return time.perf_counter() - start
