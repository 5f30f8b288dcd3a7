"""Counting: what is found in all pictures of the strip, and the files made of it, by a thread of its own.

What is found is kept in a folder for the time of the server; names, merges, hidden kinds and edits are applied to what
is kept, so changing them costs no search.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int32, Int64

from pcdnet.colours import as_hex, prototype_colours
from pcdnet.decomposition import Decomposition
from pcdnet.edits import Edited
from pcdnet.errors import PcdnetError
from pcdnet.kinds import Kinds
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.journal import Journal
from pcdnet.output.record import Record, records
from pcdnet.serve.browsing import Browsing
from pcdnet.serve.folder_messages import Counts, KindCount, State

BATCH, BATCH_PIXELS = 8, 1 << 18
"""Pictures that are decomposed together, and their pixels at most: others wait for a batch in which Python is busy."""
MOST_NAMED = 100
"""Pictures at the limit that are named."""
NICE = 10
"""How far the thread stands back for those that answer requests."""
CLOSING = 0.7
"""Seconds that the thread has to come to its end when the server is stopped."""
LEAST_ETA = 3
"""Pictures after which it can be told how long the others take."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What is remembered of a picture."""

    prototypes: Int32[np.ndarray, "n"]
    colours: Float32[np.ndarray, "n C"]
    at_limit: bool
    place: int
    """Where its record is in the journal."""


class Stopped(Exception):
    """Whoever counts was asked to stop."""


