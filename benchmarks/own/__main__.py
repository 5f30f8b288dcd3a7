"""Own pictures: make sets as users bring them, learn each by the automatic path alone, and score what is found.

usage: python -m benchmarks.own [SET ...] [--seed S] [--keep DIR]

icons    9 kinds in random colours on plain paper; the bank should hold one prototype a kind, and nothing else
sheet    one picture of 2000x2000, scored in one piece by the count of each kind
coins    the photograph of 24 coins that scikit-image ships, learned from and scored on itself
text     pages of proportional letters of two fonts in uneven light, with noise
spots    16-bit pictures of spots and rods; scored by the distance of centres
film     sprites over a textured ground, seen by a camera that moves
overlap  pairs of icons; scored by which of them is in front

Sheet, coins and film are scored on what was learned from, the others on pictures that training never saw. What was
made, learned and found is kept in a folder for each set, if DIR is given.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.own import automatic, coins, film, icons, overlap, scoring, sheet, spots, text
from benchmarks.own.automatic import Outcome
from benchmarks.own.pictures import Pictures
from benchmarks.provenance import Start

UNSEEN = 1_000_000
"""What is added to the seed for pictures that training does not see."""


@dataclass(frozen=True, slots=True)
class Set:
    """How a set is made and scored, and what is wanted of it."""

    make: Callable[[int], Pictures]
    """The pictures of a seed to learn from."""
    score: Callable[[Pictures, Outcome], dict[str, Any]]
    """The figures."""
    wanted: dict[str, tuple[float, float]]
    """Figures, and between which values they should be."""
    unseen: Callable[[int], Pictures] | None = None
    """The pictures of a seed to score on, where they are others."""
    film: bool = False
    """Whether the pictures are the frames of a film."""


SETS = {
    "icons": Set(
        lambda seed: icons.make(300, seed),
        scoring.icons,
        {"kinds_found": (9, 9), "junk": (0, 0), "doubles": (0, 0), "f1": (0.98, 1)},
        lambda seed: icons.make(100, seed),
    ),
    "sheet": Set(sheet.make, scoring.sheet, {"count_error": (0, 0)}),
    "coins": Set(lambda seed: coins.make(), scoring.plain, {"count": (23, 25), "f1": (0.9, 1)}),  # noqa: ARG005
    "text": Set(
        lambda seed: text.make(30, seed),
        scoring.plain,
        {"f1": (0.9, 1), "purity": (0.9, 1)},
        lambda seed: text.make(10, seed),
    ),
    "spots": Set(lambda seed: spots.make(60, seed), scoring.spots, {"f1": (0.9, 1)}, lambda seed: spots.make(20, seed)),
    "film": Set(lambda seed: film.make(200, seed), scoring.plain, {"f1": (0.9, 1)}, film=True),
    "overlap": Set(
        lambda seed: overlap.make(200, seed),
        scoring.depth,
        {"front_right": (0.97, 1)},
        lambda seed: overlap.make(100, seed),
    ),
}


def one(name: str, folder: Path, seed: int, minutes: float | None) -> dict[str, Any]:
    """Make, learn and score one set; all figures."""
    chosen = SETS[name]
    folder.mkdir(parents=True)
    pictures = chosen.make(seed)
    learn = score = automatic.write(pictures, folder / ("film.mp4" if chosen.film else "pictures"))
    if chosen.unseen is not None:
        pictures = chosen.unseen(seed + UNSEEN)
        score = automatic.write(pictures, folder / "unseen")
    outcome = automatic.run(learn, score, len(pictures.images), folder, seed, minutes)
    figures = chosen.score(pictures, outcome)
    return {
        "set": name,
        "reached": all(least <= figures[key] <= most for key, (least, most) in chosen.wanted.items()),
        **figures,
        "prototypes": outcome.prototypes,
        "pictures": len(pictures.images),
        "minutes": outcome.minutes,
        "core_minutes": outcome.core_minutes,
        "images_per_second": outcome.images_per_second,
        "problems": outcome.problems,
    }


def in_words(row: dict[str, Any]) -> str:
    """The line of a set: the figures that matter, what is wanted of them, and what failed."""
    wanted = SETS[row["set"]].wanted
    parts = [f"{key.replace('_', ' ')} {_number(row[key])} ({_range(*wanted[key])})" for key in wanted]
    others = [
        f"{key.replace('_', ' ')} {_number(row[key])}"
        for key in ("pairs", "pairs_found", "f1", "count", "true")
        if key in row and key not in wanted
    ]
    times = f"{row['prototypes']} prototypes, {row['core_minutes']:.1f} CPU minutes"
    verdict = "reached" if row["reached"] else "missed"
    return "  ".join([f"{row['set']:8}{verdict:8}", *parts, *others, times, *row["problems"]])


def _number(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value}"


def _range(least: float, most: float) -> str:
    """What is wanted, in words."""
    return f"wanted {least:g}" if least == most else f"wanted {least:g} to {most:g}"


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own", description=__doc__, formatter_class=form)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)}; all by default")
    parser.add_argument("--seed", type=int, default=0, help="seed of the pictures and of training")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder to keep pictures, runs and results in")
    parser.add_argument("--minutes", type=float, help=argparse.SUPPRESS)  # to try the benchmark itself
    return parser


def main() -> None:
    """Print a line for every set, then one JSON line with all figures."""
    start, asked = Start.now(), parser()
    arguments = asked.parse_args()
    names = arguments.sets or list(SETS)
    if unknown := [name for name in names if name not in SETS]:
        asked.error(f"there is no set {unknown[0]!r}; use some of {', '.join(SETS)}")
    if there := [name for name in names if arguments.keep and (arguments.keep / name).exists()]:
        asked.error(f"{arguments.keep / there[0]} is there already; use another folder for --keep")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            rows.append(one(name, (arguments.keep or Path(folder)) / name, arguments.seed, arguments.minutes))
            print(in_words(rows[-1]), flush=True)
    trial = {} if arguments.minutes is None else {"trial_of_minutes": arguments.minutes}
    start.close({"benchmark": "own", "seed": arguments.seed, **trial, "rows": rows})


if __name__ == "__main__":
    main()
