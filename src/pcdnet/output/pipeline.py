"""Pipeline: inputs decomposed batch by batch into a journal; what is done is skipped, what is bad is reported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from pcdnet.data.batches import Batches, Picture
from pcdnet.data.inputs import Input, printable
from pcdnet.data.intake import fitted
from pcdnet.data.notes import to_stderr
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.network import PCDNet
from pcdnet.output.journal import Entry, Journal
from pcdnet.output.pictures import picture_files, write_pictures
from pcdnet.output.record import records

PICTURES = "png"
"""The folder of pictures among the results."""


class Pipeline:
    """The way of the inputs through the model; `steps` does the work, the other attributes report how it went."""

    def __init__(
        self,
        model: PCDNet,
        inputs: Sequence[Input],
        journal: Journal,
        folder: Path,
        *,
        resize: bool = False,
        stride: int = 1,
        pictures: bool = False,
        say: Callable[[Setting], str] = str,
    ) -> None:
        """`resize` brings images of another size than the model's to it, `stride` skips frames of videos, and
        `pictures` draws what was found. `say` words the settings in notes."""
        self.inputs = inputs
        self.failed: dict[str, str] = {}
        """The inputs that could not be used, with what is wrong with them."""
        self.known = self.fresh = 0
        """Images that were done before, and those done now."""
        self._model, self._resize, self._stride, self._draws = model, resize, stride, pictures
        self._journal, self._folder, self._say = journal, folder, say
        names = json.dumps(list(model.names)).encode()
        self._drawn = hashlib.sha256(names).hexdigest()[:16] if pictures else ""
        self._places: list[int | None] = []  # of every image in the order of the inputs; None where it failed
        self._counts = [self._count(one) for one in inputs]
        self.total = max(1, sum(self._counts))
        """Images to look at, as far as is known in advance; at least 1."""

    def places(self) -> list[int]:
        """Where the journal has the images, in the order of the inputs."""
        return [place for place in self._places if place is not None]

    def steps(self) -> Iterator[tuple[int, None]]:
        """Do the work, and say at every step how many of the images it was about; together they are `total`."""
        left = self.total
        for images in self._all():
            if step := min(images, left):  # a video can have more frames than it says
                left -= step
                yield step, None
        if left:
            yield left, None

    def _all(self) -> Iterator[int]:
        batches = Batches()
        for one, count in zip(self.inputs, self._counts, strict=True):
            passed = 0
            try:
                for picture in self._pictures(one):
                    passed += 1
                    if picture is None:
                        yield 1
                    elif batch := batches.add(picture):
                        yield self._explain(batch)
            except PcdnetError as error:
                self._fail(one, error)
            yield max(0, count - passed)  # those that an input claimed and did not have
        for batch in batches.rest():
            yield self._explain(batch)

    def _pictures(self, one: Input) -> Iterator[Picture | None]:
        """The images of an input that are still to be explained; None for each that is not."""
        many, config = one.source.many, self._model.config
        known = self._journal.count(self._source(one), one.stamp) if many else 1
        step = self._stride if one.source.strided else 1
        entries = [self._done(one, number * step) for number in range(known or 0)]
        if entries and all(entries):  # then the file need not be opened
            yield from map(self._pass, filter(None, entries))
            return
        count = 0
        for number, image in one.images(self._stride):
            count += 1
            if entry := self._done(one, number):
                yield self._pass(entry)
                continue
            image = fitted(image, channels=config.channels, size=self._model.image_size, resize=self._resize)
            self._places.append(None)
            yield Picture(image=image, source=one, number=number, order=len(self._places) - 1)
            if one.name in self.failed:
                return
        if many and known is None:
            self._journal.add([{"source": self._source(one), "stamp": one.stamp, "count": count}])

    def _pass(self, entry: Entry) -> Picture | None:
        """Take an image as the journal has it."""
        self._places.append(entry.place)
        self.known += 1
        return None

    def _done(self, one: Input, number: int) -> Entry | None:
        """What the journal has of an image, if that is all that is wanted."""
        entry = self._journal.done(one.image_name(number), one.stamp)
        if entry is None or not self._draws:
            return entry
        there = entry.drawn == self._drawn and all(path.is_file() for path in picture_files(self._base(one, number)))
        return entry if there else None

    def _explain(self, batch: list[Picture]) -> int:
        """Explain a batch, draw what is wanted, and note it in the journal; how many images it was about."""
        try:
            found = self._model.decompose_all(np.stack([picture.image for picture in batch]))
        except PcdnetError as error:
            for picture in batch:
                self._fail(picture.source, error)
            return len(batch)
        if self._draws:
            for picture, one in zip(batch, found, strict=True):
                write_pictures(picture.image, one, self._model.names, self._base(picture.source, picture.number))
        lines = [
            {"stamp": picture.source.stamp, "drawn": self._drawn, "record": record}
            for picture, record in zip(batch, records(found, [picture.name for picture in batch]), strict=True)
        ]
        for picture, place in zip(batch, self._journal.add(lines), strict=True):
            self._places[picture.order] = place
        self.fresh += len(batch)
        return len(batch)

    def _fail(self, one: Input, error: PcdnetError) -> None:
        if one.name not in self.failed:
            self.failed[one.name] = reason = error.worded(self._say)
            to_stderr(printable(f"skipped {one.name}: {reason.removeprefix(f'{one.name} ')}"))

    def _count(self, one: Input) -> int:
        known = self._journal.count(self._source(one), one.stamp)
        return one.count(self._stride) if known is None else known

    def _source(self, one: Input) -> str:
        """The input as the journal knows it as a whole."""
        return f"{one.name}?stride={self._stride}" if one.source.strided else one.name

    def _base(self, one: Input, number: int) -> Path:
        return self._folder / PICTURES / one.image_title(number)
