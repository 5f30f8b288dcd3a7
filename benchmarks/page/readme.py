"""Readme: the tables of README.md that show figures of the results page, filled in anew from its lines.

What stands in the first column says which figures a row is about; all else of a row is written by `make results`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from benchmarks.lines import Line
from benchmarks.page.markdown import minutes

Cells = Callable[[str, Sequence[Line]], list[str] | None]
"""The cells of a row beside its first, which names it; None where no line has them."""

BANKS = {
    "true prototypes, greedy": ("true prototypes", "greedy"),
    "true prototypes, with": ("true prototypes", "refined"),
    "the authors'": ("authors' released bank", "refined"),
}
"""How rows about given prototypes begin, and the bank and search that they are about."""
JOBS = {"inference": "inference", "forward and backward": "forward+backward"}
COLOURS = {"closed-form colour": "least_squares", "colour network": "network"}


def _rows(lines: Sequence[Line], benchmark: str, **settings: Any) -> list[dict[str, Any]]:
    """All rows of a benchmark with these settings."""
    found = [line for line in lines if line["benchmark"] == benchmark]
    return [row for line in found if all(line.get(k) == v for k, v in settings.items()) for row in line["rows"]]


def _given(name: str, lines: Sequence[Line]) -> list[str] | None:
    bank, search = next(kind for beginning, kind in BANKS.items() if name.startswith(beginning))
    kinds = [row for row in _rows(lines, "quality") if (row["bank"], row["search"]) == (bank, search)]
    rows = [row for row in kinds if row["seed"] != "genuine"]
    return [f"{fmean(row[each] for row in rows):.4f}" for each in ("fg_ari", "count_accuracy")] if rows else None


def _learned(name: str, lines: Sequence[Line]) -> list[str] | None:
    rows = [row for row in _rows(lines, "learning", preset="tetrominoes", set=[]) if f"seed {row['seed']}" == name]
    if not rows:
        return None
    row = rows[0]
    shapes = f"{row['shapes']:.0f} of 19, {row['least_iou']:.2f}"
    return [f"{row['fg_ari']:.4f}", f"{100 * row['perfect']:.1f} %", shapes, _clock(row)]


def _speed(name: str, lines: Sequence[Line]) -> list[str] | None:
    job, colour = name.split(", ")
    for line in lines:
        if line["benchmark"] == "speed":
            figures = line["tetrominoes"][f"{JOBS[job]} {COLOURS[colour]}"]
            return [f"{figures['engine']:,.0f}", f"{figures['oracle']:.1f}", f"{figures['ratio']:.0f}x"]
    return None


def _real(name: str, lines: Sequence[Line]) -> list[str] | None:
    for row in _rows(lines, "real", preset=None):
        if row["data"] in name or (row["data"] == "space-invaders" and name.startswith("Space Invaders")):
            scores = [f"{row[score]:.3f}" for score in ("f1", "ap50")]
            return [*scores, f"{row['frames_per_second']:.0f}", f"{_clock(row)} minutes"]
    return None


def _clock(row: dict[str, Any]) -> str:
    """The minutes of a row without the number of threads, of which the README speaks elsewhere."""
    return minutes(row).split(" ")[0]


TABLES: dict[str, Cells] = {
    "| given prototypes": _given,
    "| learned from scratch": _learned,
    "| images/s, batch 64": _speed,
    "| | F1 at IoU 0.5 |": _real,
}
"""How the head of each table begins, and what makes its rows."""


def filled(text: str, lines: Sequence[Line]) -> str:
    """The README with the figures of these lines; rows that no line is about stay."""
    made, cells = [], None
    for row in text.splitlines():
        head = next((head for head in TABLES if row.startswith(head)), None)
        if head is not None or not row.startswith("|"):
            cells = TABLES[head] if head is not None else None
        elif cells is not None and not row.startswith("|-"):
            name = row.strip("|").split("|")[0].strip()
            found = cells(name, lines)
            row = row if found is None else f"| {' | '.join([name, *found])} |"
        made.append(row)
    return "\n".join(made) + "\n"
