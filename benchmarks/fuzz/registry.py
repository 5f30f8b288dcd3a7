"""Registry: every target by its name; a new one is a line here."""

from __future__ import annotations

from benchmarks.fuzz import arrays, export, kept, parts, pictures, routes, runs, texts
from benchmarks.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        pictures.PICTURES,
        pictures.VIDEO,
        arrays.NPZ,
        arrays.TFRECORD,
        texts.COCO,
        texts.CONFIG,
        texts.SPACE,
        texts.NAMES,
        texts.GIVEN,
        runs.STATE,
        runs.WEIGHTS,
        runs.METRICS,
        runs.ORIGIN,
        runs.VERDICT,
        runs.RUN_CONFIG,
        kept.EDITS,
        kept.CORRECTIONS,
        kept.ADOPTION,
        kept.LEARNING,
        parts.JOURNAL,
        parts.SEAL,
        parts.PART,
        export.EXPORT,
        routes.ROUTES,
    )
}
"""What `python -m benchmarks.fuzz` knows."""
