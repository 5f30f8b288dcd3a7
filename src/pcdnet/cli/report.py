"""`pcdnet report`: a run on one HTML page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pcdnet.cli.arguments import Device, RunArgument, RunData, ViewOptions
from pcdnet.data.notes import printable


@dataclass(frozen=True, kw_only=True)
class WriteReport(ViewOptions):
    """Write one self-contained HTML page about a run: verdict, scenes, scores, kinds, prototypes, curves."""

    folder: RunArgument

    data: RunData = None

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: report.html in the run's folder)")
    ] = None
    """The .html file to write."""

    json: bool = False
    """Print one JSON object instead of words: path, data, verdict, reasons, suggestions, scores and what was found."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.output.report import report

        written = report(self.folder, self.data, out=self.out, view=self.view(), device=self.device)
        if self.json:
            print(json.dumps(written.to_dict()))
            return
        for suggestion in written.suggestions:
            print(printable(f"suggestion: {suggestion.words}, as {suggestion.reason}"))
            if suggestion.command:
                print(printable(f"    {suggestion.command}"))
        print(f"wrote {written.path}   next: open it in a browser, or pcdnet serve {self.folder} to try other images")
