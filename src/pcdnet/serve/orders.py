"""Orders: the results of all pictures as files of the formats that `decompose` writes, made in the background.

Edits take the place of what was found, names and merges are those of the moment, and hidden kinds are left out.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file
from pcdnet.kinds import Kinds
from pcdnet.names import Names
from pcdnet.output.formats import Format, checked_formats
from pcdnet.output.pictures import write_pictures
from pcdnet.output.record import Record, Results
from pcdnet.serve.counting import Counting
from pcdnet.serve.folder_messages import Results as Progress
from pcdnet.serve.folder_messages import State
from pcdnet.serve.refusal import Refusal

LAST = 2
"""Files that stay although others were made in their place: somebody may still be sent them."""
_PLAIN = 60  # characters of a picture's name in that of a file


@dataclass(slots=True)
class _Order:
    """A format that was asked for."""

    format: Format
    names: Names
    version: int
    """That of the edits when it was asked for."""
    made: int = 0
    """Pictures that are drawn."""
    path: Path | None = None
    """The file, when it is there."""
    failed: str = ""


class Orders:
    """The files that were asked for, one of every format; what is asked for anew is made anew."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._orders: dict[str, _Order] = {}
        self._made = 0
        self._gone: list[Path] = []  # what somebody may still be sent
        counting.then = self._make_all

    def order(self, name: str, names: Names) -> Progress:
        """Have a file made, unless it is there and nothing has changed."""
        wanted = checked_formats([name])[0]
        known, counting = self._orders.get(wanted.name), self._counting
        if len(counting.browsing) == 0:
            raise Refusal(422, "there are no pictures to write results of; serve the run with --data")
        if known is None or known.names != names or known.version != counting.version or known.failed:
            if known is not None and known.path is not None:
                self._gone.append(known.path)
            known = self._orders[wanted.name] = _Order(wanted, names, counting.version)
        if known.path is None:
            counting.start()
        return self._progress(known)

    def file(self, name: str) -> tuple[Progress, Path | None]:
        """How far a file is, and where it is when it is there."""
        order = self._orders.get(name)
        if order is None:
            raise Refusal(404, f"nobody asked for results as {name!r:.40}; POST its format to api/results first")
        if order.failed:
            raise PcdnetError(order.failed)
        if order.path is None and not self._counting.busy:
            counts = self._counting.counts(order.names)
            if counts.state != "done":
                raise Refusal(404, f"{counts.message}; POST the format to api/results to go on")
            self._counting.start()  # it was asked for while the thread was about to end
        return self._progress(order), order.path

    def _progress(self, order: _Order) -> Progress:
        counts = self._counting.counts(order.names)
        state: State = "failed" if order.failed else "running" if order.path is None else "done"
        waiting = "writing the file" if counts.state == "done" else counts.message
        message = order.failed or (waiting if order.path is None else "the file is ready")
        done = counts.done if order.format.writer is not None or counts.state == "running" else order.made
        name = None if order.path is None else order.path.name
        return Progress(
            format=order.format.name,
            state=state,
            done=done,
            total=counts.total,
            message=message,
            eta=counts.eta if order.path is None else 0.0,
            name=name,
        )

    def _make_all(self) -> None:
        """Make what is not made yet; in the thread that counts."""
        for order in list(self._orders.values()):
            if order.path is None and not order.failed:
                try:
                    order.path = self._make(order)
                except (PcdnetError, OSError) as error:
                    order.failed = str(error)

    def _make(self, order: _Order) -> Path:
        self._made += 1
        folder = self._counting.folder / "results" / f"{self._made}" / order.format.name
        folder.mkdir(parents=True)
        while len(self._gone) > LAST:
            self._gone.pop(0).unlink(missing_ok=True)
        kinds = Kinds(order.names)
        if order.format.writer is None:
            files = self._draw(order, kinds, folder)
        else:
            records = _Kept(self._counting)
            files = order.format.write(Results(records, kinds, self._counting.model.config.channels), folder)
        if len(files) == 1 and files[0].is_file():
            return files[0]
        path = _zipped(folder, folder.parent / f"{order.format.name}.zip")
        shutil.rmtree(folder, ignore_errors=True)
        return path

    def _draw(self, order: _Order, kinds: Kinds, folder: Path) -> list[Path]:
        """The pictures of every image."""
        counting = self._counting
        for number in range(len(counting.browsing)):
            counting.check_going()
            found = counting.decomposition(number)
            if found is not None:
                title = "".join(
                    sign if sign.isalnum() or sign in "-_." else "_" for sign in counting.browsing.name(number)
                )
                shown = found.without(order.names.hidden)
                write_pictures(counting.fitted(number), shown, kinds, folder / f"{number:06}-{title[:_PLAIN]}")
            order.made = number + 1
        return [folder]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The records of all pictures that could be used, in their order; they can be gone through any number of times."""

    counting: Counting

    def __iter__(self) -> Iterator[Record]:
        for number in range(len(self.counting.browsing)):
            self.counting.check_going()
            record = self.counting.record(number)
            if record is not None:
                yield record


def _zipped(folder: Path, path: Path) -> Path:
    """All files of a folder as one."""
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for each in sorted(folder.rglob("*")):
            if each.is_file():
                archive.write(each, each.relative_to(folder))
    return path
