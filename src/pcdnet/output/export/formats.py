"""Formats: the kinds of results that can be asked for, and who writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pcdnet.errors import PcdnetError
from pcdnet.names import Names
from pcdnet.output.export.coco import write_coco
from pcdnet.output.export.json_lines import write_json_lines
from pcdnet.output.export.record import Record
from pcdnet.output.export.table import check_parquet, write_csv, write_parquet

FORMATS = ("json", "coco", "png", "csv", "parquet")
"""What can be asked for; pictures (png) are drawn while the images are at hand, the others written at the end."""


def checked_formats(text: str) -> tuple[str, ...]:
    """The formats of a list such as "json,coco", each once, if all can be written here."""
    asked = tuple(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    for word in asked:
        if word not in FORMATS:
            raise PcdnetError(f"there is no format {word!r:.40}; use some of {','.join(FORMATS)}")
    if not asked:
        raise PcdnetError(f"no format was asked for; use some of {','.join(FORMATS)}")
    if "parquet" in asked:
        check_parquet()
    return asked


def write_formats(
    formats: Iterable[str], records: Iterable[Record], names: Names, folder: Path, *, channels: int
) -> list[Path]:
    """Write the formats but pictures, each whole or not at all; `records` is gone through more than once."""
    written: list[Path] = []
    for word in formats:
        if word == "json":
            written += write_json_lines(records, names, folder)
        elif word == "coco":
            written += write_coco(records, names, folder)
        elif word == "csv":
            written += write_csv(records, names, folder, channels=channels)
        elif word == "parquet":
            written += write_parquet(records, names, folder, channels=channels)
    return written
