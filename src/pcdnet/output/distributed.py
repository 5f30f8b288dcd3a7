"""Distributed: files decomposed by the engine Ray, piece by piece, on one machine or on many.

The driver lists the inputs and cuts them into pieces; workers do them and write a part for each; the driver counts, and
writes the other formats from the parts. What is done is seen from the parts that are there.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pcdnet.data.inputs import Input
from pcdnet.data.notes import printable, to_stderr
from pcdnet.errors import PcdnetError, Setting, Unwritable
from pcdnet.model.network import PCDNet
from pcdnet.output.cluster import cluster, mapped
from pcdnet.output.parts import FOLDER, Label, label_of, part_name
from pcdnet.output.pieces import Piece, pieces_of
from pcdnet.output.pipeline import drawn_as
from pcdnet.output.worker import ATTEMPTS, Done, Job, Worker, attempts_at
from pcdnet.progress import counting, track


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """What the workers of a cluster did."""

    parts: tuple[Path, ...]
    """The parts, in the order of the inputs."""
    images: int
    """Images that they have."""
    fresh: int
    """Images that were decomposed now."""
    failed: dict[str, str]
    """The inputs that could not be used, or not in full, with what is wrong with them."""
    seconds: float
    """Time that it took, the start of the cluster included."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The pieces with the paths of their parts."""

    pieces: Sequence[Piece]
    keys: Sequence[str]
    folder: Path

    def path(self, number: int) -> Path:
        return self.folder / part_name(number, self.keys[number])

    def finished(self, drawn: str) -> dict[int, Label]:
        """The pieces with nothing left to do; those with bad inputs are looked at again."""
        found: dict[int, Label] = {}
        for number, key in enumerate(self.keys):
            label = label_of(self.path(number)) if self.path(number).is_file() else None
            if label is not None and label.key == key and not label.failed and drawn in ("", label.drawn):
                found[number] = label
        return found

    def clean(self) -> None:
        """Remove what is of other inputs, and what workers that died left half-written."""
        own = {self.path(number).name for number in range(len(self.pieces))}
        for path in self.folder.iterdir():
            if path.name not in own:
                with suppress(OSError):
                    path.unlink()


def spread(
    model: PCDNet,
    inputs: Sequence[Input],
    out: Path,
    settings: Mapping[str, Any],
    *,
    stride: int,
    pictures: bool,
    address: str | None,
    force: bool,
    quiet: bool,
    say: Callable[[Setting], str],
) -> Spread:
    """Decompose inputs on a cluster into the parts of a folder; what is done already is not done again."""
    start = time.perf_counter()
    pieces = [*pieces_of(inputs, [*counting((one.count(stride) for one in inputs), len(inputs), "looking into file")])]
    plan = _Plan(pieces, [piece.key({**settings, "stride": stride}) for piece in pieces], out / FOLDER)
    known = {} if force else plan.finished(drawn_as(model) if pictures else "")
    job = Job(folder=str(Path.cwd()), out=str(out.absolute()), settings=settings, stride=stride, pictures=pictures)
    left = [number for number in range(len(pieces)) if number not in known]
    for number in left:
        for path in (attempts_at(plan.path(number)), *([plan.path(number)] if force else [])):
            path.unlink(missing_ok=True)
    tally = _Tally(done={number: Done(number=number, images=label.images) for number, label in known.items()})
    total = sum(pieces[number].images for number in left)
    if left:
        steps = _steps(model, plan, left, job, address, say, tally)
        try:
            with closing(steps):  # so that the cluster ends before anything is said
                for _ in steps if quiet else track(steps, max(1, total), "images"):
                    pass
        except KeyboardInterrupt:
            done = f"{tally.images} of {sum(piece.images for piece in pieces)} images"
            raise KeyboardInterrupt(f"interrupted after {done}; the same command goes on from there") from None
    lost = [number for number in left if number not in tally.done or tally.done[number].given_up]
    if lost:
        raise _gave_up(plan, lost)
    plan.clean()
    return Spread(
        parts=tuple(plan.path(number) for number in range(len(pieces)) if tally.done[number].images),
        images=tally.images,
        fresh=sum(done.fresh for done in tally.done.values()),
        failed=dict(item for number in sorted(tally.done) for item in tally.done[number].failed.items()),
        seconds=time.perf_counter() - start,
    )


@dataclass(frozen=True, slots=True)
class _Tally:
    """What became of the pieces so far."""

    done: dict[int, Done]

    @property
    def images(self) -> int:
        return sum(done.images for done in self.done.values())


def _steps(
    model: PCDNet,
    plan: _Plan,
    left: Sequence[int],
    job: Job,
    address: str | None,
    say: Callable[[Setting], str],
    tally: _Tally,
) -> Generator[tuple[int, None], None, None]:
    """Do the pieces that are left, and say of each how many images it was about."""
    rows = [{"number": number, "piece": plan.pieces[number].to_json()} for number in left]
    said: set[str] = set()
    with cluster(address) as ray:
        for text in mapped(ray, Worker, (json.dumps(asdict(job)), _files(model), say), rows):
            words = json.loads(text)
            done = Done(**{**words, "notes": tuple(words["notes"])})
            for note in done.notes:
                if note not in said:  # every piece of a file that is damaged says so
                    said.add(note)
                    to_stderr(note.removeprefix("note: "))
            if done.crash:
                raise RuntimeError(f"a worker failed:\n{printable_lines(done.crash)}")
            if done.problem:
                raise Unwritable(done.problem)
            tally.done[done.number] = done
            yield plan.pieces[done.number].images, None


def printable_lines(text: str) -> str:
    """Lines for a terminal, whatever is in them."""
    return "\n".join(map(printable, text.splitlines()))


def _files(model: PCDNet) -> dict[str, bytes]:
    """A model as the bytes of its files, by name: nothing of ours is pickled on its way to other machines."""
    with tempfile.TemporaryDirectory(prefix="pcdnet-") as folder:
        model.save(folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _gave_up(plan: _Plan, lost: Sequence[int]) -> PcdnetError:
    """What is said of pieces whose workers died every time."""
    first = plan.pieces[lost[0]].inputs
    files = first[0].name if len(first) == 1 else f"{first[0].name} to {first[-1].name}"
    return PcdnetError(
        f"{ATTEMPTS} workers died at each of {len(lost)} of {len(plan.pieces)} pieces of the work, first at {files}; "
        "look whether their machines have memory for such images; the same command tries these pieces again"
    )
