"""Real scenes: learn from recorded Space Invaders games and from traffic cameras, and score on what was held out.

usage: python -m benchmarks.real [--data space-invaders us101-a us101-b] [--paper] [--seed S] [--frames N] [--out DIR]
                                 [--pictures FOLDER]

The frames of the cameras lie in ../shared, which is not part of the project; without it they are left out. Runs are
kept in the folder DIR, if one is named. Scenes that were held out are drawn decomposed, with the prototypes, as
real-DATA[-paper]-SEED.png in FOLDER, if one is named.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.provenance import Start
from pcdnet.config import Config
from pcdnet.data.opening import open_data, training_data
from pcdnet.data.sources import TEST_SEED
from pcdnet.data.view import View
from pcdnet.files import folder
from pcdnet.model.network import PCDNet
from pcdnet.output.drawing import figure
from pcdnet.output.figures import save_figure
from pcdnet.training.evaluation import evaluate
from pcdnet.training.fit import fit

SHARED = Path(__file__).resolve().parents[2] / "shared"
PRESET = {"space-invaders": "space-invaders", "us101-a": "ngsim", "us101-b": "ngsim"}
FRAMES = 600
"""Held-out frames of Space Invaders, from games that training did not see; of the cameras, all there are."""
FIGURES = ("precision", "recall", "f1", "f1_at_30", "ap50", "count_error", "purity", "semantic_accuracy")


def source_of(name: str) -> str:
    """Where the scenes of a data set come from, as `--data` takes it."""
    return name if name == "space-invaders" else str(SHARED / "data" / "ngsim" / name)


def one(name: str, config: Config, out: Path, frames: int = FRAMES) -> dict[str, Any]:
    """Train on one data set; all figures."""
    source = source_of(name)
    train, valid = training_data(source, seed=config.train.seed)
    start, busy = time.perf_counter(), time.process_time()
    model = fit(train, config, validation=valid, out=out / name, force=True, quiet=True)
    minutes, busy = (time.perf_counter() - start) / 60, (time.process_time() - busy) / 60
    return {
        **scored(model, source, name, frames),
        "seed": config.train.seed,
        "minutes": minutes,
        "core_minutes": busy,
        "threads": torch.get_num_threads(),
    }


def scored(model: PCDNet, source: str, name: str, frames: int = FRAMES) -> dict[str, Any]:
    """All figures of a model on what was held out.

    On one thread the speed is that of a processor that does nothing else: where others share it, the clock misleads.
    """
    view = View(grey=model.config.channels == 1)
    scenes = open_data(source, count=frames, seed=TEST_SEED, view=view)
    start, busy = time.perf_counter(), time.process_time()
    scores = evaluate(model, scenes).to_dict()
    share = (time.process_time() - busy) / (time.perf_counter() - start) if torch.get_num_threads() == 1 else 1
    aliens = tuple(kind for kind in scenes.kinds if kind.startswith("alien"))
    return {
        "data": name,
        "frames": len(scenes),
        **{key: scores[key] for key in FIGURES},
        "purity_of_aliens": evaluate(model, replace(scenes, scored=aliens)).purity if aliens else None,
        "recall_by_kind": scores["recall_by_kind"],
        "objects": scores["objects"],
        "frames_per_second": scores["images_per_second"] / share,
        "parameters": scores["parameters"],
    }


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__, formatter_class=form)
    parser.add_argument("--data", nargs="+", default=list(PRESET), choices=list(PRESET))
    parser.add_argument("--paper", action="store_true", help="the paper's recipe: the presets -paper")
    parser.add_argument("--seed", type=int, help="seed of training; by default the preset's")
    parser.add_argument("--frames", type=int, default=FRAMES, help="held-out frames to score on, at most")
    parser.add_argument("--out", type=Path, help="folder to keep runs in")
    parser.add_argument("--pictures", type=Path, help="folder to draw decomposed scenes in")
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)  # to try the benchmark itself
    return parser


def main() -> None:
    """Print a line of JSON for every data set, then all in one."""
    start, arguments = Start.now(), parser().parse_args()
    given = {"train.seed": arguments.seed, "train.steps": arguments.steps}
    changes = {name: value for name, value in given.items() if value is not None}
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.data:
            if name != "space-invaders" and not Path(source_of(name)).is_dir():
                print(f"{name} is left out: its frames are not beside the project")
                continue
            config = Config.preset(PRESET[name] + "-paper" * arguments.paper).with_fields(changes)
            runs = arguments.out or Path(temporary)
            row = one(name, config, runs, arguments.frames)
            if arguments.pictures is not None:
                row["picture"] = f"real-{name}{'-paper' * arguments.paper}-{config.train.seed}.png"
                view = View(grey=config.model.channels == 1)
                drawn = figure(runs / name, "segmentation", source_of(name), count=2, view=view)
                save_figure(drawn, folder(arguments.pictures) / row["picture"])
            rows.append(row)
            print(json.dumps(row), flush=True)
    trial = {} if arguments.steps is None else {"trial_of_steps": arguments.steps}
    # What is not said is left out: lines of the default are the same measurement as older ones.
    preset = {"preset": "paper"} if arguments.paper else {}
    seed = {} if arguments.seed is None else {"seed": arguments.seed}
    start.close({"benchmark": "real", **preset, **seed, **trial, "rows": rows})


if __name__ == "__main__":
    main()
