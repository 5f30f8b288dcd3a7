"""`pcdnet report`: a run on one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pcdnet.cli.arguments import Device, ReportData, RunFolder
from pcdnet.cli.origin import Origin
from pcdnet.errors import PcdnetError

SCENES = 1000


@dataclass(frozen=True, kw_only=True)
class WriteReport:
    """Write one self-contained HTML page about a run: scores, prototypes and their health, curves, scenes."""

    folder: RunFolder

    data: ReportData = None

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: report.html in the run's folder)")
    ] = None
    """The .html file to write."""

    device: Device = "cpu"

    def run(self) -> None:
        """Do it."""
        from pcdnet.cli.model import load_model
        from pcdnet.cli.page import PAGE, write_page
        from pcdnet.data.source import TEST_SEED, is_generated, open_data, training_data
        from pcdnet.training.run import Run

        if self.out is not None and self.out.suffix != ".html":
            raise PcdnetError(f"{self.out} is no .html file; use {self.out.with_suffix('.html')}")
        model = load_model(self.folder, self.device)
        trained_on = Origin.read(self.folder).data
        data = self.data or trained_on
        if data == trained_on and not is_generated(data):
            _, scenes = training_data(data, Run.open(self.folder).config.train.seed)
        else:
            scenes = open_data(data, count=SCENES, seed=TEST_SEED)
        path = self.out or self.folder / PAGE
        write_page(self.folder, model, scenes, path)
        print(f"wrote {path}   next: open it in a browser")
