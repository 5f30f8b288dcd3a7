"""`pcdnet decompose`: images taken apart, as files for other tools."""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pcdnet.cli.arguments import Device, RunFolder
from pcdnet.data.sources import FILES, usable
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.model.network import PCDNet
    from pcdnet.output.export.journal import Journal
    from pcdnet.output.export.work import Task, Work

Paths = Annotated[
    tyro.conf.Positional[tuple[str, ...]],
    tyro.conf.arg(
        metavar="PATH...",
        help=f"What images are read from: {usable(FILES)}, a quoted pattern such as 'photos/*.png', or - for one "
        f"picture on standard input.",
    ),
]
Formats = Annotated[
    str,
    tyro.conf.arg(
        metavar="LIST",
        help="What to write: json (decompositions.jsonl, a line an image), coco (coco.json, coco_results.json), png "
        "(pictures of every image), csv (objects.csv, a row an object), parquet (the same); several with commas.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Decompose:
    """Take images apart, and write which objects are where."""

    folder: RunFolder

    paths: Paths

    out: Path
    """Folder for the results. Asked again, what is done there already is not done again."""

    format: Formats = "json"

    resize: bool = False
    """Resize images to the size of the model's background; without it, images of another size are left out."""

    stride: int = 1
    """Use every so-manieth frame of videos."""

    force: bool = False
    """Do everything again, and write into the folder even if it holds other things than results."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.data.inputs import find_inputs
        from pcdnet.output.export.formats import checked_formats
        from pcdnet.output.export.journal import Journal, checked_folder

        formats = checked_formats(self.format)
        if self.stride < 1:
            raise PcdnetError(f"the stride is {self.stride}; give 1 for every frame, 2 for every other")
        inputs = find_inputs(self.paths, without=self.out)
        from pcdnet.cli.model import load_model
        from pcdnet.output.export.work import Work

        model = load_model(self.folder, self.device)
        task = self._task(model, pictures="png" in formats)
        checked_folder(self.out, force=self.force)
        with Journal(self.out, self._settings(), force=self.force) as journal:
            if journal.anew:
                print(
                    f"note: what was in {self.out} is done again, as the run or an option has changed", file=sys.stderr
                )
            work = Work(inputs, task, journal, self.out)
            _do(work)
            self._finish(work, journal, formats, task)

    def _task(self, model: PCDNet, *, pictures: bool) -> Task:
        from pcdnet.names import Names
        from pcdnet.output.export.work import Task

        background = model.bank().background
        if self.resize and background is None:
            raise PcdnetError("the model has no background, so images may have any size; leave out --resize")
        return Task(
            explain=lambda images: _explain(model, images),
            channels=model.config.channels,
            size=None if background is None else (background.shape[1], background.shape[2]),
            names=Names.read(self.folder, model.config.num_prototypes),
            resize=self.resize,
            stride=self.stride,
            pictures=pictures,
        )

    def _settings(self) -> dict[str, Any]:
        """What results depend on besides the images and their names."""
        import pcdnet
        from pcdnet.training.run import CONFIG, WEIGHTS

        run = [hashlib.sha256((self.folder / name).read_bytes()).hexdigest() for name in (CONFIG, WEIGHTS)]
        return {"pcdnet": pcdnet.__version__, "run": run, "resize": self.resize}

    def _finish(self, work: Work, journal: Journal, formats: tuple[str, ...], task: Task) -> None:
        """Write what was found, and say what it is."""
        from pcdnet.output.export.formats import write_formats
        from pcdnet.output.export.summary import Summary
        from pcdnet.output.export.work import PICTURES

        records = journal.records(work.places())
        if len(records) == 0:
            raise PcdnetError(f"none of the {len(work.inputs)} files could be used, so nothing was written; see above")
        written = write_formats(formats, records, task.names, self.out, channels=task.channels)
        print(Summary.from_records(records, len(task.names)).text(task.names))
        files = [path.name for path in written] + ([f"{PICTURES}/"] if task.pictures else [])
        print(f"\nwrote {self.out}: {' '.join(files)}")
        if work.failed:
            raise PcdnetError(
                f"{len(work.failed)} of {len(work.inputs)} files could not be used, as told above; "
                f"the results of the others are in {self.out}"
            )


def _do(work: Work) -> None:
    """Go through the images and show how far it is."""
    from pcdnet.progress import track

    start = time.perf_counter()
    try:
        for _ in track(work.steps(), work.total, "images"):
            pass
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted after {work.known + work.fresh} of {work.total} images; the same command goes on from there"
        ) from None
    seconds = time.perf_counter() - start
    if work.fresh:
        print(f"{work.fresh:,} images in {seconds:.1f} s, {work.fresh / seconds:,.0f} images/s", file=sys.stderr)
    if work.known:
        print(f"{work.known:,} images were done before, and are as they were", file=sys.stderr)


def _explain(model: PCDNet, images: Any) -> Any:
    from pcdnet.cli.model import decompose

    try:
        return decompose(model, images)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        height, width = images.shape[1:3]
        raise PcdnetError(f"there is not enough memory for {height}x{width} pixels; give smaller images") from None
