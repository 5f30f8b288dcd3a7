"""Evaluation: how well a model explains scenes, and how fast."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcdnet.metrics import score
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Scores of a model on scenes; those that need the truth are None where it is not known."""

    scenes: int
    """How many scenes were scored."""
    fg_ari: float | None
    """Adjusted Rand index on the true foreground."""
    ari: float | None
    """Adjusted Rand index on all pixels."""
    miou: float | None
    """Mean intersection over union of the true objects with the predicted ones that match them best."""
    count_accuracy: float | None
    """Share of scenes with the right number of objects."""
    perfect: float | None
    """Share of scenes with an FG-ARI of exactly 1."""
    mse: float
    """Mean squared error per pixel and channel."""
    objects: float
    """Mean number of objects found in an image."""
    parameters: int
    """Numbers that the model has learned."""
    images_per_second: float
    """Images decomposed in a second."""
    seconds: float
    """Time of the decomposition."""

    def to_dict(self) -> dict[str, Any]:
        """The scores by name."""
        return dataclasses.asdict(self)


def evaluate(model: PCDNet, scenes: Scenes, *, refine: bool = True) -> Evaluation:
    """Decompose the scenes and score the result; without `refine`, by plain greedy selection."""
    config = model.config
    if not refine:
        model.config = dataclasses.replace(config, refinement=0)
    try:
        start = time.perf_counter()
        found = model.decompose(scenes.images)
        seconds = time.perf_counter() - start
    finally:
        model.config = config
    assert isinstance(found, list)
    truth = None
    if scenes.labels is not None:
        truth = score(scenes.labels, np.stack([thing.instances for thing in found]))
    return Evaluation(
        scenes=len(scenes),
        fg_ari=truth.fg_ari if truth else None,
        ari=truth.ari if truth else None,
        miou=truth.miou if truth else None,
        count_accuracy=truth.count_accuracy if truth else None,
        perfect=truth.perfect if truth else None,
        mse=float(np.mean([thing.error for thing in found])) / scenes.images[0].size,
        objects=float(np.mean([len(thing) for thing in found])),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        images_per_second=len(scenes) / seconds,
        seconds=seconds,
    )