class Counting:
    """The pictures of a strip, counted by one model."""

    def __init__(self, browsing: Browsing, model: PCDNet, fitted: Callable[[int], np.ndarray]) -> None:
        """`fitted` gives a picture as the model takes it, or refuses it."""
        self.browsing, self.model = browsing, model
        self.fitted = fitted
        """A picture as the model takes it, or a refusal."""
        self.then: Callable[[], None] = lambda: None
        """What the thread does when all is counted."""
        self._tallies: dict[int, Tally] = {}
        self._edited: dict[int, tuple[Int32[np.ndarray, "n"], Float32[np.ndarray, "n C"]]] = {}
        self._damaged: set[int] = set()
        self._state: State = "idle"
        self._message = ""
        self._begun, self._done_before = 0.0, 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._folder: Path | None = None
        self._journal: Journal | None = None
        self._counted: tuple[object, Counts] | None = None
        self.version = 0
        """Changes whenever an edit does."""

    @property
    def busy(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def folder(self) -> Path:
        """Where the thread keeps what it finds."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pcdnet-serve-"))
        return self._folder

    def start(self) -> bool:
        """Begin, or go on, in the background; False if it is at work already."""
        with self._lock:
            if self.busy:
                return False
            self._stopping.clear()
            self._state, self._message = "running", "decomposing the pictures"
            self._begun, self._done_before = time.monotonic(), self._done()
            self._thread = threading.Thread(target=self._run, name="pcdnet-counting", daemon=True)
            self._thread.start()
            return True

    def stop(self, seconds: float = 0.0) -> None:
        """Ask the thread to end after what it is at, and wait for so long."""
        self._stopping.set()
        if self._thread is not None and seconds > 0:
            self._thread.join(seconds)

    def close(self) -> None:
        """Stop, and remove what was kept."""
        self.stop(CLOSING)
        if self._journal is not None and not self.busy:
            self._journal.__exit__()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def check_going(self) -> None:
        """Raise Stopped if the thread was asked to stop."""
        if self._stopping.is_set():
            raise Stopped

    def note_edit(self, number: int, edited: Edited | None) -> None:
        """Count a picture as somebody left it or, None, as it was found."""
        with self._lock:
            if edited is None:
                self._edited.pop(number, None)
            else:
                ids = np.array([thing.prototype for thing in edited.objects], np.int32)
                colours = np.array([thing.colour for thing in edited.objects], np.float32)
                self._edited[number] = ids, colours.reshape(len(ids), self.model.config.channels)
            self.version += 1

    def forget_edits(self) -> None:
        """Count all pictures as they were found."""
        with self._lock:
            self._edited.clear()
            self.version += 1

    def objects(self, number: int, hidden: frozenset[int]) -> int | None:
        """How many objects a picture has; None where that is not known yet."""
        found = self._found(number)
        return None if found is None else int((~np.isin(found[0], list(hidden))).sum())

    def counts(self, names: Names) -> Counts:
        """What is known by now."""
        with self._lock:
            known = self._counted
            mark = (names, self.version, len(self._tallies), len(self._damaged))
            # What was counted a moment ago need not be counted anew for everybody who asks.
            counted = known[1] if known is not None and known[0] == mark else self._sum(names)
            self._counted = mark, counted
            return counted.model_copy(
                update={"state": self._state, "message": self._message, "eta": self._eta(), "done": self._done()}
            )

    def record(self, number: int) -> Record | None:
        """The record of a picture as it is kept, edited or found; for the thread alone. None of a damaged one."""
        tally, journal = self._tallies.get(number), self._journal
        edited = self.browsing.edits_of(number) if number in self._edited else None
        if edited is not None:
            return self._edited_record(number, edited)
        if tally is None or journal is None:
            return None
        return next(iter(journal.records([tally.place])))

    def decomposition(self, number: int) -> Decomposition | None:
        """The same, painted."""
        found = self.record(number)
        if found is None:
            return None
        scene = Decomposition.from_dict(found, self.model.config.channels)
        return self.model.recompose(scene, self.fitted(number))

    def _edited_record(self, number: int, edited: Edited) -> Record:
        things = [thing.to_dict() for thing in edited.objects]
        scene = Decomposition.from_dict({"objects": things, "size": edited.size}, self.model.config.channels)
        painted = self.model.recompose(scene, self.fitted(number))
        return records([painted], [edited.name])[0]

    def _found(self, number: int) -> tuple[Int32[np.ndarray, "n"], Float32[np.ndarray, "n C"]] | None:
        if number in self._edited:
            return self._edited[number]
        tally = self._tallies.get(number)
        return None if tally is None else (tally.prototypes, tally.colours)

    def _done(self) -> int:
        return len(self._tallies) + len(self._damaged)

    def _eta(self) -> float | None:
        done = self._done() - self._done_before
        if self._state != "running" or done < LEAST_ETA:
            return None
        return (len(self.browsing) - self._done()) * (time.monotonic() - self._begun) / done

    def _sum(self, names: Names) -> Counts:
        """The counts of all pictures that are known."""
        kinds, channels = Kinds(names), self.model.config.channels
        numbers = sorted(self._tallies.keys() | self._edited.keys())
        found = [
            self._found(number) or (np.zeros(0, np.int32), np.zeros((0, channels), np.float32)) for number in numbers
        ]
        ids = np.concatenate([np.zeros(0, np.int32), *(prototypes for prototypes, _ in found)])
        colours = np.concatenate([np.zeros((0, channels), np.float32), *(own for _, own in found)])
        which: Int64[np.ndarray, "n"] = kinds.ids(ids, colours)
        where = np.repeat(np.arange(len(numbers)), [len(prototypes) for prototypes, _ in found])
        objects = np.bincount(which, minlength=len(kinds))
        pictures = np.bincount(np.unique(np.stack([which, where]), axis=1)[0], minlength=len(kinds))
        inks = prototype_colours(names.first)
        full = [number for number, tally in sorted(self._tallies.items()) if tally.at_limit]
        return Counts(
            state=self._state,
            done=self._done(),
            total=len(self.browsing),
            message=self._message,
            eta=None,
            at_limit=full[:MOST_NAMED],
            pictures_at_limit=len(full),
            damaged=len(self._damaged),
            kinds=[
                KindCount(
                    name=kind.name,
                    group=kind.group,
                    prototypes=list(kind.prototypes),
                    tint=None if kind.colour is None else list(kind.colour),
                    colour=as_hex(inks[kind.prototypes[0]]),
                    hidden=names.hidden.issuperset(kind.prototypes),
                    objects=int(objects[kind.id]),
                    pictures=int(pictures[kind.id]),
                )
                for kind in kinds
            ],
        )

    def _run(self) -> None:
        """The work of the thread."""
        torch.set_num_threads(1)
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        try:
            if self._journal is None:
                self._journal = Journal(self.folder / "found", {"serve": 1})
            for batch in self._batches():
                self.check_going()
                self._explain(batch)
            self._end("done", f"{len(self._tallies)} pictures are counted")
            self.then()
        except Stopped:
            self._end("idle", "stopped; start it again to go on")
        except (PcdnetError, OSError) as error:
            self._end("failed", str(error))
        except Exception as error:  # a thread that died would look as if it were at work for ever
            self._end("failed", f"something broke: {error!r}; look at the server's output")
            raise

    def _end(self, state: State, message: str) -> None:
        with self._lock:
            self._state, self._message = state, message

    def _batches(self) -> Iterator[list[tuple[int, np.ndarray]]]:
        """The pictures that are not counted yet, some of one size at a time."""
        for _, alike in groupby(self._pictures(), key=lambda pair: pair[1].shape):
            batch: list[tuple[int, np.ndarray]] = []
            for pair in alike:
                if batch and (len(batch) == BATCH or (len(batch) + 1) * pair[1][..., 0].size > BATCH_PIXELS):
                    yield batch
                    batch = []
                batch.append(pair)
            yield batch

    def _pictures(self) -> Iterator[tuple[int, np.ndarray]]:
        marks = self.browsing.edits.marks()
        for number in range(len(self.browsing)):
            self.check_going()
            if number in self._tallies:
                continue
            try:
                picture = self.fitted(number)
                name = self.browsing.name(number)
                if number not in self._edited and self.browsing.edits.is_among(name, marks):
                    self._note_kept(number)
                yield number, picture
            except PcdnetError:
                self._damaged.add(number)

    def _note_kept(self, number: int) -> None:
        """Take in edits of an earlier time, if they can be used."""
        with suppress(PcdnetError):
            edited = self.browsing.edits_of(number)
            if edited is not None:
                config = self.model.config
                self.note_edit(number, edited.checked(config.num_prototypes, config.channels))

    def _explain(self, batch: list[tuple[int, np.ndarray]]) -> None:
        assert self._journal is not None
        images = np.stack([picture for _, picture in batch])
        found = self.model.decompose_all(images, backgrounds=False)
        most = self.model.max_objects_in((images.shape[1], images.shape[2]))
        for (number, _), one in zip(batch, found, strict=True):
            name = self.browsing.name(number)
            small = replace(one, reconstruction=np.broadcast_to(np.float32(0), one.reconstruction.shape))
            self._journal.add([{"stamp": [0, 0], "record": records([small], [name])[0]}])
            tally = Tally(one.prototype_ids, one.colours, len(one) >= most, self._journal.entries[name].place)
            with self._lock:
                self._tallies[number] = tally
                self._damaged.discard(number)
