"""`pcdnet data`: generated or recorded scenes as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pcdnet.data.sources import GENERATED, is_generated, usable, usual_preset
from pcdnet.errors import PcdnetError
from pcdnet.progress import phase


@dataclass(frozen=True, kw_only=True)
class Data:
    """Generate scenes or record games, with their ground truth, as an .npz file."""

    source: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="SOURCE", help=f"What to make: {usable(GENERATED)}. Games need the extra `atari`."),
    ]

    out: Path
    """The .npz file to write. It holds image (N H W 3). Tetrominoes have mask (N 4 35 35; 0 or 255, the background
    first), labels (N 35 35) and the factors that scenes are rendered from: shapes, colours, rows, columns. Space
    Invaders have boxes (M 4; top, left, height, width) with box_scene, box_kind, kinds and scored. Other games have no
    ground truth."""

    count: int = 1000
    """How many scenes."""

    seed: int = 0
    """Seed of the scenes; more scenes of a seed begin with the fewer."""

    force: bool = False
    """Overwrite the file if it exists."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.data.opening import open_data
        from pcdnet.output.dataset import checked_target, save_scenes

        if not is_generated(self.source):
            raise PcdnetError(f"{self.source!r} cannot be made here; use {usable(GENERATED)}")
        checked_target(self.out, force=self.force)
        scenes = open_data(self.source, count=self.count, seed=self.seed)
        with phase(f"writing {self.out.name}"):
            save_scenes(scenes, self.out, force=self.force)
        preset = usual_preset(self.source)
        print(f"wrote {self.out}: {len(scenes)} {scenes.name}")
        print(f"next: pcdnet train {f'--preset {preset} ' if preset else ''}--data {self.out} --out runs/first")
