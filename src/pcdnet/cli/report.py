"""`pcdnet report`: a run on one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcdnet.cli.arguments import Device, ReportData, RunFolder, ViewOptions
from pcdnet.cli.origin import Origin
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.scene import Scenes

SCENES = 1000
"""Scenes that are scored at most."""


@dataclass(frozen=True, kw_only=True)
class WriteReport(ViewOptions):
    """Write one self-contained HTML page about a run: scores, prototypes and their health, curves, scenes."""

    folder: RunFolder

    data: ReportData = None

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: report.html in the run's folder)")
    ] = None
    """The .html file to write."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.cli.model import load_model
        from pcdnet.cli.page import PAGE, write_page

        if self.out is not None and self.out.suffix != ".html":
            raise PcdnetError(f"{self.out} is no .html file; use {self.out.with_suffix('.html')}")
        model = load_model(self.folder, self.device)
        path = self.out or self.folder / PAGE
        write_page(self.folder, model, self._scenes(), path)
        print(f"wrote {path}   next: open it in a browser")

    def _scenes(self) -> Scenes:
        """What is scored: of a file or folder that was trained on, the part that was kept apart."""
        from pcdnet.data import folder
        from pcdnet.data.opening import open_data, training_data
        from pcdnet.data.sources import TEST_SEED, is_generated
        from pcdnet.training.run import Run

        origin = Origin.read(self.folder)
        data = self.data or origin.data
        view = origin.view(data, self)
        if data == origin.data and not is_generated(data) and not folder.parts(data):
            return training_data(data, seed=Run.open(self.folder).config.train.seed, view=view)[1]
        return open_data(data, count=SCENES, seed=TEST_SEED, view=view)
