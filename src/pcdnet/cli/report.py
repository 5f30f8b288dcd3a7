"""`pcdnet report`: a run on one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pcdnet.cli.arguments import Device, RunArgument, RunData, ViewOptions


@dataclass(frozen=True, kw_only=True)
class WriteReport(ViewOptions):
    """Write one self-contained HTML page about a run: scores, prototypes and their health, curves, scenes."""

    folder: RunArgument

    data: RunData = None

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: report.html in the run's folder)")
    ] = None
    """The .html file to write."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.output.report import report

        written = report(self.folder, self.data, out=self.out, view=self.view(), device=self.device)
        print(f"wrote {written.path}   next: open it in a browser, or pcdnet serve {self.folder} to try other images")
