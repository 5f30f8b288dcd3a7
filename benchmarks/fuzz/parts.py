"""Parts: the journal of a decomposition and the seals of its shards, changed behind their checksums."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from benchmarks.fuzz.mutations import json_mutator
from benchmarks.fuzz.runs import mutate_lines
from benchmarks.fuzz.target import Reader, Target
from benchmarks.models import true_bank
from pcdnet.config import ModelConfig
from pcdnet.data.tetrominoes import generate
from pcdnet.model.network import PCDNet
from pcdnet.output.decompose import decompose_files
from pcdnet.output.gather import gather
from pcdnet.output.journal import FILE as JOURNAL_FILE
from pcdnet.output.shard import SEAL as SEAL_FILE

FORMATS = "json,coco,csv"
IMAGES = 3


@cache
def model() -> PCDNet:
    """The true prototypes of Tetrominoes, some of them with a name."""
    config = ModelConfig(num_prototypes=19, restarts=0)
    found = PCDNet.from_bank(true_bank(), config)
    found.names = found.names.merged([1, 4], "L")
    return found


def pictures(folder: Path) -> Path:
    """A folder of small pictures."""
    folder.mkdir()
    for number, image in enumerate(generate(IMAGES, seed=5).images):
        Image.fromarray(image).save(folder / f"{number}.png")
    return folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _restored(folder: Path, contents: Mapping[str, bytes]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@cache
def _whole(images: Path) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as out:
        decompose_files(model(), images, out, formats=FORMATS, quiet=True)
        return _contents(Path(out))


@cache
def _shards(images: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    with tempfile.TemporaryDirectory() as name:
        for index in range(2):
            decompose_files(
                model(), images, Path(name, str(index)), formats=f"{FORMATS},png", shard=(index, 2), quiet=True
            )
        return _contents(Path(name, "0")), _contents(Path(name, "1"))


@cache
def _images() -> Path:
    """Pictures that stay where they are until the process ends, as journals note when files were changed."""
    return pictures(Path(tempfile.mkdtemp(prefix="pcdnet-fuzz-"), "images"))


def prepare_journal(folder: Path) -> Reader:
    """Decompose into a folder of results with that journal: what it does not know is done again."""

    def read(content: bytes) -> None:
        out = _restored(folder / "out", {**_whole(_images()), JOURNAL_FILE: content})
        with redirect_stderr(io.StringIO()):
            decompose_files(model(), _images(), out, formats=FORMATS, quiet=True)

    return read


def prepare_seal(folder: Path) -> Reader:
    """Gather two parts, one of which has that seal."""

    def read(content: bytes) -> None:
        first, second = _shards(_images())
        places = _restored(folder / "0", {**first, SEAL_FILE: content}), _restored(folder / "1", second)
        shutil.rmtree(folder / "all", ignore_errors=True)
        with redirect_stderr(io.StringIO()):
            gather(places, folder / "all", quiet=True)

    return read


def prepare_part(folder: Path) -> Reader:
    """Gather two parts, one of which has that journal, and a seal that fits it."""

    def read(content: bytes) -> None:
        first, second = _shards(_images())
        words = json.loads(first[SEAL_FILE])
        del words["sha256"]
        words["journal"] = hashlib.sha256(content).hexdigest()
        seal = _sealed(words, Random(0))
        parts = {**first, SEAL_FILE: seal, JOURNAL_FILE: content}
        shutil.rmtree(folder / "all", ignore_errors=True)
        with redirect_stderr(io.StringIO()):
            gather([_restored(folder / "0", parts), _restored(folder / "1", second)], folder / "all", quiet=True)

    return read


def _sealed(words: Any, _: Random) -> bytes:
    if not isinstance(words, dict):
        return json.dumps(words).encode()
    words.pop("sha256", None)
    digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()
    return json.dumps({**words, "sha256": digest}).encode() + b"\n"


def journal_seeds() -> Sequence[bytes]:
    """The journal of some pictures."""
    return [_whole(_images())[JOURNAL_FILE]]


JOURNAL = Target(
    name="journal", seeds=journal_seeds, mutate=mutate_lines, prepare=prepare_journal, megabytes=600, seconds=20
)
SEAL = Target(
    name="seal",
    seeds=lambda: [_shards(_images())[0][SEAL_FILE]],
    mutate=json_mutator(_sealed),
    prepare=prepare_seal,
)
PART = Target(
    name="part", seeds=lambda: [_shards(_images())[0][JOURNAL_FILE]], mutate=mutate_lines, prepare=prepare_part
)
