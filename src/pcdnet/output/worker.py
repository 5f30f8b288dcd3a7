"""Worker: what does pieces of a decomposition in a process of a cluster, one after the other.

It has its model from the bytes of its files, and makes sure that it is the driver's. Whatever goes wrong is returned,
as a sentence or as a traceback: what a cluster makes of exceptions helps nobody.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pcdnet
from pcdnet.data.inputs import Input
from pcdnet.errors import PcdnetError, Setting, Unwritable
from pcdnet.files import PARTIAL, added_to
from pcdnet.files import folder as made
from pcdnet.model.network import PCDNet
from pcdnet.output.journal import Entry
from pcdnet.output.parts import FOLDER, Label, label_of, part_name, records_of, write_part
from pcdnet.output.pieces import Piece
from pcdnet.output.pipeline import Pipeline, drawn_as, model_digest
from pcdnet.output.record import Record
from pcdnet.run import load

ATTEMPTS = 5
"""How often a piece is begun: it may be what its workers die of."""
Batch = dict[str, Any]
"""Rows as Ray Data hands them on: columns by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What is to be done with all pieces, in plain values."""

    folder: str
    """Where relative paths begin."""
    out: str
    """The folder of results, absolute."""
    settings: Mapping[str, Any]
    """What results depend on besides the images."""
    stride: int
    """Every how many frames of videos are used."""
    pictures: bool
    """Whether pictures are drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What became of a piece."""

    number: int
    """Which piece."""
    images: int = 0
    """How many of its images are in its part."""
    fresh: int = 0
    """How many of them were decomposed now."""
    failed: dict[str, str] = field(default_factory=dict)
    """The inputs that could not be used, or not in full, with what is wrong with them."""
    notes: tuple[str, ...] = ()
    """What its readers had to say, line by line."""
    problem: str = ""
    """Why the piece could not be done, if so: a sentence for the user."""
    crash: str = ""
    """The traceback of what should not have happened."""
    given_up: bool = False
    """Whether its workers died again and again."""


class Worker:
    """Does pieces; a cluster makes one for every process, and another one where that has died."""

    def __init__(self, job: str, model: dict[str, bytes], say: Callable[[Setting], str]) -> None:
        """`job` is a Job as JSON, `model` the files of a model by name, and `say` words settings in messages."""
        self._job, self._say = Job(**json.loads(job)), say
        self._model, self._problem = None, ""
        try:
            os.chdir(self._job.folder)
            self._model = _loaded(model, self._job.settings)
        except PcdnetError as error:
            self._problem = error.worded(say)
        except OSError as error:
            reason = error.strerror or error
            self._problem = (
                f"a worker cannot enter the folder {self._job.folder} ({reason}); use one that all can enter"
            )

    def __call__(self, batch: Batch) -> Batch:
        """Do the pieces of a batch, which has their numbers and their texts."""
        done = [
            self._done(int(number), str(text)) for number, text in zip(batch["number"], batch["piece"], strict=True)
        ]
        return {"done": [json.dumps(asdict(each)) for each in done]}

    def _done(self, number: int, text: str) -> Done:
        if self._model is None:
            return Done(number=number, problem=self._problem)
        said, piece = io.StringIO(), Piece.from_json(text)
        key = piece.key({**self._job.settings, "stride": self._job.stride})
        path = Path(self._job.out) / FOLDER / part_name(number, key)
        try:
            if not _attempted(path):
                return Done(number=number, given_up=True)
            with redirect_stderr(said):
                label, fresh = self._write(self._model, path, key, piece)
            attempts_at(path).unlink(missing_ok=True)
        except PcdnetError as error:
            return Done(number=number, problem=error.worded(self._say))
        except Exception:
            return Done(number=number, crash=traceback.format_exc())
        notes = tuple(said.getvalue().splitlines())
        return Done(number=number, images=label.images, fresh=fresh, failed=label.failed, notes=notes)

    def _write(self, model: PCDNet, path: Path, key: str, piece: Piece) -> tuple[Label, int]:
        """Do a piece and write its part; what an earlier attempt found is not looked for again."""
        job, out = self._job, Path(self._job.out)
        sheet = Sheet.of(path, key, piece.inputs)
        values, resize = job.settings["values"], job.settings["resize"]
        pipeline = Pipeline(
            *(model, piece.inputs, sheet, out),
            resize=resize,
            values=None if values is None else (values[0], values[1]),
            stride=job.stride,
            pictures=job.pictures,
            shard=piece,
            say=self._say,
        )
        for _ in pipeline.steps():
            pass
        records = [sheet.records[image.line] for image in pipeline.sealed()]
        label = Label(
            key=key,
            images=len(records),
            drawn=drawn_as(model) if job.pictures else "",
            failed=pipeline.failed,
        )
        write_part(path, records, label)
        return label, pipeline.fresh


class Sheet:
    """The journal of a piece, in memory: what is done is kept when the whole piece is."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        """What was found, in the order in which it was."""
        self._entries: dict[str, Entry] = {}

    @staticmethod
    def of(path: Path, key: str, inputs: Sequence[Input]) -> Sheet:
        """What the part of an earlier attempt holds; nothing where there is none that is sound."""
        sheet, label = Sheet(), label_of(path)
        if label is None or label.key != key:
            return sheet
        stamps = {one.name: one.stamp for one in inputs}
        try:
            for record in records_of(path):
                name = record["name"] if record["name"] in stamps else record["name"].rpartition("#")[0]
                sheet.add([{"stamp": stamps[name], "drawn": label.drawn, "record": record}])
        except PcdnetError:
            return Sheet()
        return sheet

    def done(self, name: str, stamp: tuple[int, int]) -> Entry | None:
        """What is known of an image."""
        entry = self._entries.get(name)
        return entry if entry is not None and entry.stamp == stamp else None

    def add(self, lines: Sequence[dict[str, Any]]) -> None:
        """Take in what was found."""
        for line in lines:
            if "record" in line:
                entry = Entry(tuple(line["stamp"]), len(self.records), line["drawn"], 1)
                self._entries[line["record"]["name"]] = entry
                self.records.append(line["record"])


def attempts_at(path: Path) -> Path:
    """The file that has a byte for every worker that began a part, until one of them is done with it."""
    return path.with_name(f"{path.name}.attempts{PARTIAL}")


def _attempted(path: Path) -> bool:
    """Note that a part is begun once more, unless that was often enough."""
    made(path.parent)
    try:
        with added_to(attempts_at(path)) as file:
            if file.tell() >= ATTEMPTS:
                return False
            file.write(b"x")
            return True
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror or error}; make room there") from None


def _loaded(files: Mapping[str, bytes], settings: Mapping[str, Any]) -> PCDNet:
    """The model of those files, if it is what the driver has."""
    if settings["pcdnet"] != pcdnet.__version__:
        raise PcdnetError(
            f"a worker has pcdnet {pcdnet.__version__}, and this process {settings['pcdnet']}; install one version "
            "on all machines"
        )
    with tempfile.TemporaryDirectory(prefix="pcdnet-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        model = load(folder)
    if model_digest(model) != settings["model"]:
        raise PcdnetError("a worker has another model than was sent; install one version of pcdnet on all machines")
    return model
