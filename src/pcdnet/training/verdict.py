"""Verdict: whether a training worked, in one word, with the reasons in figures and advice that fits the cause.

It is judged by images that were not learned from, without any label. That much is explained is not enough: a wrong
background can be covered with patches. So what no object covers must look like the background, and objects must be
found again if a little noise is added, which patches are not.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pcdnet.config import Background, ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.files import sealed_json, unsealed_json
from pcdnet.hub import VERDICT
from pcdnet.model.network import PCDNet
from pcdnet.progress import phase
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.backdrop import choose_background
from pcdnet.training.cures import cures, merging
from pcdnet.training.diagnosis import Figures, diagnose
from pcdnet.training.evaluation import opened
from pcdnet.training.findings import ODD, findings

Word = Literal["good", "partial", "failed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a training worked."""

    verdict: Word
    """`good`, `partial` or `failed`."""
    reasons: tuple[str, ...]
    """Why, in sentences with figures; those that speak against it come first."""
    advice: tuple[str, ...] = ()
    """What to do about it, in sentences."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The same for `fit`: fields of the configuration, as `changes` takes them, or `minutes`."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What was measured: the fields of `pcdnet.training.diagnosis.Figures`."""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reasons[0]}" if self.reasons else self.verdict

    def to_json(self) -> str:
        """The verdict as text that `from_json` reads."""
        return sealed_json(json.dumps(dataclasses.asdict(self), indent=1) + "\n")

    @staticmethod
    def from_json(text: str) -> Verdict:
        """Read `to_json`'s text, or raise ValueError."""
        words = json.loads(unsealed_json(text))
        if not isinstance(words, dict) or words.get("verdict") not in get_args(Word):
            raise ValueError("it holds no verdict")
        for unknown in words.keys() - {each.name for each in dataclasses.fields(Verdict)}:
            raise ValueError(f"nothing is called {unknown!r:.40}")  # the name of the checksum was hit, for example
        for name, kind in (("reasons", list), ("advice", list), ("changes", dict), ("figures", dict)):
            value = words.get(name)
            if not isinstance(value, kind) or (kind is list and not all(isinstance(each, str) for each in value)):
                raise ValueError(f"{name} is {value!r}")
        return Verdict(
            verdict=words["verdict"],
            reasons=tuple(words["reasons"]),
            advice=tuple(words["advice"]),
            changes={name: tuple(v) if isinstance(v, list) else v for name, v in words["changes"].items()},
            figures=words["figures"],
        )


def kept_figures(verdict: Verdict) -> Figures | None:
    """The figures of a verdict as they were measured; None where another version measured others."""
    values = {name: _tuples(value) for name, value in verdict.figures.items()}
    try:
        return Figures(**values)
    except TypeError:
        return None


def _tuples(value: Any) -> Any:
    """What JSON made lists of as it was."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def kept_verdict(run: RunFolder) -> Verdict | None:
    """The verdict in the folder of a run, if there is one."""
    text = run.verdict()
    try:
        return None if text is None else Verdict.from_json(text)
    except (ValueError, RecursionError) as error:
        raise PcdnetError(f"cannot read {run.path / VERDICT}: {error}; delete it") from None


def judge(
    source: PCDNet | RunFolder | str | Path, data: str | Path | NDArray[np.generic] | Scenes | None = None
) -> Verdict:
    """Say whether a model explains images, why, and what to do about it; no label is looked at.

    Parameters
    ----------
    source
        The model to judge, or a run: its folder, or a RunFolder.
    data
        Images that it did not learn from, as `fit` takes them; by default those of the run's own data. At most 200
        are looked at.

    Returns
    -------
    Verdict
        One word, the reasons, advice, and all figures.

    Examples
    --------
    >>> import torch
    >>> from pcdnet import ModelConfig, PCDNet, PrototypeBank
    >>> from pcdnet.data import tetrominoes
    >>> true = PrototypeBank(*map(torch.from_numpy, tetrominoes.true_prototypes()))
    >>> images = tetrominoes.generate(count=50, seed=0).images
    >>> print(judge(PCDNet.from_bank(true, ModelConfig(min_error_reduction=1.0)), images))
    good: 100 % of what stands out is explained ...
    >>> judge(PCDNet(ModelConfig(num_prototypes=2)), images).verdict
    'failed'
    """
    model, scenes = opened(source, data)
    return judge_images(model, scenes, None if isinstance(source, PCDNet) else RunFolder.open(source))


def judge_images(model: PCDNet, scenes: Scenes, run: RunFolder | None) -> Verdict:
    """Judge a model that is loaded already; the run, if there is one, tells how long it was trained."""
    if len(scenes) == 0:
        raise PcdnetError("there are 0 images to judge by; give at least one")
    H, W = scenes.images.shape[1:3]
    with phase("judging by images that were not learned from"):
        figures = diagnose(model, scenes.images)
    best = None
    if figures.unexplained_background > ODD:
        tiles = scenes.places is not None
        best = choose_background(scenes.images, model.config.prototype_size, tiles=tiles).kind
    return verdict_of(figures, model.config, (H, W), run, best)


def verdict_of(
    figures: Figures,
    config: ModelConfig,
    size: tuple[int, int],
    run: RunFolder | None = None,
    background: Background | None = None,
) -> Verdict:
    """What the figures of a model say of it; `size` is that of the images, `background` the one that fits them best."""
    found = sorted(findings(figures, config.max_objects), key=lambda finding: -finding.weight)
    advised = list(cures(figures, config, size, run, background or config.background))
    return Verdict(
        verdict=get_args(Word)[found[0].weight],
        reasons=tuple(finding.words for finding in found),
        advice=tuple(
            f"{cure.words}{': ' + merging(run, cure.prototypes) if cure.prototypes else ''}" for cure in advised
        ),
        changes={name: value for cure in advised for name, value in cure.changes.items()},
        figures=dataclasses.asdict(figures),
    )
