"""The command line: results on stdout, progress and complaints on stderr.

Exit codes: 0 fine; 1 a mistake that the user can cure, told in one sentence; 2 wrong usage; 130 interrupted; 141
nobody reads the results any more. Whatever takes long to import is imported by the commands that need it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.data.tetrominoes import TetrominoScenes
    from pcdnet.decomposition import Decomposition
    from pcdnet.metrics import Scores

SHOWN = 8
"""Scenes on the demo's sheet of decompositions."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Take generated scenes (re-created Tetrominoes) apart with the true prototypes, score and draw the result."""

    out: Path = Path("demo")
    """Folder for the figures; it is made, and figures of an earlier demo are replaced."""

    scenes: int = 1000
    """How many scenes are generated."""

    seed: int = 0
    """Seed of the scenes; the same seed gives the same scenes everywhere."""

    def run(self) -> None:
        """Do it."""
        from pcdnet.data.tetrominoes import generate, true_prototypes
        from pcdnet.metrics import score
        from pcdnet.output.figures import decomposition_sheet, prototype_sheet, save_figure
        from pcdnet.output.files import folder

        out = folder(self.out)
        scenes = generate(self.scenes, self.seed)
        found, seconds = _decompose(scenes)
        scores = score(scenes.labels, [one.instances for one in found])
        shown = scenes.images[:SHOWN].astype("float32") / 255
        figures = {
            out / "decompositions.png": decomposition_sheet(shown, found[:SHOWN]),
            out / "prototypes.png": prototype_sheet(*true_prototypes()),
        }
        for path, figure in figures.items():
            save_figure(figure, path)
        print(_table(f"re-created Tetrominoes, seed {self.seed}, true prototypes", scores, seconds))
        print(f"\nwrote {' and '.join(map(str, figures))}")
        print("next: look at them, then make scenes of your own:")
        print("      pcdnet data tetrominoes --count 1000 --out tetrominoes.npz")


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
        print(f"next: python -c \"import numpy; print(numpy.load('{self.out}')['image'].shape)\"")


Command = Annotated[Demo, tyro.conf.subcommand("demo")] | Annotated[Data, tyro.conf.subcommand("data")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process, and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        try:
            if arguments == ["--version"]:
                import pcdnet

                print(f"pcdnet {pcdnet.__version__}")
            else:
                _parse(arguments).run()
        finally:
            sys.stdout.flush()  # here, where a reader that went away can still be noticed
    except PcdnetError as error:
        return _complain(str(error), 1)
    except MemoryError:
        return _complain("there is not enough memory for so many images; ask for fewer", 1)
    except KeyboardInterrupt:
        return _complain("interrupted; nothing half-written is left", 130)
    except BrokenPipeError:
        # Python flushes stdout once more on its way out: let it flush into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


def _parse(arguments: Sequence[str]) -> Demo | Data:
    command: Demo | Data = tyro.cli(
        Command,
        prog="pcdnet",
        description="Find the repeating objects in images without labels, and explain every image as a stack of them.",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    return command


def _complain(message: str, code: int) -> int:
    print(f"pcdnet: {message}", file=sys.stderr)
    return code


def _decompose(scenes: TetrominoScenes) -> tuple[list[Decomposition], float]:
    """Explain scenes with the true prototypes; also the seconds that it took."""
    import torch

    from pcdnet.config import Config
    from pcdnet.data.tetrominoes import true_prototypes
    from pcdnet.model.bank import PrototypeBank
    from pcdnet.model.network import CHUNK, PCDNet
    from pcdnet.output.progress import track

    prototypes, masks = (torch.from_numpy(array) for array in true_prototypes())
    model = PCDNet.from_bank(PrototypeBank(prototypes, masks), Config.preset("tetrominoes").model)

    def steps() -> Iterator[tuple[int, list[Decomposition]]]:
        for first in range(0, len(scenes), CHUNK):
            found = model.decompose(scenes.images[first : first + CHUNK])
            assert isinstance(found, list)
            yield len(found), found

    start = time.perf_counter()
    found = [one for chunk in track(steps(), len(scenes), "images") for one in chunk]
    return found, time.perf_counter() - start


def _table(title: str, scores: Scores, seconds: float) -> str:
    shares = {
        "FG-ARI": scores.fg_ari,
        "ARI": scores.ari,
        "mIoU": scores.miou,
        "count accuracy": scores.count_accuracy,
        "perfect scenes": scores.perfect,
    }
    lines = [title, "", f"  {'scenes':<16}{scores.scenes:>9}"]
    lines += [f"  {name:<16}{100 * share:>9.2f} %" for name, share in shares.items()]
    lines.append(f"  {'speed':<16}{scores.scenes / seconds:>9.0f} images/s")
    return "\n".join(lines)
