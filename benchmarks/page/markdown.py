"""Markdown: tables, and how figures are written.

A section gets numbered lines, and every row of a table ends with the number of the line that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.lines import Line

Numbered = Sequence[tuple[int, Line]]
Row = dict[str, Any]
FROM = "from"
"""The column of these numbers."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; nothing where it has no rows."""
    if not rows:
        return ""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)) + "\n\n"


def section(title: str, *parts: str) -> str:
    """A section of the page; nothing where there is nothing to show."""
    text = "".join(parts)
    return f"## {title}\n\n{text}" if text else ""


def of(lines: Numbered, benchmark: str) -> Iterator[tuple[int, Line]]:
    """The lines of a benchmark."""
    return ((n, line) for n, line in lines if line["benchmark"] == benchmark)


def number(value: float | None, form: str) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else f"{value:{form}}"


def minutes(row: Row) -> str:
    """Wall-clock time with several threads, processor time with one: others may have shared the machine then."""
    if row.get("threads", 1) == 1:
        return f"{row['core_minutes']:.1f} (1 thread)"
    return f"{row['minutes']:.1f} ({row['threads']} threads)"


def trial(line: Line) -> str:
    """What a line of a mere trial is marked with."""
    return " **(trial)**" if any(name.startswith("trial_of") for name in line) else ""
