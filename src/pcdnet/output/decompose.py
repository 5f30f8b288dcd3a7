"""Decompose: the images of files, folders and films through a model, and the results as files for other tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pcdnet
from pcdnet.data.inputs import Input, find_inputs
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.network import PCDNet
from pcdnet.output.cluster import check_installed
from pcdnet.output.distributed import spread
from pcdnet.output.formats import Format, checked_formats
from pcdnet.output.journal import Journal
from pcdnet.output.parts import FOLDER as PARTS
from pcdnet.output.parts import Parts
from pcdnet.output.pipeline import PICTURES, Pipeline, model_digest
from pcdnet.output.record import Record, Results
from pcdnet.output.shard import Seal, Shard, digest_of_inputs, unseal
from pcdnet.output.summary import Summary
from pcdnet.progress import phase, shown, track
from pcdnet.run import RunFolder

ENGINES = ("local", "ray")
"""What can do the work."""
RAY = Setting("engine", "ray")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decomposed:
    """What `decompose_files` did."""

    files: tuple[Path, ...]
    """What was written; pictures are one folder."""
    summary: Summary
    """What was found, in numbers."""
    fresh: int
    """Images that were decomposed now."""
    known: int
    """Images that were done before, and are as they were."""
    anew: bool
    """Whether results were there that are of no use any more, as the model or an option has changed."""
    seconds: float
    """Time that the fresh ones took."""
    inputs: int
    """Files that were looked at."""
    failed: dict[str, str]
    """The files that could not be used, or not in full, with what is wrong with them."""


def decompose_files(
    source: PCDNet | RunFolder | str | Path,
    paths: str | Path | Iterable[str | Path] | None,
    out: str | Path,
    *,
    formats: str | Iterable[str] = "json",
    resize: bool = False,
    values: tuple[float, float] | None = None,
    stride: int = 1,
    shard: tuple[int, int] | None = None,
    engine: str = "local",
    address: str | None = None,
    force: bool = False,
    device: str = "cpu",
    quiet: bool = False,
    say: Callable[[Setting], str] = str,
) -> Decomposed:
    """Decompose images and write which objects are where; asked again, what is done already is not done again.

    Parameters
    ----------
    source
        A model, or a run: its folder, a RunFolder, or the name of a model that comes with the package.
    paths
        Pictures, folders of pictures, videos and other files of images, or patterns such as `photos/*.png`. None is
        for a model that comes with the package: the sample pictures that come with it.
    out
        Folder for the results.
    formats
        What to write: some of json, coco, png, csv and parquet, in a list or in a text with commas.
    resize
        Resize images to the size of the model's still background; without it, images of another size are skipped.
    values
        Which values are black and white in images of more than 8 bits; by default those that the model learned with.
    stride
        Use every n-th frame of videos.
    shard
        Do only one of several parts of the images: `(0, 3)`, `(1, 3)` and `(2, 3)` are three that `gather` puts
        together. Each needs a folder of its own.
    engine
        What does the work: this process, `local`, or `ray`, the workers of a Ray cluster.
    address
        Of the Ray cluster; without one, a cluster of this machine's cores is started.
    force
        Do everything again, and write into the folder even if it holds other things than results.
    device
        Where a run's model computes.
    quiet
        Show no progress.
    say
        How settings are worded in what is reported of files that cannot be used.

    Returns
    -------
    Decomposed
        What was written, what was found, and which files could not be used.

    Examples
    --------
    >>> import tempfile
    >>> from pcdnet import ModelConfig
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (40, 30)).save(f"{folder}/new.png")
    ...     done = decompose_files(PCDNet(ModelConfig()), f"{folder}/new.png", f"{folder}/results", quiet=True)
    ...     [path.name for path in done.files]
    ['decompositions.jsonl']
    """
    out = Path(out)
    part = None if shard is None else Shard(*shard)
    chosen = _chosen(formats, engine)
    if engine == "ray":
        _check_spread(shard, device)
    elif address is not None:
        raise PcdnetError(Setting("address"), " is that of a Ray cluster; add ", Setting("engine", "ray"))
    if stride < 1:
        raise PcdnetError(Setting("stride", stride), " cannot be used; give 1 for every frame, 2 for every other")
    opened = source if isinstance(source, PCDNet) else RunFolder.open(source)
    if paths is None:
        paths = (isinstance(opened, RunFolder) and opened.samples) or ()
    with shown(quiet=quiet), phase("looking for pictures"):
        inputs = find_inputs([str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)], without=out)
    model = opened.load_model(device) if isinstance(opened, RunFolder) else opened
    if resize and model.image_size is None:
        raise PcdnetError(
            "the model has no still background, so images need no resizing; leave out ", Setting("resize")
        )
    values = View(values=values).values or model.values  # refuses what is no range
    settings = {"pcdnet": pcdnet.__version__, "model": model_digest(model), "resize": resize, "values": values}
    order = _Order(model, inputs, out, settings, chosen, stride, force, quiet, say)
    with shown(quiet=quiet):
        return _decomposed_here(order, part) if engine == "local" else _decomposed_by_ray(order, address)


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be done, checked."""

    model: PCDNet
    inputs: Sequence[Input]
    out: Path
    settings: Mapping[str, Any]
    formats: Sequence[Format]
    stride: int
    force: bool
    quiet: bool
    say: Callable[[Setting], str]

    @property
    def pictures(self) -> bool:
        return any(each.writer is None for each in self.formats)

    def write(self, records: Iterable[Record]) -> tuple[tuple[Path, ...], Summary]:
        """Write what was found in every format; the files, and what they say in numbers."""
        results = Results(records, self.model.kinds, self.model.config.channels)
        files: list[Path] = []
        for each in self.formats:
            if each.writer is not None:
                with phase(f"writing {each.name}"):
                    files += each.write(results, self.out)
        with phase("counting what was found"):
            summary = Summary.from_results(results)
        return (*files, *([self.out / PICTURES] if self.pictures else [])), summary

    def nothing(self) -> PcdnetError:
        """What is said if no image could be used."""
        return PcdnetError(f"none of the {len(self.inputs)} files could be used, so nothing was written; see above")


