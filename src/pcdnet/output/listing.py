"""Listing: runs as a table for people, those of one configuration under one head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pcdnet.data.notes import printable, some
from pcdnet.output.runs import ListedRun, RunList, Seeds
from pcdnet.training.evaluation import small

MOST_CHANGES = 6
"""Fields of a configuration that are named at most."""
SHOWN = {"mse": "error", "fg_ari": "FG-ARI", "perfect": "perfect", "f1": "F1", "ap50": "AP50"}
"""The scores in the table, with their names there; detection is shown where no labels are known."""


def table(found: RunList) -> str:
    """All runs, by configuration, and the damaged ones at the end."""
    if not found.runs:
        return f"there is no run below {found.folder}"
    blocks = [_block(seeds, found.folder) for seeds in found.configurations]
    grouped = {id(run) for seeds in found.configurations for run in seeds.runs}
    others = [run for run in found.runs if id(run) not in grouped]
    if others:
        blocks.append(["damaged", *(f"  {_name(run.path, found.folder)}  {run.problem}" for run in others)])
    return "\n\n".join("\n".join(map(printable, block)) for block in blocks)


def _block(seeds: Seeds, folder: Path) -> list[str]:
    """The runs of one configuration."""
    first, common = seeds.runs[0], seeds.changes
    head = "  ".join([str(first.preset), *_settings(common), f"data {first.data or 'given in Python'}"])
    scores = _columns(seeds.runs)
    rows = [["run", "seed", "steps", "state", "verdict", *(SHOWN[name] for name in scores)]]
    for run in seeds.runs:
        done = f"{'?' if run.step is None else run.step}/{run.steps}"
        words = [_name(run.path, folder), str(run.seed), done, run.state, run.verdict or "-"]
        rows.append([*words, *(_score(name, run.scores.get(name)) for name in scores)])
    own = [{name: value for name, value in run.changes.items() if name not in common} for run in seeds.runs]
    notes = ["", *("  ".join([*_settings(extra), run.problem]) for run, extra in zip(seeds.runs, own, strict=True))]
    lines = [f"  {line}  {note}".rstrip() for line, note in zip(_aligned(rows), notes, strict=True)]
    return [head, *lines, *([f"  {summary(seeds)}"] if len(seeds.runs) > 1 else [])]


def summary(seeds: Seeds) -> str:
    """What several seeds come to: how many are good, and mean, least and largest of their scores."""
    verdicts = seeds.verdicts
    judged = ", ".join(f"{verdicts[word]} {word}" for word in ("good", "partial", "failed") if verdicts[word])
    summed, parts = seeds.scores(), []
    for name in _columns(seeds.runs):
        mean, least, largest = (_score(name, summed[name][which]) for which in ("mean", "least", "largest"))
        parts.append(f"{SHOWN[name]} {mean} ({least} to {largest})")
    return "  ".join([f"{len(seeds.runs)} seeds: {judged or 'none is judged'}", *parts])


def _columns(runs: Sequence[ListedRun]) -> list[str]:
    """The scores that some of the runs have."""
    known = [name for name in SHOWN if any(name in run.scores for run in runs)]
    return [name for name in known if "fg_ari" not in known or name not in ("f1", "ap50")]


def _settings(changes: dict[str, Any]) -> Iterator[str]:
    """The fields in words, as one piece; nothing where there are none."""
    if changes:
        yield some([f"{name}={value!r}".replace(", ", ",") for name, value in changes.items()], MOST_CHANGES)


def _score(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return small(value) if name == "mse" else f"{100 * value:.1f} %" if name == "perfect" else f"{value:.4f}"


def _name(path: Path, folder: Path) -> str:
    return str(path if path == folder else path.relative_to(folder))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, with columns one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)) for row in rows]
