"""`pcdnet eval`: how well a run explains scenes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pcdnet.cli.arguments import Device, RunArgument, RunData, ViewOptions
from pcdnet.data.notes import printable
from pcdnet.data.sources import TEST_SEED

if TYPE_CHECKING:
    from pcdnet.training.evaluation import Evaluation

CONTRACT = (
    *("scenes", "fg_ari", "ari", "mse", "count_accuracy", "miou", "perfect"),
    *("precision", "recall", "f1", "ap50", "parameters", "images_per_second", "seconds"),
)
"""The scores that programs rely on, in their order."""
LIMITED = 0.05
"""Share of images that the model's limit may have cut short, above which there is a warning."""


@dataclass(frozen=True, kw_only=True)
class Evaluate(ViewOptions):
    """Score a run on scenes that it did not learn from."""

    folder: RunArgument

    data: RunData = None

    limit: int = 1000
    """How many scenes at most."""

    seed: int = TEST_SEED
    """Seed of generated scenes; the default shares none with training."""

    json: bool = False
    """Print one JSON object instead of a table; what cannot be known without the ground truth is null."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.run import RunFolder
        from pcdnet.training.evaluation import evaluate

        run = RunFolder.open(self.folder)
        model = run.load_model(self.device)
        scenes = run.held_out(self.data, count=self.limit, seed=self.seed, view=self.view())
        scores = evaluate(model, scenes)
        warn_of_limit(scores, model.config.max_objects)
        if self.json:
            print(json.dumps(as_json(scores)))
        else:
            print(table(printable(f"{self.folder} on {scenes.name}"), scores))
            print(
                printable(
                    f"\nnext: pcdnet report {self.folder}, to look at the scenes and prototypes behind the scores"
                )
            )


def as_json(scores: Evaluation) -> dict[str, Any]:
    """The scores with the names of the command's contract, and then the further ones."""
    known = scores.to_dict()
    return {key: known[key] for key in dict.fromkeys((*CONTRACT, *known))}


def warn_of_limit(scores: Evaluation, limit: int) -> None:
    """Warn where the limit on objects may cut explanations short, if that is so for more than a few images."""
    if scores.limited > LIMITED:
        print(
            f"warning: more objects than {limit} may be needed for {100 * scores.limited:.0f} % of the images, in "
            f"which the model found as many as it may; train it with --model.max-objects {2 * limit}",
            file=sys.stderr,
        )


def table(title: str, scores: Evaluation) -> str:
    """The scores as lines for people, in groups; those that are not known are left out."""
    from pcdnet.output.scores import known_scores

    known = list(known_scores(scores.to_dict()))
    width = max(len(score.name) for score, _ in known) + 4
    lines = [f"{title}, {scores.scenes:,} scenes"]
    for group in ("", "segmentation", "detection", "kinds"):
        rows = [(score, number) for score, number in known if score.group == group]
        if rows:
            lines += ["", *([f"  {group}"] if group else [])]
            indent = "  " if group else ""
            lines += [f"  {indent + score.name:<{width}}{number:>9} {score.unit}".rstrip() for score, number in rows]
    return "\n".join(lines)
