"""Results: docs/results.md, written from what the benchmarks printed.

usage: python -m benchmarks.results [LOG ...]

The last line of every log, one JSON object, is put into docs/results.jsonl in place of an earlier one of the same
benchmark and settings; then the page is written anew from that file. `make results` runs all benchmarks and then this.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pcdnet.config import RENAMED

DOCS = Path(__file__).resolve().parents[1] / "docs"
LINES, PAGE = DOCS / "results.jsonl", DOCS / "results.md"
ABLATIONS = {
    "train.reset_every=0": "without resets",
    "train.noise_steps=0": "without noise on prototypes at the start",
    "model.peaks_per_prototype=1": "K = 1 peak per prototype",
    "model.peaks_per_prototype=6": "K = 6 peaks",
    'model.colour="network"': "colours by the paper's network",
}
"""Changes to the preset `tetrominoes` that are measured, and what they are called."""

Line = dict[str, Any]


def renamed(change: str) -> str:
    """A change of a field, such as train.steps=600, by the name that the field has now."""
    field, _, value = change.partition("=")
    section = field.partition(".")[0]
    return f"{section}.{RENAMED[field]}={value}" if field in RENAMED else change


def key_of(line: Line) -> str:
    """What makes two lines the same measurement."""
    return json.dumps([line["benchmark"], line.get("preset"), [*map(renamed, line.get("set", []))]])


def collect(logs: Sequence[str]) -> list[Line]:
    """The lines kept so far, with those of the logs in place of older ones."""
    known = {}
    if LINES.is_file():
        known = {key_of(line): line for line in map(json.loads, LINES.read_text(encoding="utf-8").splitlines())}
    for log in logs:
        line = json.loads(Path(log).read_text(encoding="utf-8").splitlines()[-1])
        known[key_of(line)] = line
    return [known[key] for key in sorted(known)]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)) + "\n"


def learning(lines: Sequence[Line]) -> str:
    """What was learned from scratch, seed by seed."""
    text = "## Learned from scratch: re-created Tetrominoes\n\n"
    text += (
        "1,000 fresh scenes a seed (and the 10 genuine ones). *Greedy* is without refinement; minutes are wall-clock "
        "where two threads are named, and the processor's where one is: those runs shared the machine.\n\n"
    )
    head = ("seed", "FG-ARI", "greedy", "perfect", "shapes", "least IoU", "crisp", "minutes", "images/s", "genuine")
    for line in lines:
        if line["benchmark"] != "learning" or line["set"]:
            continue
        rows = line["rows"]
        text += f"### `--preset {line['preset']}`, {rows[0]['parameters']:,.0f} parameters\n\n"
        text += table(head, [_learned(row) for row in rows])
        text += f"\nMean FG-ARI {statistics.mean(row['fg_ari'] for row in rows):.5f}.\n\n"
    return text


def _learned(row: Line) -> list[str]:
    return [
        f"{row['seed']}",
        f"{row['fg_ari']:.4f}",
        f"{row['greedy_fg_ari']:.4f}",
        f"{row['perfect']:.3f}",
        f"{row['shapes']:.0f} of 19",
        f"{row['least_iou']:.2f}",
        f"{row['crisp']:.3f}",
        _minutes(row),
        f"{row['images_per_second']:.0f}",
        f"{row.get('genuine_fg_ari', float('nan')):.4f}",
    ]


def _minutes(row: Line) -> str:
    """Wall-clock time with several threads, processor time with one: others may have shared the machine then."""
    if row.get("threads", 1) == 1:
        return f"{row['core_minutes']:.1f} (1 thread)"
    return f"{row['minutes']:.1f} ({row['threads']} threads)"


def ablations(lines: Sequence[Line]) -> str:
    """What each part of the recipe is worth."""
    rows = []
    for line in lines:
        if line["benchmark"] != "learning" or line["preset"] != "tetrominoes":
            continue
        name = ABLATIONS.get(" ".join(map(renamed, line["set"])), "the preset")
        for row in line["rows"][:2]:
            scores = [f"{row['fg_ari']:.4f}", f"{row['greedy_fg_ari']:.4f}", f"{row['shapes']:.0f} of 19"]
            rows.append([name, f"{row['seed']}", *scores, _minutes(row)])
    head = ("preset `tetrominoes`, changed", "seed", "FG-ARI", "without refinement", "shapes", "minutes")
    return "## What the parts are worth\n\n" + table(head, sorted(rows, key=lambda row: row[0] != "the preset")) + "\n"


def real(lines: Sequence[Line]) -> str:
    """Space Invaders and the traffic cameras."""
    text = "## Real scenes\n\n"
    head = (
        "data",
        "frames",
        "F1 at IoU 0.5",
        "at 0.3",
        "precision",
        "recall",
        "AP50",
        "count error",
        "frames/s",
        "minutes",
    )
    for line in lines:
        if line["benchmark"] != "real":
            continue
        rows = []
        for row in line["rows"]:
            scores = [f"{row[key]:.3f}" for key in ("f1", "f1_at_30", "precision", "recall", "ap50")]
            speed = f"{row['frames_per_second']:.0f}"
            rows.append([row["data"], f"{row['frames']}", *scores, f"{row['count_error']:.2f}", speed, _minutes(row)])
        text += table(head, rows) + "\n"
        for row in line["rows"]:
            if row["recall_by_kind"] and row["purity_of_aliens"] is not None:
                kinds = ", ".join(f"{kind} {share:.3f}" for kind, share in row["recall_by_kind"].items())
                purity = f"purity of the six kinds of aliens {row['purity_of_aliens']:.4f}"
                text += f"{row['data']}: {purity}; recall by kind: {kinds}.\n"
    return text + "\n"


def quality(lines: Sequence[Line]) -> str:
    """What the engine finds with given prototypes."""
    text = ""
    for line in lines:
        if line["benchmark"] != "quality":
            continue
        groups: dict[tuple[str, str], list[Line]] = {}
        for row in line["rows"]:
            kind = "10 genuine scenes" if row["seed"] == "genuine" else row["search"]
            groups.setdefault((row["bank"], kind), []).append(row)
        rows = []
        for (bank, kind), found in groups.items():
            scores = [row["fg_ari"] for row in found]
            counts = statistics.mean(row["count_accuracy"] for row in found)
            mean = f"{statistics.mean(scores):.5f}"
            rows.append([bank, kind, f"{len(found)}", mean, f"{min(scores):.5f}", f"{counts:.5f}"])
        head = ("bank", "search", "seeds", "FG-ARI, mean", "least", "count accuracy")
        text += "## Given prototypes: re-created Tetrominoes, 1,000 scenes a seed\n\n" + table(head, rows) + "\n"
    return text


def speed(lines: Sequence[Line]) -> str:
    """Images a second, against the paper's equations taken literally."""
    text = ""
    for line in lines:
        if line["benchmark"] == "speed":
            rows = [
                [name, f"{row['engine']:,.0f}", f"{row['oracle']:.1f}", f"{row['ratio']:.0f}x"]
                for name, row in line["tetrominoes"].items()
            ]
            head = ("images/s, batch 64", "engine", "literal equations", "ratio")
            text += f"## Speed, {line['threads']} threads, torch {line['torch']}\n\n" + table(head, rows) + "\n"
    return text


def main() -> None:
    """Take in the logs and write the page."""
    lines = collect(sys.argv[1:])
    LINES.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    parts = [part(lines) for part in (learning, ablations, quality, real, speed)]
    pictures = (DOCS / "gallery.md").read_text(encoding="utf-8") if (DOCS / "gallery.md").is_file() else ""
    PAGE.write_text(
        "# Results\n\nEverything here was printed by the benchmarks, on two cores of a shared machine without a GPU; "
        "`make results` measures it anew. Written by `python -m benchmarks.results` from results.jsonl.\n\n"
        + "".join(parts)
        + pictures,
        encoding="utf-8",
    )
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
