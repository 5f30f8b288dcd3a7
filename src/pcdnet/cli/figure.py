"""`pcdnet figure`: a run's prototypes, or scenes that it decomposes, as a figure for a paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from pcdnet.cli.arguments import Device, RunArgument, RunData, ViewOptions
from pcdnet.progress import phase


@dataclass(frozen=True, kw_only=True)
class DrawFigure(ViewOptions):
    """Draw a figure for a paper: the prototypes, or scenes decomposed that are new to the run."""

    folder: RunArgument

    kind: Literal["prototypes", "decomposition", "segmentation"]
    """The prototypes and their masks; or scenes with their reconstructions, and either their objects one by one, or
    their semantic and instance segmentation in the colours of the prototypes."""

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The .png, .svg or .pdf file to write."""

    data: RunData = None

    count: int = 4
    """How many scenes."""

    seed: int = 0
    """Which scenes: other seeds give others."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.output.drawing import figure
        from pcdnet.output.figures import checked_suffix, save_figure

        checked_suffix(self.out)
        drawn = figure(
            self.folder,
            self.kind,
            self.data,
            count=self.count,
            seed=self.seed,
            view=self.view(),
            device=self.device,
        )
        with phase(f"drawing {self.out.name}"):
            save_figure(drawn, self.out)
        print(f"wrote {self.out}   next: look at it; pcdnet report {self.folder} shows all of the run")
