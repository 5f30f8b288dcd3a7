"""`pcdnet eval`: how well a run explains scenes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pcdnet.cli.arguments import DataName, Device, RunFolder
from pcdnet.cli.origin import Origin

if TYPE_CHECKING:
    from pcdnet.training.evaluation import Evaluation

KEYS = ("scenes", "fg_ari", "ari", "mse", "count_accuracy", "miou", "perfect")
DETECTION = ("precision", "recall", "f1", "ap50")
COSTS = ("parameters", "images_per_second", "seconds")


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Score a run on scenes; the generated ones are new to it."""

    folder: RunFolder

    data: DataName = "tetrominoes"

    limit: int = 1000
    """How many scenes at most."""

    seed: int = 3_000_000
    """Seed of generated scenes; the default shares none with training."""

    json: bool = False
    """Print one JSON object instead of a table; what cannot be known without the truth is null."""

    device: Device = "cpu"

    def run(self) -> None:
        """Do it."""
        from pcdnet.cli.model import load_model
        from pcdnet.data.source import is_generated, open_data
        from pcdnet.training.evaluation import evaluate

        model = load_model(self.folder, self.device)
        scenes = open_data(self.data, count=self.limit, seed=self.seed)
        if not is_generated(self.data) and self.data == Origin.read(self.folder).data:
            print(
                f"note: {self.folder} was trained on {self.data}, so most of these scenes are not new", file=sys.stderr
            )
        scores = evaluate(model, scenes)
        if self.json:
            print(json.dumps(as_json(scores)))
        else:
            print(table(f"{self.folder} on {scenes.name}", scores))


def as_json(scores: Evaluation) -> dict[str, Any]:
    """The scores with the names of the command's contract."""
    known = scores.to_dict()
    return {key: known.get(key) for key in (*KEYS, *DETECTION, *COSTS)}


def table(title: str, scores: Evaluation) -> str:
    """The scores as lines for people; those that are not known are left out."""
    shares = {
        "FG-ARI": scores.fg_ari,
        "ARI": scores.ari,
        "mIoU": scores.miou,
        "count accuracy": scores.count_accuracy,
        "perfect scenes": scores.perfect,
    }
    lines = [title, "", f"  {'scenes':<16}{scores.scenes:>9,}"]
    lines += [f"  {name:<16}{100 * share:>9.2f} %" for name, share in shares.items() if share is not None]
    lines.append(f"  {'MSE':<16}{scores.mse:>9.2g}")
    lines.append(f"  {'objects':<16}{scores.objects:>9.2f} per image")
    lines.append(f"  {'parameters':<16}{scores.parameters:>9,}")
    lines.append(f"  {'speed':<16}{scores.images_per_second:>9,.0f} images/s")
    return "\n".join(lines)
