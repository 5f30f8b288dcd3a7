"""Decompose: the images of files, folders and films through a model, and the results as files for other tools."""

from __future__ import annotations

import hashlib
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
from pcdnet.output.formats import Format, checked_formats
from pcdnet.output.journal import Journal
from pcdnet.output.pipeline import PICTURES, Pipeline
from pcdnet.output.record import Results
from pcdnet.output.shard import Seal, Shard, digest_of_inputs, unseal
from pcdnet.output.summary import Summary
from pcdnet.progress import track
from pcdnet.run import RunFolder


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
    """The files that could not be used, with what is wrong with them."""


def decompose_files(
    source: PCDNet | RunFolder | str | Path,
    paths: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    formats: str | Iterable[str] = "json",
    resize: bool = False,
    values: tuple[float, float] | None = None,
    stride: int = 1,
    shard: tuple[int, int] | None = None,
    force: bool = False,
    device: str = "cpu",
    quiet: bool = False,
    say: Callable[[Setting], str] = str,
) -> Decomposed:
    """Decompose images and write which objects are where; asked again, what is done already is not done again.

    Parameters
    ----------
    source
        A model, or a run: its folder, or a RunFolder.
    paths
        Pictures, folders of pictures, videos and other files of images, or patterns such as `photos/*.png`.
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
    chosen, out = checked_formats(formats), Path(out)
    part = None if shard is None else Shard(*shard)
    if stride < 1:
        raise PcdnetError(Setting("stride", stride), " cannot be used; give 1 for every frame, 2 for every other")
    inputs = find_inputs([str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)], without=out)
    if not isinstance(source, PCDNet):
        source = RunFolder.open(source).load_model(device)
    model = source
    if resize and model.image_size is None:
        raise PcdnetError(
            "the model has no still background, so images need no resizing; leave out ", Setting("resize")
        )
    values = View(values=values).values or model.values  # refuses what is no range
    settings = {"pcdnet": pcdnet.__version__, "model": _digest(model), "resize": resize, "values": values}
    with Journal(out, {**settings, **({} if part is None else {"shard": shard})}, force=force) as journal:
        if part is not None:
            unseal(out)
        pictures = any(each.writer is None for each in chosen)
        pipeline = Pipeline(
            *(model, inputs, journal, out),
            resize=resize,
            values=values,
            stride=stride,
            pictures=pictures,
            shard=part,
            say=say,
        )
        seconds = _run(pipeline, quiet)
        records = pipeline.records()
        if len(records) == 0 and part is None:  # of many shards some may have nothing to do
            raise PcdnetError(f"none of the {len(inputs)} files could be used, so nothing was written; see above")
        results = Results(records, model.kinds, model.config.channels)
        files = [path for each in chosen if each.writer is not None for path in each.write(results, out)]
        if part is not None:
            _seal(part, settings, stride, chosen, inputs, model, pipeline).write(out)
        return Decomposed(
            files=(*files, *([out / PICTURES] if pictures else [])),
            summary=Summary.from_results(results),
            fresh=pipeline.fresh,
            known=pipeline.known,
            anew=journal.anew,
            seconds=seconds,
            inputs=pipeline.inputs,
            failed=pipeline.failed,
        )


def _seal(
    shard: Shard,
    settings: Mapping[str, Any],
    stride: int,
    formats: Sequence[Format],
    inputs: Sequence[Input],
    model: PCDNet,
    pipeline: Pipeline,
) -> Seal:
    """What `gather` must know of a shard that is done."""
    return Seal(
        shard=shard,
        settings=settings,
        stride=stride,
        formats=tuple(each.name for each in formats),
        inputs=len(inputs),
        digest=digest_of_inputs(inputs),
        names=model.names,
        channels=model.config.channels,
        failed=pipeline.failed,
        images=list(pipeline.sealed()),
        journal=pipeline.digest(),
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


def _digest(model: PCDNet) -> str:
    """What results depend on besides the images and the names: the configuration, its scale and every weight."""
    digest = hashlib.sha256(repr((model.config, model.learned_size)).encode())
    for name, values in model.state_dict().items():
        digest.update(name.encode() + values.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
