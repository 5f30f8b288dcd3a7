"""`pcdnet runs`: the runs below a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class Runs:
    """List the runs below a folder, and sum up the seeds of one configuration."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR", help="A folder of runs.")]

    json: bool = False
    """Print one JSON object instead of a table: folder, runs, configurations."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.output.runs import runs

        found = runs(self.folder)
        print(json.dumps(found.to_dict()) if self.json else found)
        if not self.json and found.runs:
            print(f"\nnext: pcdnet report {found.runs[0].path}")
