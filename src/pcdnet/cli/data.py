"""`pcdnet data`: generated or recorded scenes as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.data.tetrominoes import TetrominoScenes
    from pcdnet.scene import Scenes

_SOURCES = "tetrominoes, space-invaders, or atari:GAME with the name of a game, atari:ms_pacman for example"


@dataclass(frozen=True, kw_only=True)
class Data:
    """Generate scenes or record games, with their truth, as an .npz file."""

    source: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(metavar="SOURCE", help=f"What to make: {_SOURCES}. Games need the extra `atari`."),
    ]

    out: Path
    """The .npz file to write. It holds image (N H W 3). Tetrominoes have mask (N 4 35 35; 0 or 255, the background
    first), labels (N 35 35) and the factors that scenes are rendered from: shapes, colours, rows, columns. Space
    Invaders have boxes (M 4; top, left, height, width) with box_scene, box_kind, kinds and scored. Other games have no
    truth."""

    count: int = 1000
    """How many scenes."""

    seed: int = 0
    """Seed of the scenes; more scenes of a seed begin with the fewer."""

    force: bool = False
    """Overwrite the file if it exists."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.output.dataset import checked_target, save_scenes

        checked_target(self.out, force=self.force)
        scenes, what = self._scenes()
        save_scenes(scenes, self.out, force=self.force)
        print(f"wrote {self.out}: {self.count} {what}, seed {self.seed}")
        preset = "--preset space-invaders " if self.source == "space-invaders" else ""
        print(f"next: pcdnet train {preset}--data {self.out} --out runs/first")

    def _scenes(self) -> tuple[Scenes | TetrominoScenes, str]:
        """The scenes, and what they are in words."""
        from pcdnet.data import atari, space_invaders, tetrominoes
        from pcdnet.progress import track

        if self.source == "tetrominoes":
            return tetrominoes.generate(self.count, self.seed), "re-created Tetrominoes"
        if self.source == "space-invaders":
            return space_invaders.record(self.count, self.seed, track=track), "frames of Space Invaders"
        if self.source.startswith("atari:"):
            game = self.source.removeprefix("atari:")
            return atari.scenes(game, self.count, self.seed, track=track), f"frames of {game}"
        raise PcdnetError(f"{self.source!r} cannot be made here; use {_SOURCES}")
