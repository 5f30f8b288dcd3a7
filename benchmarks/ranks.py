"""Ranks: whether several processes learn what one learns, step by step, and how fast.

    python -m benchmarks.ranks --steps 200

Tetrominoes, with closed-form colours and with the colour network: one process and torchrun's two, one thread each. Then
once more with two, with one, and with two again. One JSON line: the largest relative difference of the losses of any
step, whether the weights are the same bytes, FG-ARI on fresh scenes, and images per second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.provenance import ROOT, Start

COLOURS = ("least_squares", "network")
FRESH = 1000
"""Scenes that are scored."""


def main() -> None:
    """Run the benchmark, or one rank of a training of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--scenes", type=int, default=2000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--learn", metavar="OUT", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--colour", choices=COLOURS, default=COLOURS[0], help=argparse.SUPPRESS)
    parser.add_argument("--until", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.learn is not None:
        learn(asked.learn, asked.colour, asked.steps, asked.scenes, asked.until)
        return
    start, figures = Start.now(), {}
    with tempfile.TemporaryDirectory() as folder:
        for colour in COLOURS:
            figures[colour] = compared(Path(folder) / colour, colour, asked)
    start.close({"benchmark": "ranks", "steps": asked.steps, "scenes": asked.scenes, "ranks": asked.ranks, **figures})


def compared(folder: Path, colour: str, asked: argparse.Namespace) -> dict[str, Any]:
    """One process, several, and several that are stopped twice and go on in another number."""
    third = asked.steps // 3
    plans = {
        "one": [(1, None)],
        "several": [(asked.ranks, None)],
        "broken": [(asked.ranks, third), (1, 2 * third), (asked.ranks, None)],
    }
    for name, parts in plans.items():
        for ranks, until in parts:
            launch(folder / name, colour, asked, ranks, until)
    curves = {name: json.loads((folder / f"{name}.json").read_text()) for name in plans}
    weights = {name: (folder / name / "weights.safetensors").read_bytes() for name in plans}
    return {
        "difference": difference(curves["one"], curves["several"]),
        "difference_broken": difference(curves["one"], curves["broken"]),
        "same_weights": weights["one"] == weights["several"],
        "same_weights_broken": weights["one"] == weights["broken"],
        **{f"fg_ari_{name}": scored(folder / name) for name in plans},
        **{f"images_per_second_{name}": curves[name]["images_per_second"] for name in ("one", "several")},
    }


def launch(out: Path, colour: str, asked: argparse.Namespace, ranks: int, until: int | None) -> None:
    """Train with so many processes."""
    program = [sys.executable]
    if ranks > 1:
        program += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    words = ["--learn", str(out), "--colour", colour, "--steps", str(asked.steps), "--scenes", str(asked.scenes)]
    words += [] if until is None else ["--until", str(until)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*program, "-m", "benchmarks.ranks", *words], cwd=ROOT, env=environment, check=True)


def learn(out: Path, colour: str, steps: int, count: int, until: int | None) -> None:
    """Train, or go on, up to a step, and note the loss of every step."""
    from pcdnet.data import tetrominoes
    from pcdnet.errors import Elsewhere, Interrupted
    from pcdnet.run import RunFolder
    from pcdnet.scene import Scenes
    from pcdnet.training.fit import fit
    from pcdnet.training.launch import present_rank
    from pcdnet.training.loop import Progress, Trainer

    kept = out.with_suffix(".json")
    noted = json.loads(kept.read_text()) if kept.is_file() else {"losses": []}
    made = tetrominoes.generate(count, 0)
    log = Trainer._log

    def note(trainer: Trainer, progress: Progress, rate: float, last: bool) -> None:
        noted["losses"].append(progress.loss)
        noted["images_per_second"] = progress.images_per_second
        log(trainer, progress, rate, last)

    Trainer._log = note  # type: ignore[method-assign,assignment]
    with suppress(Interrupted, Elsewhere):
        fit(
            Scenes(images=made.images, labels=made.labels, name="tetrominoes"),
            "tetrominoes",
            changes={"model.colour": colour, "train.steps": steps, "train.validate_every": steps},
            out=out,
            resume=(out / "config.toml").is_file() and present_rank() == 0,
            quiet=True,
            stop=lambda: until is not None and len(noted["losses"]) >= until,
        )
    if present_rank() == 0:
        assert RunFolder.open(out).has_state
        kept.write_text(json.dumps(noted))


def difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference of the losses of any step."""
    pairs = zip(one["losses"], other["losses"], strict=True)
    return max(float(abs(a - b) / a) for a, b in pairs)


def scored(folder: Path) -> float | None:
    """FG-ARI of a run on fresh scenes."""
    import pcdnet
    from pcdnet.data import tetrominoes

    return pcdnet.evaluate(pcdnet.load(folder), tetrominoes.generate(FRESH, 10**6)).fg_ari


if __name__ == "__main__":
    main()
