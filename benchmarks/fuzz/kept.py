"""Kept: what the browser keeps with a run: edits, corrections, and what learning again leaves."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.fuzz.law import Broken
from benchmarks.fuzz.mutations import json_mutator
from benchmarks.fuzz.runs import sealed_as, sealed_words
from benchmarks.fuzz.target import Reader, Target
from pcdnet.corrections import FILE, Corrections, Drawn
from pcdnet.edits import Edited, Edits, Placed, digest_of
from pcdnet.errors import PcdnetError
from pcdnet.files import sealed_json
from pcdnet.succession import ADOPTING, CANDIDATE, complete
from pcdnet.training.relearning import FORMAT, Learned, Measured, learned_from

PICTURE = np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3)
THINGS = (Placed(3, (-2, 5), (0.5, 1.0, 0.25)), Placed(0, (1, 1), (1.0, 1.0, 1.0)))


def edits_seeds() -> Sequence[bytes]:
    """A file of edits."""
    return [Edited("a.png", digest_of(PICTURE), (12, 10), THINGS).to_json().encode()]


def prepare_edits(folder: Path) -> Reader:
    """Read as what is kept of a picture; what is read can be written, and read again."""
    edits = Edits(folder / "edits")
    edits.keep(Edited("a.png", digest_of(PICTURE), (12, 10), THINGS))
    path = next(edits.folder.glob("*.json"))

    def read(content: bytes) -> None:
        path.write_bytes(content)
        edits.damaged()
        found = edits.of("a.png", digest_of(PICTURE))
        if found is None or Edited.from_json(found.to_json()) != found:
            raise Broken("written and read again, it is another")
        found.checked(4, 3)

    return read


def corrections_seeds() -> Sequence[bytes]:
    """A file of corrections, with the digest of the picture that `prepare_corrections` keeps."""
    words = {"id": 1, "picture": "a.png", "box": [1, 2, 5, 6], "name": "cell", "digest": "0" * 64}
    whole = {"format": "pcdnet-corrections-1", "drawn": [words, {**words, "id": 2}], "removed": [1, 4]}
    return [sealed_json(json.dumps(whole)).encode()]


def prepare_corrections(folder: Path) -> Reader:
    """Read as boxes with pictures, one of which is there."""
    corrections = Corrections(folder / "corrections")
    kept = corrections.add(Drawn(PICTURE, (1, 2, 5, 6), "cell"))

    def read(content: bytes) -> None:
        (corrections.folder / FILE).write_bytes(content.replace(b"0" * 64, kept.digest.encode()))
        corrections.removed()
        for drawn in corrections.load():
            if drawn.image.shape != PICTURE.shape:
                raise Broken("another picture was read")

    return read


def adopting_seeds() -> Sequence[bytes]:
    """A note that says whose files are to come."""
    return [sealed_json('{"source": "candidate"}\n').encode(), sealed_json('{"source": "former/1"}\n').encode()]


def prepare_adopting(folder: Path) -> Reader:
    """Read when a run is opened; nothing outside of the run may be touched."""
    run, outside = folder / "run", folder / "outside"
    outside.write_text("mine", encoding="utf-8")

    def read(content: bytes) -> None:
        for name in (CANDIDATE, "former/1"):
            (run / name).mkdir(parents=True, exist_ok=True)
            (run / name / "weights").write_text("new", encoding="utf-8")
        (run / ADOPTING).write_bytes(content)
        complete(run, ("weights",), ("edits",))
        if outside.read_text(encoding="utf-8") != "mine" or sorted(p.name for p in folder.iterdir()) != [
            "outside",
            "run",
        ]:
            raise Broken("something outside of the run was touched")

    return read


def learning_seeds() -> Sequence[bytes]:
    """What learning again says of itself."""
    measured = Measured(mse=0.01, explained=0.5, objects=3.5, prototypes=5, f1=None)
    learned = Learned(before=measured, after=measured, reasons=("one",), numbers={0: 0, 2: 1}, shift=(-1, 0))
    words = {"format": FORMAT, "base": "x", **dataclasses.asdict(learned), "numbers": [[0, 0], [2, 1]]}
    return [sealed_json(json.dumps(words)).encode()]


def prepare_learning(_: Path) -> Reader:
    """Read as what waits to be adopted."""

    def read(content: bytes) -> None:
        try:
            learned = learned_from(content.decode())[1]
        except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
            raise PcdnetError("it cannot be read; learn again") from None
        str(learned)

    return read


EDITS = Target(name="edits", seeds=edits_seeds, mutate=json_mutator(sealed_words, sealed_as), prepare=prepare_edits)
CORRECTIONS = Target(
    name="corrections",
    seeds=corrections_seeds,
    mutate=json_mutator(sealed_words, sealed_as),
    prepare=prepare_corrections,
)
ADOPTION = Target(
    name="adopting", seeds=adopting_seeds, mutate=json_mutator(sealed_words, sealed_as), prepare=prepare_adopting
)
LEARNING = Target(
    name="learning", seeds=learning_seeds, mutate=json_mutator(sealed_words, sealed_as), prepare=prepare_learning
)
