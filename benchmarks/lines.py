"""Lines: what the benchmarks printed last, kept in docs/results.jsonl, one JSON object a line.

A line that is put in takes the place of what it measured again: of some rows of an older line, or of all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pcdnet.config import RENAMED
from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file

NAME = "results.jsonl"
ROWS = {"learning": "seed", "real": "data", "own": "set", "atari": "game"}
"""Benchmarks whose rows can be measured one by one, and what tells these apart; elsewhere a line is one measurement."""

Line = dict[str, Any]


def renamed(change: str) -> str:
    """A change of a field, such as train.steps=600, by the name that the field has now."""
    field, _, value = change.partition("=")
    section = field.partition(".")[0]
    return f"{section}.{RENAMED[field]}={value}" if field in RENAMED else change


def key_of(line: Line) -> str:
    """What two lines have in common if they measured the same, or rows of the same table."""
    return json.dumps([line["benchmark"], line.get("preset"), [*map(renamed, line.get("set", []))], line.get("seed")])


def read(folder: Path) -> list[Line]:
    """The lines kept in a folder; none where there is no file yet."""
    path = folder / NAME
    return [parsed(text, str(path)) for text in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def parsed(text: str, where: str) -> Line:
    """A closing line of a benchmark."""
    try:
        line = json.loads(text)
    except json.JSONDecodeError:
        line = None
    if not isinstance(line, dict) or "benchmark" not in line:
        raise PcdnetError(
            f"{where} does not end with the closing line of a benchmark, but with {text[:80]!r}; run it anew"
        )
    return line


def put(lines: Iterable[Line], new: Line) -> list[Line]:
    """The lines with a new one, in their order."""
    name = ROWS.get(new["benchmark"])
    measured = {row[name] for row in new["rows"]} if name else set()
    kept = []
    for line in lines:
        if key_of(line) != key_of(new):
            kept.append(line)
        elif name and (left := [row for row in line["rows"] if row[name] not in measured]):
            kept.append({**line, "rows": left})
    return sorted([*kept, new], key=lambda line: (key_of(line), _first(line)))


def _first(line: Line) -> tuple[int, str]:
    """What the first row of a line is about: seeds as numbers, all else as words."""
    name, rows = ROWS.get(line["benchmark"]), line.get("rows")
    first = rows[0][name] if name and rows else 0
    return (first, "") if isinstance(first, int) else (0, first)


def write(lines: Iterable[Line], folder: Path) -> None:
    """Keep the lines, all or none."""
    with whole_file(folder / NAME) as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
