"""Found: objects in frames and pictures of all kinds, ours and those of others."""

from __future__ import annotations

from benchmarks.page.markdown import FROM, Numbered, minutes, number, of, section, table, trial


def real(lines: Numbered) -> str:
    """Space Invaders and the traffic cameras."""
    found = [(n, line, row) for n, line in of(lines, "real") for row in line["rows"]]
    found.sort(key=lambda one: (one[1].get("preset", ""), one[2]["data"], one[2].get("seed", 0)))
    figures = {
        "f1": "F1 at IoU 0.5",
        "f1_at_30": "at 0.3",
        "precision": "precision",
        "recall": "recall",
        "ap50": "AP50",
    }
    rows, words, pictures = [], "", ""
    for n, line, row in found:
        scores = [number(row[name], ".3f") for name in figures]
        wrong = None if row["precision"] is None else (1 - row["precision"]) * row["objects"] * row["frames"]
        more = [number(row["count_error"], ".2f"), number(wrong, ".0f"), f"{row['frames_per_second']:.0f}"]
        name = row["data"] + (", the paper's recipe" if "preset" in line else "") + trial(line)
        rows.append([name, number(row.get("seed"), "d"), f"{row['frames']}", *scores, *more, minutes(row), f"{n}"])
        if row["recall_by_kind"] and row["purity_of_aliens"] is not None:
            kinds = ", ".join(f"{kind} {number(share, '.3f')}" for kind, share in row["recall_by_kind"].items())
            words += f"{name}, seed {number(row.get('seed'), 'd')}: purity of the six kinds of aliens "
            words += f"{row['purity_of_aliens']:.4f}; recall by kind: {kinds}.\n\n"
        if "picture" in row:
            about = f"{name}, seed {row['seed']}: scenes that were held out, what is painted, objects, prototypes"
            pictures += f"![{about}](pictures/{row['picture']})\n\n"
    head = ("data", "seed", "frames", *figures.values(), "count error", "wrong objects", "frames/s", "minutes", FROM)
    return section("Real scenes", table(head, rows), words, pictures)


def own(lines: Numbered) -> str:
    """Pictures as users bring them."""
    found = [(n, line, row) for n, line in of(lines, "own") for row in line["rows"]]
    figures = {"f1": "F1", "precision": "precision", "recall": "recall", "purity": "purity"}
    rows = []
    for n, line, row in found:
        more = [
            f"{name.replace('_', ' ')} {number(row[name], '.3g')}"
            for name in ("kinds_found", "junk", "doubles", "count_error", "front_right", "pairs", "pairs_found")
            if name in row
        ]
        counts = [f"{row['count']} of {row['true']}", ", ".join([*more, *row["problems"]]) or "-"]
        scores = [number(row.get(name), ".3f") for name in figures]
        times = [f"{row['prototypes']}", f"{row['core_minutes']:.1f}"]
        words = [row["set"] + trial(line), "yes" if row["reached"] else "no", f"{line['seed']}"]
        rows.append([*words, *scores, *counts, *times, f"{n}"])
    head = (
        "set",
        "reached",
        "seed",
        *figures.values(),
        "found of true",
        "also",
        "prototypes",
        "core minutes",
        FROM,
    )
    about = "Learned by the automatic path without any option; what is wanted is in `benchmarks/own`.\n\n"
    return section("Own pictures", about, table(head, rows)) if rows else ""


def atari(lines: Numbered) -> str:
    """Frames of games."""
    rows = []
    for n, line in of(lines, "atari"):
        for row in line["rows"]:
            scores = [number(row.get(name), ".1f") for name in ("f1_place", "f1_place_and_kind")]
            words = [row["game"] + trial(line), "yes" if row["reached"] else "no", f"{line['seed']}"]
            times = [f"{row['prototypes']}", f"{row['core_minutes']:.1f}", f"{row['frames_per_second']:.0f}"]
            rows.append([*words, *scores, f"{row['wanted']:g}", *times, ", ".join(row["problems"]) or "-", f"{n}"])
    head = ("game", "reached", "seed", "F1 of place, %", "of place and kind, %", "wanted")
    more = ("prototypes", "core minutes", "frames/s", "problems", FROM)
    about = "800 frames of random play by the automatic path, scored on frames of other games.\n\n"
    return section("Atari games", about, table((*head, *more), rows)) if rows else ""


def baselines(lines: Numbered) -> str:
    """What others would use instead, beside ours in one run, and what was published."""
    text = ""
    for n, line in of(lines, "baselines"):
        time = "all steps of our preset" if line["minutes"] is None else f"{line['minutes']:g} minutes of our training"
        figures = {
            "fg_ari": ".4f",
            "f1": ".4f",
            "parameters": ",.0f",
            "images_per_second": ",.1f",
            "core_minutes": ".1f",
            "steps": ",.0f",
        }
        head = ("model", "FG-ARI", "F1", "parameters", "images/s", "core minutes", "steps", FROM)
        measured = [
            [row["model"], *(number(row.get(k), f) for k, f in figures.items()), f"{n}"] for row in line["rows"]
        ]
        published = [
            [f"{row['model']}, **as published**", *(number(row.get(k), f) for k, f in figures.items()), "paper"]
            for row in line["published"]
        ]
        text += (
            f"Seed {line['seed']}, {line['scenes']:,} fresh re-created scenes, {time}; the others learn for as many "
            "processor minutes. What is *published* is the paper's table 1: genuine scenes, training on GPUs, images/s "
            "of an RTX 3090; neither the data nor the machine are ours.\n\n"
        )
        text += table(head, [*measured, *published])
        names = ("f1", "f1_at_30", "precision", "recall")
        rows = [
            [row["data"], *(f"{row[name]:.3f}" for name in names), f"{row['frames_per_second']:,.0f}", f"{n}"]
            for row in line["traffic"]
            if "left_out" not in row
        ]
        if rows:
            text += "Background subtraction on traffic, tuned on the frames that it is scored on:\n\n"
            text += table(("data", "F1 at IoU 0.5", "at 0.3", "precision", "recall", "frames/s", FROM), rows)
    return section("Beside other methods", text)
