"""Timed: images a second, memory, and how long requests take."""

from __future__ import annotations

from benchmarks.page.markdown import FROM, Numbered, of, section, table


def speed(lines: Numbered) -> str:
    """Images a second, against the paper's equations taken literally; how time and memory grow."""
    text = ""
    for n, line in of(lines, "speed"):
        rows = [
            [name, f"{row['engine']:,.0f}", f"{row['oracle']:.1f}", f"{row['ratio']:.0f}x", f"{n}"]
            for name, row in line["tetrominoes"].items()
        ]
        text += f"{line['threads']} thread{'s' * (line['threads'] != 1)}, torch {line['torch']}.\n\n"
        text += table(("images/s, batch 64", "engine", "literal equations", "ratio", FROM), rows)
        grown = [
            [
                f"{row['height']:.0f}x{row['width']:.0f}",
                *(f"{row[name]:.0f}" for name in ("P", "K", "N")),
                *(f"{row[name]:.1f}" for name in ("milliseconds", "correlation_ms", "selection_ms")),
                *(f"{row[name]:.0f}" for name in ("images_per_second", "peak_mib")),
                f"{n}",
            ]
            for row in line["growth"]
        ]
        head = ("image", "P", "K", "N", "ms an image", "correlation", "selection", "images/s", "peak MiB", FROM)
        if grown:
            text += "Grey images, prototypes of 20x20, batch 16; the last row has the size of Space Invaders:\n\n"
            text += table(head, grown)
    return section("Speed", text)


def commands(lines: Numbered) -> str:
    """`pcdnet decompose` on small and on large pictures, and the server."""
    return section("Commands and the server", decomposed(lines), large(lines), served(lines))


def decomposed(lines: Numbered) -> str:
    """Many small images."""
    names = ("images", "images_per_second", "images_per_processor_second", "peak_mib")
    rows = [
        [row["job"], *(f"{row[name]:,.0f}" for name in names), f"{n}"]
        for n, line in of(lines, "decompose")
        for row in line["rows"]
    ]
    return table(("job", "images", "images/s", "per processor second", "peak MiB", FROM), rows)


def large(lines: Numbered) -> str:
    """One large picture."""
    names = ("seconds", "peak_mib", "objects", "found", "wrong_by_kind")
    rows = [
        [
            f"{row['side']}x{row['side']}",
            *(f"{row[name]:,.0f}" for name in names),
            f"{row['megapixels_per_second_without_start']:.3f}",
            f"{n}",
        ]
        for n, line in of(lines, "large")
        for row in line["rows"]
    ]
    head = ("one sheet", "seconds", "peak MiB", "objects", "found", "wrong by kind", "megapixels/s after the start")
    return table((*head, FROM), rows)


def served(lines: Numbered) -> str:
    """Requests, one by one and many at once."""
    names = ("median_ms", "p95_ms", "longest_ms")
    rows = [
        [row["request"], *(f"{row[name]:.1f}" for name in names), f"{row.get('errors', 0)}", f"{n}"]
        for n, line in of(lines, "serve")
        for row in line["rows"]
    ]
    return table(("request", "median ms", "95 %", "longest", "errors", FROM), rows)
