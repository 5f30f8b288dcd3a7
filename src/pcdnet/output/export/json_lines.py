"""JSON lines: one record a line, for pandas, jq and everything else."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pcdnet.files import whole_file
from pcdnet.names import Names
from pcdnet.output.export.record import Record, named

FILE = "decompositions.jsonl"
"""The name of the file."""


def write_json_lines(records: Iterable[Record], names: Names, folder: Path) -> list[Path]:
    """Write the records, whole or not at all."""
    with whole_file(folder / FILE) as file:
        for record in records:
            file.write(json.dumps(named(record, names), separators=(",", ":")).encode() + b"\n")
    return [folder / FILE]