def _chosen(formats: str | Iterable[str], engine: str) -> tuple[Format, ...]:
    """The formats that are asked for; the engine Ray always writes parts, and needs no other."""
    if engine not in ENGINES:
        raise PcdnetError(Setting("engine", engine), f" is unknown; use {' or '.join(ENGINES)}")
    words = formats.split(",") if isinstance(formats, str) else list(formats)
    others = [word for word in words if word.strip().lower() != PARTS]
    if engine == "local" and len(others) < len(words):
        raise PcdnetError(f"the format {PARTS} is written by the engine ray alone; use parquet, or ", RAY)
    return checked_formats(others) if others or not words else ()


def _check_spread(shard: tuple[int, int] | None, device: str) -> None:
    """Refuse what the engine Ray cannot do."""
    check_installed()
    if shard is not None:
        raise PcdnetError("a cluster needs no shards; leave out ", Setting("shard"), " or ", Setting("engine"))
    if device != "cpu":
        raise PcdnetError("the engine ray computes on processors; leave out ", Setting("device"))


def _decomposed_by_ray(order: _Order, address: str | None) -> Decomposed:
    """The work done by a cluster; the journal only says whose folder it is."""
    with Journal(order.out, {**order.settings, "engine": "ray"}, force=order.force) as journal:
        found = spread(
            *(order.model, order.inputs, order.out, order.settings),
            stride=order.stride,
            pictures=order.pictures,
            address=address,
            force=order.force,
            quiet=order.quiet,
            say=order.say,
        )
        if not found.images:
            raise order.nothing()
        files, summary = order.write(Parts(found.parts))
        return Decomposed(
            files=(*files, order.out / PARTS),
            summary=summary,
            fresh=found.fresh,
            known=found.images - found.fresh,
            anew=journal.anew,
            seconds=found.seconds,
            inputs=len(order.inputs),
            failed=found.failed,
        )


def _decomposed_here(order: _Order, part: Shard | None) -> Decomposed:
    """The work done by this process, all of it or one shard."""
    shard = {} if part is None else {"shard": (part.index, part.count)}
    with Journal(order.out, {**order.settings, **shard}, force=order.force) as journal:
        if part is not None:
            unseal(order.out)
        with phase("counting the images"):
            pipeline = Pipeline(
                *(order.model, order.inputs, journal, order.out),
                resize=order.settings["resize"],
                values=order.settings["values"],
                stride=order.stride,
                pictures=order.pictures,
                shard=part,
                say=order.say,
            )
        seconds = _run(pipeline, order.quiet)
        records = journal.records([image.line for image in pipeline.sealed()])
        if len(records) == 0 and part is None:  # of many shards some may have nothing to do
            raise order.nothing()
        files, summary = order.write(records)
        if part is not None:
            _seal(part, order, pipeline, journal.digest()).write(order.out)
        return Decomposed(
            files=files,
            summary=summary,
            fresh=pipeline.fresh,
            known=pipeline.known,
            anew=journal.anew,
            seconds=seconds,
            inputs=pipeline.inputs,
            failed=pipeline.failed,
        )


def _seal(shard: Shard, order: _Order, pipeline: Pipeline, journal: str) -> Seal:
    """What `gather` must know of a shard that is done."""
    return Seal(
        shard=shard,
        settings=order.settings,
        stride=order.stride,
        formats=tuple(each.name for each in order.formats),
        inputs=len(order.inputs),
        digest=digest_of_inputs(order.inputs),
        names=order.model.names,
        channels=order.model.config.channels,
        failed=pipeline.failed,
        images=list(pipeline.sealed()),
        journal=journal,
    )


def _run(pipeline: Pipeline, quiet: bool) -> float:
    """Go through the images and show how far it is; the seconds that it took."""
    start = time.perf_counter()
    try:
        for _ in pipeline.steps() if quiet else track(pipeline.steps(), pipeline.total, "images"):
            pass
    except KeyboardInterrupt:
        done = f"{pipeline.known + pipeline.fresh} of {pipeline.total} images"
        raise KeyboardInterrupt(f"interrupted after {done}; the same command goes on from there") from None
    return time.perf_counter() - start
