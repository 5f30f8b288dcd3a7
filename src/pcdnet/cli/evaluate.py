"""`pcdnet eval`: how well a run explains scenes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pcdnet.cli.arguments import Device, RunFolder, ViewOptions
from pcdnet.cli.origin import Origin

if TYPE_CHECKING:
    from pcdnet.training.evaluation import Evaluation

KEYS = ("scenes", "fg_ari", "ari", "mse", "count_accuracy", "miou", "perfect")
DETECTION = ("precision", "recall", "f1", "ap50")
COSTS = ("parameters", "images_per_second", "seconds")
FURTHER = ("f1_at_30", "count_error", "count_bias", "purity", "semantic_accuracy", "recall_by_kind")
FOUND = ("objects", "at_limit", "limited")

Row = tuple[str, str | None, str]
"""A line of the table: what, how much if that is known, and its unit."""

LIMITED = 0.05
"""Share of images that the model's limit may have cut short, above which it is told."""


@dataclass(frozen=True, kw_only=True)
class Evaluate(ViewOptions):
    """Score a run on scenes; the generated ones are new to it."""

    folder: RunFolder

    data: Annotated[
        str | None, tyro.conf.arg(metavar="DATA", help_behavior_hint="(default: what the run was trained on)")
    ] = None
    """Scenes to score, named as for `pcdnet train`."""

    limit: int = 1000
    """How many scenes at most."""

    seed: int = 3_000_000
    """Seed of generated scenes; the default shares none with training."""

    json: bool = False
    """Print one JSON object instead of a table; what cannot be known without the truth is null."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.cli.model import load_model
        from pcdnet.data import folder
        from pcdnet.data.opening import open_data
        from pcdnet.data.sources import is_generated
        from pcdnet.training.evaluation import evaluate

        model = load_model(self.folder, self.device)
        origin = Origin.read(self.folder)
        trained_on = origin.data
        data = self.data or trained_on
        view = origin.view(data, self)
        scenes = open_data(data, count=self.limit, seed=self.seed, view=view)
        if data == trained_on and not is_generated(data) and not folder.parts(data):
            print(f"note: {self.folder} was trained on {data}, so most of these scenes are not new", file=sys.stderr)
        scores = evaluate(model, scenes)
        warning = limit_warning(scores, model.config.max_objects)
        if warning:
            print(warning, file=sys.stderr)
        if self.json:
            print(json.dumps(as_json(scores)))
        else:
            print(table(f"{self.folder} on {scenes.name}", scores))


def as_json(scores: Evaluation) -> dict[str, Any]:
    """The scores with the names of the command's contract, and then the further ones."""
    known = scores.to_dict()
    return {key: known[key] for key in (*KEYS, *DETECTION, *COSTS, *FURTHER, *FOUND)}


def limit_warning(scores: Evaluation, limit: int) -> str | None:
    """A warning where the limit on objects may cut explanations short, if that is so for more than a few images."""
    if scores.limited <= LIMITED:
        return None
    return (
        f"warning: more objects than {limit} may be needed for {100 * scores.limited:.0f} % of the images, in which "
        f"the model found as many as it may; train it with --model.max-objects {2 * limit}"
    )


def table(title: str, scores: Evaluation) -> str:
    """The scores as lines for people, in groups; those that are not known are left out."""
    groups = {
        "": _general(scores),
        "segmentation": _segmentation(scores),
        "detection": _detection(scores),
        "kinds": _kinds(scores),
    }
    known = {name: [row for row in rows if row[1] is not None] for name, rows in groups.items()}
    width = max(len(what) for rows in known.values() for what, _, _ in rows) + 4
    lines = [title]
    for name, rows in known.items():
        indent = "  " if name else ""
        if rows:
            lines += ["", *([f"  {name}"] if name else [])]
            lines += [f"  {indent + what:<{width}}{value:>9} {unit}".rstrip() for what, value, unit in rows]
    return "\n".join(lines)


def _general(scores: Evaluation) -> Iterator[Row]:
    yield "scenes", f"{scores.scenes:,}", ""
    yield "MSE", f"{scores.mse:.2g}", ""
    yield "objects", f"{scores.objects:.2f}", "per image"
    yield "parameters", f"{scores.parameters:,}", ""
    yield "speed", f"{scores.images_per_second:,.0f}", "images/s"


def _segmentation(scores: Evaluation) -> Iterator[Row]:
    yield _share("FG-ARI", scores.fg_ari)
    yield _share("ARI", scores.ari)
    yield _share("mIoU", scores.miou)
    yield _share("perfect scenes", scores.perfect)


def _detection(scores: Evaluation) -> Iterator[Row]:
    yield _share("precision", scores.precision)
    yield _share("recall", scores.recall)
    yield _share("F1", scores.f1)
    yield _share("F1 at IoU 0.3", scores.f1_at_30)
    yield _share("AP50", scores.ap50)
    yield _share("count accuracy", scores.count_accuracy)
    if scores.count_error is not None and scores.count_bias is not None:
        yield "count error", f"{scores.count_error:.2f}", f"per image, {scores.count_bias:+.2f} on the whole"


def _kinds(scores: Evaluation) -> Iterator[Row]:
    yield _share("purity", scores.purity)
    yield _share("semantic accuracy", scores.semantic_accuracy)
    for kind, recall in (scores.recall_by_kind or {}).items():
        yield _share(f"recall of {kind}", recall)


def _share(name: str, value: float | None) -> Row:
    return name, None if value is None else f"{100 * value:.2f}", "%"
