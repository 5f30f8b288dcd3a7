"""Evaluation: how well a model explains scenes, and how fast."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray

from pcdnet.data.opening import to_scenes
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError, Setting
from pcdnet.metrics import (
    DetectionScores,
    Found,
    Matches,
    Scores,
    box_iou,
    combined,
    found_objects,
    mask_iou,
    match_scene,
    score,
    score_detections,
)
from pcdnet.model.network import CHUNK, PCDNet
from pcdnet.progress import counting
from pcdnet.run import RunFolder
from pcdnet.scene import Boxes, Scenes


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Evaluation(DetectionScores):
    """Scores of a model on scenes; those that need the ground truth are None where it is not known.

    Detection is scored by boxes where these are known, by the masks of labels elsewhere, and objects are ranked by
    their error reduction.
    """

    scenes: int
    """How many scenes were scored."""
    fg_ari: float | None = None
    """Adjusted Rand index on the true foreground."""
    ari: float | None = None
    """Adjusted Rand index on all pixels."""
    miou: float | None = None
    """Mean intersection over union of the true objects with the predicted ones that match them best."""
    perfect: float | None = None
    """Share of scenes with an FG-ARI of exactly 1."""
    mse: float
    """Mean squared error per pixel and channel."""
    objects: float
    """Mean number of objects found in an image."""
    at_limit: float = 0.0
    """Share of images with as many objects as the model may find."""
    limited: float = 0.0
    """The same without those that truly hold exactly so many: more objects might explain the others better."""
    parameters: int
    """Numbers that the model has learned."""
    images_per_second: float
    """Images decomposed in a second."""
    seconds: float
    """Time of the decomposition."""

    def __repr__(self) -> str:
        return f"Evaluation({self.scenes:,} scenes  {self})"

    def __str__(self) -> str:
        """The scores that matter, in one line: FG-ARI or, where only boxes are known, F1 and AP50."""
        parts = []
        if self.fg_ari is not None and self.perfect is not None:
            parts = [f"FG-ARI {self.fg_ari:.4f}", f"perfect {100 * self.perfect:.1f} %"]
        elif self.f1 is not None:
            parts = [f"F1 {self.f1:.4f}", *([] if self.ap50 is None else [f"AP50 {self.ap50:.4f}"])]
        return "  ".join([*parts, f"MSE {small(self.mse)}", f"{self.objects:.2f} objects per image"])

    def to_dict(self) -> dict[str, Any]:
        """The scores by name."""
        return dataclasses.asdict(self)


def evaluate(
    source: PCDNet | RunFolder | str | Path,
    data: str | Path | NDArray[np.generic] | Scenes | None = None,
    *,
    refined: bool = True,
) -> Evaluation:
    """Decompose scenes and score the result; nothing in the model changes.

    Scenes are taken a few at a time, and only numbers are kept of them. The time is that of the decomposition alone.

    Parameters
    ----------
    source
        The model to score, or a run: its folder, or a RunFolder.
    data
        Scenes; or images as an array, a name or a path, as `fit` takes them; by default scenes of the run's own data
        that it did not learn from. Scores that need the ground truth are None where it is not known.
    refined
        Whether badly explained images are searched again; without it, selection is plain greedy.

    Returns
    -------
    Evaluation
        All scores; `to_dict` gives them by name.

    Examples
    --------
    >>> from pcdnet import ModelConfig, PCDNet
    >>> scores = evaluate(PCDNet(ModelConfig(num_prototypes=2)), np.zeros((3, 35, 35, 3), np.uint8))
    >>> scores.scenes, scores.objects, scores.fg_ari
    (3, 0.0, None)
    """
    model, scenes = opened(source, data)
    _check(scenes)
    counted = _counted_kinds(scenes)
    tally, seconds = _Tally(), 0.0
    parts = [slice(start, start + CHUNK) for start in range(0, len(scenes), CHUNK)]
    for where in counting(parts, len(parts), "scoring scenes, part"):
        part = scenes.part(where)
        begun = time.perf_counter()
        found = model.decompose_all(np.asarray(part.images), refined=refined)
        seconds += time.perf_counter() - begun
        tally.add(part, found, counted)
    numbers = np.array(tally.objects)
    full = numbers >= model.max_objects_in((scenes.images.shape[1], scenes.images.shape[2]))
    return Evaluation(
        scenes=len(scenes),
        **tally.scores(scenes.kinds),
        mse=float(np.mean(tally.errors)) / scenes.images[0].size,
        objects=float(numbers.mean()),
        at_limit=float(np.mean(full)),
        limited=float(np.mean(full & (numbers != tally.true_counts) if tally.true_counts else full)),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        images_per_second=len(scenes) / seconds,
        seconds=seconds,
    )


def opened(
    source: PCDNet | RunFolder | str | Path, data: str | Path | NDArray[np.generic] | Scenes | None
) -> tuple[PCDNet, Scenes]:
    """The model, and the scenes to score it on."""
    if not isinstance(source, PCDNet):
        run = RunFolder.open(source)
        return run.load_model(), run.held_out(data) if isinstance(data, str | Path | None) else to_scenes(data)
    if data is None:
        raise PcdnetError("a model alone has no scenes; give ", Setting("data"))
    return source, to_scenes(data)


def small(value: float) -> str:
    """A loss or an error in few digits."""
    return f"{value:.4f}" if value >= 0.001 or value == 0 else f"{value:.1e}"


@dataclass(kw_only=True)
class _Tally:
    """What is kept of the scenes that were decomposed so far."""

    errors: list[float] = field(default_factory=list)
    objects: list[int] = field(default_factory=list)
    true_counts: list[int] = field(default_factory=list)
    segmentation: list[Scores] = field(default_factory=list)
    matches: list[Matches] = field(default_factory=list)

    def add(self, scenes: Scenes, found: Sequence[Decomposition], counted: Bool[np.ndarray, "kinds"]) -> None:
        """Add some scenes and their decompositions."""
        self.errors += [thing.error for thing in found]
        self.objects += [len(thing) for thing in found]
        if scenes.labels is not None:
            self.segmentation.append(score(scenes.labels, [thing.instances for thing in found]))
        if scenes.boxes is not None:
            new = [_match_boxes(*pair, counted) for pair in zip(found, scenes.boxes, strict=True)]
        elif scenes.labels is not None:
            new = [_match_masks(thing, labels) for thing, labels in zip(found, scenes.labels, strict=True)]
        else:
            return
        self.matches += new
        self.true_counts += [len(scene.kinds) for scene in new]

    def scores(self, kinds: tuple[str, ...]) -> dict[str, Any]:
        """Every score that the ground truth allows, by its name; labels decide on the count where boxes do so too."""
        known: dict[str, Any] = {}
        if self.matches:
            known |= dataclasses.asdict(score_detections(self.matches, kinds))
        if self.segmentation:
            known |= dataclasses.asdict(combined(self.segmentation))
        return {name: value for name, value in known.items() if name != "scenes"}


def _seen(found: Decomposition) -> Found:
    return found_objects(found.instances, found.prototype_ids, found.error_reductions)


def _match_boxes(found: Decomposition, true: Boxes, counted: Bool[np.ndarray, "kinds"]) -> Matches:
    seen = _seen(found)
    counts = counted[true.kinds] if len(counted) else None
    return match_scene(seen, box_iou(seen.boxes, true.corners), kinds=true.kinds, counted=counts)


def _match_masks(found: Decomposition, labels: np.ndarray) -> Matches:
    return match_scene(_seen(found), mask_iou(labels, found.instances).T)


def _counted_kinds(scenes: Scenes) -> Bool[np.ndarray, "kinds"]:
    """Which kinds the scores are about."""
    unknown = sorted(set(scenes.scored) - set(scenes.kinds))
    if unknown:
        raise PcdnetError(
            f"{', '.join(unknown)} should be scored, but the kinds are {', '.join(scenes.kinds) or 'not named'}; "
            f"name kinds that there are in Scenes.scored"
        )
    return np.array([not scenes.scored or kind in scenes.scored for kind in scenes.kinds], dtype=bool)


def _check(scenes: Scenes) -> None:
    """Refuse scenes whose images and ground truth do not fit each other."""
    if len(scenes) == 0:
        raise PcdnetError("there are 0 scenes to score; give at least one")
    for name, known in (("label maps", scenes.labels), ("lists of boxes", scenes.boxes)):
        if known is not None and len(known) != len(scenes):
            raise PcdnetError(f"there are {len(known)} {name} for {len(scenes)} images; give one for every image")
    if not scenes.kinds:
        return
    for index, boxes in enumerate(scenes.boxes or ()):
        wrong = boxes.kinds[(boxes.kinds < 0) | (boxes.kinds >= len(scenes.kinds))]
        if len(wrong):
            raise PcdnetError(
                f"a box of scene {index} is of kind {wrong[0]}, and {len(scenes.kinds)} kinds are named; "
                f"use numbers of 0 to {len(scenes.kinds) - 1}"
            )
