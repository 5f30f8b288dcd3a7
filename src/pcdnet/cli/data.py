"""`pcdnet data`: generated scenes as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True, kw_only=True)
class Data:
    """Generate scenes with their truth, as an .npz file."""

    source: tyro.conf.Positional[Literal["tetrominoes"]]
    """What to generate."""

    out: Path
    """The .npz file to write. It holds image (N 35 35 3), mask (N 4 35 35; 0 or 255, the background first), labels
    (N 35 35) and the factors that scenes are rendered from: shapes, colours, rows, columns."""

    count: int = 1000
    """How many scenes."""

    seed: int = 0
    """Seed of the scenes; more scenes of a seed begin with the fewer."""

    force: bool = False
    """Overwrite the file if it exists."""

    def run(self) -> None:
        """Do it."""
        from pcdnet.data.tetrominoes import generate
        from pcdnet.output.dataset import checked_target, save_scenes

        checked_target(self.out, force=self.force)
        save_scenes(generate(self.count, self.seed), self.out, force=self.force)
        print(f"wrote {self.out}: {self.count} re-created Tetrominoes, seed {self.seed}")
        print(f"next: pcdnet train --data {self.out} --out runs/first")
