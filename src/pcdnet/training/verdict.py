"""Verdict: whether a training worked, in one word, with the reasons in figures and advice that fits the cause.

It is judged by images that were not learned from, without any label. That much is explained is not enough: a wrong
background can be covered with patches. So what no object covers must look like the background, and objects must be
found again if a little noise is added, which patches are not.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pcdnet.config import MOST_OBJECTS, Background, ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.files import sealed_json, unsealed_json
from pcdnet.model.network import PCDNet
from pcdnet.progress import phase
from pcdnet.run import VERDICT, RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.backdrop import choose_background
from pcdnet.training.diagnosis import Figures, diagnose
from pcdnet.training.evaluation import opened, small
from pcdnet.training.events import listed
from pcdnet.training.twins import groups

Word = Literal["good", "partial", "failed"]
EXPLAINED, HARDLY_EXPLAINED = 4 / 5, 1 / 3
"""Less of what stands out being explained is partial, and failed: most should be, and hardly any is no result."""
ODD, WRONG = 1 / 10, 1 / 2
"""A share of the images, or of the pixels, that is no longer an exception; and one that is the rule."""
ENOUGH = 2
"""With so many objects a prototype, by chance only one prototype in seven is not seen if all are needed alike."""
MOST_NAMED = 3
"""Groups of prototypes that are nearly the same, and fixtures, are named up to this number."""


class Finding(NamedTuple):
    """Something that the figures say."""

    about: str
    """What it is about, in a word that cures refer to."""
    weight: int
    """How bad it is: 0 is fine, 1 makes the verdict partial and 2 failed."""
    words: str
    """What was found, in a sentence with figures."""


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


def merging(run: RunFolder | None, prototypes: Sequence[int]) -> str:
    """The command that makes prototypes one kind."""
    return shlex.join(["pcdnet", "merge", "RUN" if run is None else str(run.path), *map(str, prototypes)])


def findings(f: Figures, limit: int) -> Iterator[Finding]:
    """What the figures of a model say, good and bad; `limit` is how many objects an image may have."""
    if f.stands_out == 0:
        yield Finding("explained", 2, f"nothing stands out from the background in any of {f.images} images")
    else:
        yield Finding(
            "explained",
            (f.explained < EXPLAINED) + (f.explained < HARDLY_EXPLAINED),
            f"{_percent(f.explained)} of what stands out is explained (mean squared error {small(f.error)}, with the "
            f"bare background {small(f.bare_error)})",
        )
    found = f"{f.objects:.1f} objects were found in an image, of {limit} that there may be"
    none = f"no object was found in any of {f.images} images"
    yield Finding("objects", 0, found) if f.in_use else Finding("objects", 2, none)
    if f.unexplained_background > ODD:
        yield Finding(
            "background",
            1 + (f.unexplained_background > WRONG),
            f"{_percent(f.unexplained_background)} of the pixels that no object covers do not look like the background",
        )
    if f.limited > ODD:
        words = f"{_percent(f.limited)} of the images hold as many objects as there may be, and more is left over"
        yield Finding("limited", 1, words)
    if f.overlooked > ODD:
        words = f"in {_percent(f.overlooked)} of the images something stands out, and no object was found"
        yield Finding("overlooked", 1, words)
    if f.repeated < 1 - ODD:
        words = f"only {_percent(f.repeated)} of the objects are found again if a little noise is added"
        yield Finding("repeated", 1, words)
    if f.of_shapeless > WRONG:
        words = f"{len(f.shapeless)} of {f.in_use} prototypes in use have no solid shape"
        yield Finding("shapeless", 1, words)
    twins = {p for pair in f.alike for p in pair}
    alike = f"{len(twins)} of them are nearly the same as another" if twins else "no two of them are nearly the same"
    yield Finding(
        "prototypes",
        int(mostly_unused(f) or len(twins) > WRONG * f.in_use),
        f"{f.in_use} of {f.prototypes} prototypes are in use, and {alike}",
    )
    if f.fixtures:
        yield Finding("fixtures", 0, _fixtures(f))


def _fixtures(f: Figures) -> str:
    """Where nothing is looked for, in words."""
    places = [f"top {top}, left {left}, {height}x{width}" for top, left, height, width in f.fixtures]
    named = "; ".join(places[:MOST_NAMED])
    more = f"; and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    count = "1 place is" if len(places) == 1 else f"{len(places)} places are"
    return f"{count} left out as fixtures, such as counters: {named}{more}"


def mostly_unused(f: Figures) -> bool:
    """Whether prototypes are not needed; of a few objects, many prototypes would not be seen in any case."""
    return f.in_use < WRONG * f.prototypes and f.objects * f.images >= ENOUGH * f.prototypes


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


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
