"""Suggestions: what to do next with a run, each with its reason in figures and the command that does it.

They follow from what the verdict was read from: first the verdict's own advice, then what would tidy up a model that
is fine otherwise.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcdnet.config import ModelConfig, flags
from pcdnet.data.view import UNCHANGED
from pcdnet.errors import Setting
from pcdnet.model.network import PCDNet
from pcdnet.model.storage import CONFIG
from pcdnet.names import Names
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.cures import Cure, cures, longer, merging, more_objects
from pcdnet.training.diagnosis import Figures
from pcdnet.training.evaluation import opened
from pcdnet.training.events import listed
from pcdnet.training.findings import ODD, findings, mostly_unused
from pcdnet.training.verdict import Verdict, judge_images, kept_figures, kept_verdict

PLENTY = 5
"""With so many objects a prototype, by chance one in 150 is not seen if all are needed alike."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    """Something to do next."""

    words: str
    """What to do, in a sentence."""
    reason: str
    """Why, with figures."""
    command: str = ""
    """The command that does it; empty where none can."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The same for `fit`: fields of the configuration, as `changes` takes them, or `minutes`."""
    prototypes: tuple[int, ...] = ()
    """The same for `RunFolder.merge`: prototypes to make one kind of."""

    def __str__(self) -> str:
        return f"{self.words}, as {self.reason}" + (f"; {self.command}" if self.command else "")

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dataclasses.asdict(self)


def suggest(
    source: PCDNet | RunFolder | str | Path, data: str | Path | NDArray[np.generic] | Scenes | None = None
) -> tuple[Suggestion, ...]:
    """Say what to do next with a run or a model: which prototypes to merge, which settings to train anew with.

    Parameters
    ----------
    source
        A run (its folder, or a RunFolder), or a model.
    data
        Images to judge by, as `judge` takes them; by default what the run was judged by when its training ended.

    Returns
    -------
    tuple of Suggestion
        The most important first; none where nothing is to be done.

    Examples
    --------
    >>> nothing = PCDNet(ModelConfig(num_prototypes=2))
    >>> suggestion, = suggest(nothing, np.zeros((3, 35, 35, 3), np.uint8))
    >>> print(suggestion)
    give images that differ: what is the same in all of them is background, as nothing stands out from the ...
    """
    run = None if isinstance(source, PCDNet) else RunFolder.open(source)
    if run is not None and data is None and (kept := kept_verdict(run)) is not None:
        config, size = run.model_config, run.image_size
        if kept_figures(kept) is not None:
            return suggestions(kept, config, size or config.prototype_size, run.names(), run)
    model, scenes = opened(source if run is None else run, data)
    H, W = scenes.images.shape[1:3]
    return suggestions(judge_images(model, scenes, run), model.config, (H, W), model.names, run)


def suggestions(
    verdict: Verdict, config: ModelConfig, size: tuple[int, int], names: Names, run: RunFolder | None = None
) -> tuple[Suggestion, ...]:
    """What follows from the figures of a verdict; `size` is that of the images.

    Prototypes that have one name by now are not suggested to be merged.
    """
    figures = kept_figures(verdict)
    if figures is None:
        return ()
    figures = dataclasses.replace(figures, alike=unmerged(figures.alike, names))
    background = verdict.changes.get("model.background", config.background)
    reasons = {finding.about: finding.words for finding in findings(figures, config.max_objects)}
    advised = list(cures(figures, config, size, run, background))
    if figures.limited > ODD and [cure.about for cure in advised] == ["repeated"]:
        # Patches fill images up to the limit; but where it cuts off objects, which of them are found is an accident.
        advised.append(more_objects(config))
    made = [_suggestion(cure, reasons[cure.about], figures, run) for cure in advised]
    if not any(cure.about != "prototypes" for cure in advised):
        made += [_suggestion(cure, reason, figures, run) for cure, reason in _tidying(figures, run)]
    return tuple(made)


def unmerged(pairs: Sequence[tuple[int, int]], names: Names) -> tuple[tuple[int, int], ...]:
    """The pairs of prototypes that do not have one name yet."""
    return tuple((a, b) for a, b in pairs if max(a, b) < len(names) and names.first[a] != names.first[b])


def _suggestion(cure: Cure, reason: str, f: Figures, run: RunFolder | None) -> Suggestion:
    if cure.prototypes:
        reason = "their objects lie between them: either explains those of the other nearly as well"
    elif cure.about == "prototypes" and mostly_unused(f):
        reason = f"only {f.in_use} of {f.prototypes} prototypes are in use"
    command = merging(run, cure.prototypes) if cure.prototypes else _training(run, cure.changes)
    return Suggestion(
        words=cure.words, reason=reason, command=command, changes=cure.changes, prototypes=cure.prototypes
    )


def _tidying(f: Figures, run: RunFolder | None) -> Iterator[tuple[Cure, str]]:
    """What else may be done where little is wrong, with the reasons."""
    if f.unused and not mostly_unused(f) and f.objects * f.images >= PLENTY * f.prototypes:
        words = "learn without the prototypes that nothing needs, if nothing is missing (model.num_prototypes)"
        verb, objects = "was" if len(f.unused) == 1 else "were", f"{f.objects * f.images:,.0f} objects"
        reason = f"{_named(f.unused)} {verb} not found in any of {f.images} images, in which {objects} were"
        yield Cure(words, "prototypes", {"model.num_prototypes": f.in_use}), reason
    if f.shapeless:
        verb = "has" if len(f.shapeless) == 1 else "have"
        yield longer(run), f"{_named(f.shapeless)} {verb} no solid shape yet"


def _named(prototypes: tuple[int, ...]) -> str:
    return f"prototype{'s' if len(prototypes) > 1 else ''} {listed(prototypes)}"


def _training(run: RunFolder | None, changes: Mapping[str, Any]) -> str:
    """The command that trains as the run was, but for what is changed, in a folder beside it."""
    if run is None or not changes:
        return ""
    seen, usual = (dataclasses.asdict(view) for view in (run.origin.view, UNCHANGED))
    settings = {"config": run.path / CONFIG, "data": run.origin.data or "DATA", "out": f"{run.changeable}-2"}
    settings |= {"minutes": run.origin.minutes} | {name: seen[name] for name in seen if seen[name] != usual[name]}
    words = [flags(Setting(name, value)) for name, value in {**settings, **changes}.items() if value is not None]
    return shlex.join(["pcdnet", "train", *(word for setting in words for word in setting)])
