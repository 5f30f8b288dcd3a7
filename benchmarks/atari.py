"""Atari: learn five games from frames of random play by the automatic path alone, and score frames of other games.

usage: python -m benchmarks.atari [GAME ...] [--seed S] [--keep DIR]

Frames, true boxes and the rule they are scored by lie in ../shared/data/atari, which is not part of the project; games
that are not there are left out. What was learned and found is kept in a folder for each game, if DIR is given.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.own import automatic
from benchmarks.provenance import Start

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "atari"
WANTED = {"pong": 95.0, "freeway": 97.0, "asterix": 93.0, "seaquest": 90.0, "skiing": 95.0}
"""F1 of place and kind that is wanted, in percent."""


def one(game: str, folder: Path, seed: int, minutes: float | None = None) -> dict[str, Any]:
    """Learn and score one game; all figures. `minutes` are for trials only."""
    folder.mkdir(parents=True)
    test = SHARED / game / "test.npz"
    with np.load(test, allow_pickle=False) as held_out:
        frames = len(held_out["image"])
    outcome = automatic.run(SHARED / game / "train.npz", test, frames, folder, seed, minutes)
    scores = scored(test, folder / "results" / "decompositions.jsonl")
    return {
        "game": game,
        "reached": scores.get("f1_place_and_kind", 0.0) >= WANTED[game],
        "wanted": WANTED[game],
        **scores,
        "prototypes": outcome.prototypes,
        "frames": frames,
        "minutes": outcome.minutes,
        "core_minutes": outcome.core_minutes,
        "frames_per_second": reported_speed(folder / "decompose.log"),
        "problems": outcome.problems,
    }


def scored(test: Path, found: Path) -> dict[str, Any]:
    """What the data's own script says of the objects found; nothing where there are no results."""
    if not found.is_file():
        return {}
    done = subprocess.run(
        [sys.executable, str(SHARED / "score.py"), str(test), str(found)], check=True, capture_output=True, text=True
    )
    scores: dict[str, Any] = json.loads(done.stdout)
    return scores


def reported_speed(log: Path) -> float:
    """Frames in a second as `decompose` reports them, the start of the program not included; 0 where it failed."""
    reported = re.search(r"([\d.,]+) images/s", log.read_text(encoding="utf-8")) if log.is_file() else None
    return float(reported[1].replace(",", "")) if reported is not None else 0.0


def in_words(row: dict[str, Any]) -> str:
    """The line of a game: the figures that matter, what is wanted of them, and what failed."""
    place, kind = row.get("f1_place", 0.0), row.get("f1_place_and_kind", 0.0)
    parts = [
        f"{row['game']:10}{'reached' if row['reached'] else 'missed':8}",
        f"F1 of place {place:.1f}",
        f"of place and kind {kind:.1f} (wanted {row['wanted']:g})",
        f"{row['prototypes']} prototypes, {row['core_minutes']:.1f} CPU minutes",
        f"{row['frames_per_second']:.0f} frames/s",
    ]
    return "  ".join([*parts, *row["problems"]])


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.atari", description=__doc__, formatter_class=form)
    parser.add_argument("games", nargs="*", metavar="GAME", help=f"{', '.join(WANTED)}; all by default")
    parser.add_argument("--seed", type=int, default=0, help="seed of training")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder to keep runs and results in")
    parser.add_argument("--minutes", type=float, help=argparse.SUPPRESS)  # to try the benchmark itself
    return parser


def main() -> None:
    """Print a line for every game, then one JSON line with all figures."""
    start, asked = Start.now(), parser()
    arguments = asked.parse_args()
    games = arguments.games or list(WANTED)
    if unknown := [game for game in games if game not in WANTED]:
        asked.error(f"there is no game {unknown[0]!r}; use some of {', '.join(WANTED)}")
    if there := [game for game in games if arguments.keep and (arguments.keep / game).exists()]:
        asked.error(f"{arguments.keep / there[0]} is there already; use another folder for --keep")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for game in games:
            if not (SHARED / game / "test.npz").is_file():
                print(f"{game} is left out: its frames are not beside the project, in ../shared/data/atari")
                continue
            rows.append(one(game, (arguments.keep or Path(folder)) / game, arguments.seed, arguments.minutes))
            print(in_words(rows[-1]), flush=True)
    trial = {} if arguments.minutes is None else {"trial_of_minutes": arguments.minutes}
    start.close({"benchmark": "atari", "seed": arguments.seed, **trial, "rows": rows})


if __name__ == "__main__":
    main()
