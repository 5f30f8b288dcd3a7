"""Cures: what to do about what the figures of a model say."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pcdnet.config import MOST_OBJECTS, Background, ModelConfig
from pcdnet.run import RunFolder
from pcdnet.training.diagnosis import Figures
from pcdnet.training.events import listed
from pcdnet.training.findings import EXPLAINED, MOST_NAMED, ODD, WRONG, mostly_unused
from pcdnet.training.twins import groups


class Cure(NamedTuple):
    """What to do about a finding."""

    words: str
    """Advice, in a sentence."""
    about: str
    """What the finding is about."""
    changes: dict[str, Any] = {}  # noqa: RUF012  (nobody changes it)
    """What to change in the settings."""
    prototypes: tuple[int, ...] = ()
    """Prototypes to make one kind of."""


def merging(run: RunFolder | None, prototypes: Sequence[int]) -> str:
    """The command that makes prototypes one kind; a model that stays as it is must be copied first."""
    return shlex.join(["pcdnet", "merge", "RUN" if run is None else str(run.changeable), *map(str, prototypes)])


def cures(
    f: Figures, config: ModelConfig, size: tuple[int, int], run: RunFolder | None, background: Background
) -> Iterator[Cure]:
    """One cure for the most likely cause of what is wrong; where little is, how to tidy up what was learned."""
    nothing = f.in_use == 0 or f.stands_out == 0
    wrong = min(f.explained / EXPLAINED, f.repeated / (1 - ODD)) < 1 or f.of_shapeless > WRONG
    if nothing or wrong or max(f.unexplained_background, f.limited, f.overlooked) > ODD:
        yield _main_cure(f, config, size, run, background)
        return
    if mostly_unused(f):
        words = "learn fewer prototypes (model.num_prototypes)"
        yield Cure(words, "prototypes", {"model.num_prototypes": f.in_use})
    for group in groups(f.alike)[:MOST_NAMED]:
        yield Cure(f"make prototypes {listed(group)} one kind", "prototypes", prototypes=group)


def _main_cure(
    f: Figures, config: ModelConfig, size: tuple[int, int], run: RunFolder | None, background: Background
) -> Cure:
    """What most likely went wrong, the most fundamental first: all else follows from a wrong background."""
    if f.stands_out == 0:
        return Cure("give images that differ: what is the same in all of them is background", "explained")
    if f.unexplained_background > WRONG:
        return _another_background(config, background)
    if f.of_shapeless > WRONG:
        return longer(run)
    if f.unexplained_background > ODD and f.left_in_large_pieces > WRONG:
        return _another_background(config, background)
    if f.repeated < 1 - ODD:
        words = "let only what clearly stands out be an object (model.min_error_reduction)"
        return Cure(words, "repeated", {"model.min_error_reduction": _rounded(4 * config.min_error_reduction)})
    if f.limited > ODD:
        return more_objects(config)
    if f.overlooked > ODD:
        least = _rounded(config.min_error_reduction / 4)
        words = "count fainter objects (model.min_error_reduction)"
        return Cure(words, "overlooked", {"model.min_error_reduction": least})
    (H, W), (h, w) = size, config.prototype_size
    larger = min(H, h * 3 // 2), min(W, w * 3 // 2)
    if f.left_in_large_pieces > WRONG and larger != (h, w):
        return Cure("learn larger prototypes (model.prototype_size)", "explained", {"model.prototype_size": larger})
    more = -(-config.num_prototypes * 3 // 2)
    return Cure("learn more prototypes (model.num_prototypes)", "explained", {"model.num_prototypes": more})


def _another_background(config: ModelConfig, background: Background) -> Cure:
    if background != config.background:
        words = f"let the background be {background} (model.background)"
        return Cure(words, "background", {"model.background": background})
    words = "give images, or a part of them (crop), whose background is black, smooth or always the same"
    return Cure(words, "background")


def more_objects(config: ModelConfig) -> Cure:
    """To allow more objects in an image."""
    words = "allow more objects in an image (model.max_objects)"
    return Cure(words, "limited", {"model.max_objects": min(2 * config.max_objects, MOST_OBJECTS)})


def longer(run: RunFolder | None) -> Cure:
    """To train longer, in the terms in which the run was limited."""
    if run is not None and run.origin.minutes is not None:
        return Cure("train longer (minutes)", "shapeless", {"minutes": 4 * run.origin.minutes})
    steps = {} if run is None else {"train.steps": 4 * run.config.train.steps}
    return Cure("train longer (train.steps)", "shapeless", steps)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
