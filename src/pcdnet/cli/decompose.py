"""`pcdnet decompose`: images decomposed, as files for other tools."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from pcdnet.cli.arguments import Device, RunArgument, Values, as_flag
from pcdnet.data.sources import FILES, usable
from pcdnet.errors import PcdnetError
from pcdnet.output.formats import offered

Paths = Annotated[
    tyro.conf.Positional[tuple[str, ...]],
    tyro.conf.arg(
        metavar="[PATH...]",
        help=f"What to decompose: {usable(FILES)}, a quoted pattern such as 'photos/*.png', or - for one picture on "
        f"standard input. A trained model needs none: it comes with some pictures of its own.",
        help_behavior_hint="",
    ),
]
Formats = Annotated[
    str,
    tyro.conf.arg(
        metavar="LIST",
        help=f"What to write: {offered()}; several with commas.",
    ),
]
Part = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="I/N",
        help="Do only one of N parts of the images, I from 0 to N-1, each into a folder of its own; `pcdnet gather` "
        "puts them together.",
        help_behavior_hint="(default: all images)",
    ),
]
Address = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="HOST:PORT",
        help="The Ray cluster to use, or auto for that of this machine.",
        help_behavior_hint="(default: one is started here, with all cores)",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Decompose:
    """Decompose images, and write which objects are where."""

    folder: RunArgument

    paths: Paths = ()

    out: Path
    """Folder for the results. Asked again, what is done there already is not done again."""

    format: Formats = "json"

    resize: bool = False
    """Resize images to the size of the model's still background; without it, images of another size are skipped."""

    values: Values = None

    stride: int = 1
    """Use every n-th frame of videos."""

    shard: Part = None

    engine: Literal["local", "ray"] = "local"
    """What does the work: this process, or the processes of a Ray cluster, which also write what they find into the
    folder parts, as Parquet; with --format parts into that alone."""

    address: Address = None

    force: bool = False
    """Do everything again, and write into the folder even if it holds other things than results."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.output.decompose import decompose_files
        from pcdnet.output.shard import Shard
        from pcdnet.run import RunFolder

        part = None if self.shard is None else Shard.parse(self.shard)
        run = RunFolder.open(self.folder)
        done = decompose_files(
            run,
            self.paths or None,
            self.out,
            formats=self.format,
            resize=self.resize,
            values=self.values,
            stride=self.stride,
            shard=None if part is None else (part.index, part.count),
            engine=self.engine,
            address=self.address,
            force=self.force,
            device=self.device,
            say=as_flag,
        )
        if done.anew:
            print(f"note: what was in {self.out} was done again, as the run or an option has changed", file=sys.stderr)
        if done.fresh:
            speed = f"{done.fresh:,} images in {done.seconds:.1f} s, {done.fresh / done.seconds:,.0f} images/s"
            print(speed, file=sys.stderr)
        if done.known:
            print(f"{done.known:,} images were done before, and are as they were", file=sys.stderr)
        print(done.summary.text())
        files = [f"{path.name}/" if path.is_dir() else path.name for path in done.files]
        print(f"\nwrote {self.out}: {' '.join(files)}")
        if part is not None:
            print(f"shard {part} is done   next, with all {part.count}: pcdnet gather DIR... --out DIR")
        else:
            print(f"next: open them, or pcdnet serve {self.folder} to see and edit what is found")
        if done.failed:
            raise PcdnetError(
                f"{len(done.failed)} of {done.inputs} files could not be used, or not in full, as reported above; "
                f"the results of the others are in {self.out}"
            )
