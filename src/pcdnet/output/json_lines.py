"""JSON lines: one record a line, for pandas, jq and everything else."""

from __future__ import annotations

import json
from pathlib import Path

from pcdnet.files import whole_file
from pcdnet.output.record import Results

FILE = "decompositions.jsonl"
"""The name of the file."""


def write(results: Results, folder: Path) -> list[Path]:
    """Write the records, whole or not at all."""
    with whole_file(folder / FILE) as file:
        for record in results.records:
            for thing in record["objects"]:
                thing["name"] = results.names[thing["prototype"]]
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    return [folder / FILE]
