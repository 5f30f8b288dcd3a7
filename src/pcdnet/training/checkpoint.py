"""Checkpoint: whether what a run kept to go on from is what its training needs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pcdnet.config import MOST_STEPS
from pcdnet.errors import PcdnetError, Setting
from pcdnet.history import MOST
from pcdnet.model.storage import WEIGHTS, check_tensor, fitting, load_tensors
from pcdnet.run import STATE, RunFolder
from pcdnet.training.reset import Health

MOMENTS = ("exp_avg", "exp_avg_sq")
"""What Adam keeps of a parameter, of its shape; and its `step`, which is one number."""


def checked_state(run: RunFolder, model: torch.nn.Module) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What the run kept to go on from, if there is all that the model, its optimizer and its health need.

    The weights of the model are left to `fill`. The optimizer has nothing of parameters that were never learned.
    """
    tensors, words = run.load_state()
    path = run.path / STATE
    for name, parameter in model.named_parameters():
        if any(key.startswith(f"optimizer.{name}.") for key in tensors):
            check_tensor(tensors, f"optimizer.{name}.step", torch.tensor(0.0), path)
            for moment in MOMENTS:
                check_tensor(tensors, f"optimizer.{name}.{moment}", parameter, path)
    health = Health.start(run.config.model.num_prototypes)
    for field in dataclasses.fields(Health):
        check_tensor(tensors, f"health.{field.name}", getattr(health, field.name), path)
    known = {f"health.{field.name}" for field in dataclasses.fields(Health)}
    known |= {f"optimizer.{name}.{key}" for name, _ in model.named_parameters() for key in ("step", *MOMENTS)}
    for name in tensors:
        if name not in known and not name.startswith("model."):
            raise PcdnetError(f"{path} holds {name}, which no training has; train anew")
    _check_words(words, path)
    _check_moments(tensors, words["step"], path)
    return tensors, words


def _check_words(words: Mapping[str, Any], path: Path) -> None:
    step, seconds, best = (words.get(name) for name in ("step", "seconds", "best"))
    before = words.get("before", 0.0)  # which version 0.1 did not count
    whole = type(step) is int and 0 <= step <= MOST_STEPS
    timed = all(isinstance(each, int | float) and 0 <= each < MOST for each in (seconds, before))
    if not whole or not timed or not isinstance(best, float) or not best < math.inf:
        raise PcdnetError(
            f"{path} says that step {step!r:.40} was done after {seconds!r:.40} s, best {best!r:.40}; train anew"
        )


def _check_moments(tensors: Mapping[str, Tensor], done: int, path: Path) -> None:
    """Adam divides by what follows from its steps, and by the roots of its second moments."""
    for name, values in tensors.items():
        if name.startswith("optimizer."):
            kind = name.rpartition(".")[2]
            bad = (values < 1) | (values > done) | (values != values.round()) if kind == "step" else ~values.isfinite()
            if bool((bad | (values < 0) if kind == "exp_avg_sq" else bad).any()):
                raise PcdnetError(f"{path} has {name} that {done} steps cannot have led to; train anew")


def best_weights(run: RunFolder, model: torch.nn.Module) -> dict[str, Tensor]:
    """The best weights so far, which the state says there are."""
    path = run.path / WEIGHTS
    if not run.has_weights:
        anew = Setting("force", True)
        raise PcdnetError(f"{path} is gone, the best model so far; restore it, or start anew with ", anew)
    return fitting(model, load_tensors(path)[0], path)
