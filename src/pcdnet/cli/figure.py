"""`pcdnet figure`: a run's prototypes, or scenes that it takes apart, as a figure for a paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from pcdnet.cli.arguments import Device, RunFolder, ViewOptions
from pcdnet.cli.origin import Origin
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from jaxtyping import UInt8
    from matplotlib.figure import Figure
    from numpy import ndarray

    from pcdnet.model.network import PCDNet

CHOSEN_FROM = 1000
"""Scenes of a file or folder that those of a figure are drawn from, the first ones."""
MOST = 40
"""Scenes on a figure at most."""


@dataclass(frozen=True, kw_only=True)
class DrawFigure(ViewOptions):
    """Draw a figure for a paper: the prototypes, or scenes taken apart; the generated ones are new to the run."""

    folder: RunFolder

    kind: Literal["prototypes", "decomposition", "segmentation"]
    """The prototypes and their masks; or scenes with their reconstructions, and either their objects one by one, or
    their semantic and instance segmentation in the colours of the prototypes."""

    out: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The .png, .svg or .pdf file to write."""

    data: Annotated[
        str | None, tyro.conf.arg(metavar="DATA", help_behavior_hint="(default: what the run was trained on)")
    ] = None
    """Scenes to show, named as for `pcdnet train`."""

    count: int = 4
    """How many scenes."""

    seed: int = 0
    """Which scenes: other seeds give others."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.cli.model import load_model
        from pcdnet.output.figures import checked_suffix, save_figure

        checked_suffix(self.out)
        if not 1 <= self.count <= MOST:
            raise PcdnetError(f"a figure of {self.count} scenes was asked for; give a count of 1 to {MOST}")
        if self.seed < 0:
            raise PcdnetError(f"the seed is {self.seed}; give 0 or more")
        save_figure(self._draw(load_model(self.folder, self.device)), self.out)
        print(f"wrote {self.out}")

    def _draw(self, model: PCDNet) -> Figure:
        import torch

        from pcdnet.cli.model import decompose
        from pcdnet.names import Names
        from pcdnet.output.figures import object_sheet, prototype_sheet, segmentation_sheet

        with torch.no_grad():
            bank = model.bank().map(lambda values: values.float().cpu())
        prototypes, masks = bank.prototypes.numpy(), bank.masks.numpy()
        given = Names.read(self.folder, len(prototypes)).given
        names = [given.get(p, str(p)) for p in range(len(prototypes))]
        if self.kind == "prototypes":
            return prototype_sheet(prototypes, masks, names)
        pixels = self._images()
        found = decompose(model, pixels)
        images = pixels.astype("float32") / 255
        if self.kind == "segmentation":
            return segmentation_sheet(images, found, prototypes, masks, names)
        # Where the background is not black, objects may be: grey shows dark ones and bright ones alike.
        return object_sheet(images, found, prototypes, masks, behind=0.0 if bank.background is None else 0.5)

    def _images(self) -> UInt8[ndarray, "n H W C"]:
        """The images of the figure: generated ones by their seed, of others a choice, in their order."""
        from pcdnet.data.opening import open_data
        from pcdnet.data.sources import TEST_SEED, is_generated

        origin = Origin.read(self.folder)
        data = self.data or origin.data
        made = is_generated(data)
        scenes = open_data(
            data,
            count=self.count if made else CHOSEN_FROM,
            seed=TEST_SEED + self.seed,
            view=origin.view(data, self),
        )
        if made or len(scenes) <= self.count:
            return scenes.images
        import numpy as np

        chosen = np.random.default_rng(self.seed).choice(len(scenes), self.count, replace=False)
        return scenes.images[np.sort(chosen)]
