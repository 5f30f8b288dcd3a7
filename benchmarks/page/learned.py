"""Learned: what was learned from Tetrominoes, what failed, and what given prototypes reach."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.failures import REASONS
from benchmarks.lines import Line, renamed
from benchmarks.page.markdown import FROM, Numbered, Row, minutes, number, of, section, table, trial
from benchmarks.parts import ABLATIONS

LEARNED = {
    "fg_ari": ("FG-ARI", ".4f"),
    "true_prototypes": ("true prototypes", ".4f"),
    "greedy_fg_ari": ("greedy", ".4f"),
    "perfect": ("perfect", ".3f"),
    "wrong_cuts": ("wrong cuts", ".0f"),
    "shapes": ("shapes of 19", ".0f"),
    "least_iou": ("least IoU", ".2f"),
    "crisp": ("crisp", ".3f"),
    "images_per_second": ("images/s", ".0f"),
    "genuine_fg_ari": ("genuine", ".4f"),
}
"""Columns of the table: the figure's name in a row, its title and its form."""


def learning(lines: Numbered) -> str:
    """What was learned from scratch, seed by seed, and every scene that failed."""
    presets: dict[str, list[tuple[int, Line, Row]]] = {}
    for n, line in of(lines, "learning"):
        if not line["set"]:
            presets.setdefault(line["preset"], []).extend((n, line, row) for row in line["rows"])
    text = ""
    for preset, found in presets.items():
        found.sort(key=lambda one: one[2]["seed"])
        text += f"### `--preset {preset}`, {found[0][2]['parameters']:,.0f} parameters\n\n"
        head = ("seed", *(title for title, _ in LEARNED.values()), "minutes", FROM)
        rows = [
            [
                f"{row['seed']}{trial(line)}",
                *(number(row.get(name), form) for name, (_, form) in LEARNED.items()),
                minutes(row),
                f"{n}",
            ]
            for n, line, row in found
        ]
        text += table(head, rows)
        mean = statistics.mean(row["fg_ari"] for _, _, row in found)
        text += f"Mean FG-ARI of {len(found)} seed{'s' * (len(found) > 1)} {mean:.5f}.\n\n"
        text += failed(preset, [(n, row) for n, _, row in found])
    about = (
        "Fresh scenes, 1,000 a seed unless a line says otherwise, and the 10 genuine ones. *True prototypes* is what "
        "these reach on the same scenes, *greedy* is without refinement; *wrong cuts* are scenes that are not cut into "
        "whole sprites. Minutes are wall-clock where two threads are named, and the processor's where one is: those "
        "runs shared the machine.\n\n"
    )
    return section("Learned from scratch: re-created Tetrominoes", about, text) if text else ""


def failed(preset: str, rows: Sequence[tuple[int, Row]]) -> str:
    """Every scene that is not labelled right, by seed and reason."""
    cells, pictures = [], ""
    for n, row in rows:
        for reason in REASONS:
            scenes = [f"{one['scene']}" for one in row.get("failed", ()) if one["reason"] == reason]
            if scenes:
                cells.append([f"{row['seed']}", reason, f"{len(scenes)}", ", ".join(scenes), f"{n}"])
        if row.get("failed") and "picture" in row:
            words = f"Failed scenes of {preset}, seed {row['seed']}: image, true objects, objects found"
            pictures += f"![{words}](pictures/{row['picture']})\n\n"
    unknown = [f"{row['seed']}" for _, row in rows if "failed" not in row]
    text = table(("seed", "reason", "scenes", "which", FROM), cells) + pictures
    if unknown:
        text += f"Failed scenes were not recorded for seed{'s' * (len(unknown) > 1)} {', '.join(unknown)}.\n\n"
    return f"#### Failed scenes of `{preset}`\n\n{text}" if text else ""


def ablations(lines: Numbered) -> str:
    """What each part of the recipe is worth."""
    found = []
    for n, line in of(lines, "learning"):
        change = " ".join(map(renamed, line["set"]))
        if line["preset"] == "tetrominoes":
            order = [*ABLATIONS].index(change) if change in ABLATIONS else -1 if not change else len(ABLATIONS)
            name = ABLATIONS.get(change, f"`{change}`" if change else "the preset") + trial(line)
            found += [(order, row["seed"], n, name, row) for row in line["rows"] if row["seed"] < 2]
    rows = [
        [
            name,
            f"{seed}",
            *(f"{row[figure]:.4f}" for figure in ("fg_ari", "greedy_fg_ari")),
            f"{row['shapes']:.0f} of 19",
            minutes(row),
            f"{n}",
        ]
        for _, seed, n, name, row in sorted(found, key=lambda one: one[:3])
    ]
    head = ("preset `tetrominoes`, changed", "seed", "FG-ARI", "without refinement", "shapes", "minutes", FROM)
    return section("What the parts are worth", table(head, rows))


def quality(lines: Numbered) -> str:
    """What the engine finds with given prototypes."""
    text = ""
    for n, line in of(lines, "quality"):
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in line["rows"]:
            kind = "10 genuine scenes" if row["seed"] == "genuine" else row["search"]
            groups.setdefault((row["bank"], kind), []).append(row)
        rows = []
        for (bank, kind), found in groups.items():
            scores = [row["fg_ari"] for row in found]
            means = [statistics.mean(row[name] for row in found) for name in ("count_accuracy", "perfect")]
            wrong = [f"{sum(row[name] for row in found)}" for name in ("ambiguous", "badly_explained")]
            figures = [statistics.mean(scores), min(scores), *means]
            rows.append([bank, kind, f"{len(found)}", *(f"{each:.5f}" for each in figures), *wrong, f"{n}"])
        head = ("bank", "search", "seeds", "FG-ARI, mean", "least", "count accuracy", "perfect")
        text += f"{line.get('scenes', 1_000):,} scenes a seed. *Ambiguous* are wrong scenes without an error left.\n\n"
        text += table((*head, "ambiguous", "badly explained", FROM), rows)
    return section("Given prototypes: re-created Tetrominoes", text)
