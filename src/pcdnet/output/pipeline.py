"""Pipeline: inputs decomposed batch by batch into a journal; what is done is skipped, what is bad is reported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Num, UInt8

from pcdnet.data.batches import Batches, Picture
from pcdnet.data.inputs import Input
from pcdnet.data.intake import fitted, in_eight_bits
from pcdnet.data.notes import to_stderr
from pcdnet.errors import Incomplete, PcdnetError, Setting, Unwritable
from pcdnet.model.network import PCDNet
from pcdnet.output.journal import Entry
from pcdnet.output.pictures import are_drawn, write_pictures
from pcdnet.output.record import records
from pcdnet.output.shard import Sealed, Shard

PICTURES = "png"
"""The folder of pictures among the results."""
NOTHING = np.float32(0)
"""Stands for every value of a picture that is not needed any more."""


@runtime_checkable
class Ledger(Protocol):
    """What knows which images are done, and takes in what was found: the journal of a folder, or a piece's sheet."""

    def done(self, name: str, stamp: tuple[int, int]) -> Entry | None:
        """What is known of an image, or of a file of many, if the file has not changed since."""

    def add(self, lines: Sequence[dict[str, Any]]) -> None:
        """Take in what was found."""


@runtime_checkable
class Part(Protocol):
    """Some of the images: those of a shard, or of a piece."""

    def has(self, place: int, number: int) -> bool:
        """Whether an image is part of it: by the place of its input, and its own place in the input."""

    def share(self, place: int, images: int) -> int:
        """How many of an input's images are part of it."""

    def is_over(self, place: int, number: int) -> bool:
        """Whether neither this image of an input nor any later one is part of it."""


class Pipeline:
    """The way of the inputs through the model; `steps` does the work, the other attributes report how it went."""

    def __init__(
        self,
        model: PCDNet,
        inputs: Sequence[Input],
        journal: Ledger,
        folder: Path,
        *,
        resize: bool = False,
        values: tuple[float, float] | None = None,
        stride: int = 1,
        pictures: bool = False,
        shard: Part | None = None,
        say: Callable[[Setting], str] = str,
    ) -> None:
        """`resize` brings images of another size than the model's to it, `values` are black and white in those of more
        than 8 bits, `stride` skips frames of videos, `pictures` draws what was found, and of the images only those of
        the `shard` are explained. `say` words the settings in notes."""
        self._model, self._inputs, self._journal, self._folder = model, inputs, journal, folder
        self._resize, self._values, self._stride, self._say = resize, values, stride, say
        self._shard: Part = shard or Shard(0, 1)
        self._kinds = model.kinds
        self._drawn = drawn_as(model) if pictures else ""
        self._images: list[tuple[int, int]] = []  # all that were looked at, by the places of their inputs
        # Files of many images are read by every shard: each has some of them.
        self._own = [place for place, one in enumerate(inputs) if one.source.many or self._shard.has(place, 0)]
        self._counts = [self._shard.share(place, self._count(inputs[place])) for place in self._own]
        self.inputs = len(self._own)
        """Files to look at."""
        self.total = max(1, sum(self._counts))
        """Images to look at, as far as is known in advance; at least 1."""
        self.known = self.fresh = 0
        """Images that were done before, and those done now."""
        self.failed: dict[str, str] = {}
        """The inputs that could not be used, or not in full, with what is wrong with them."""

    def sealed(self) -> Iterator[Sealed]:
        """The images that the journal has, in the order of the inputs."""
        for place, number in self._images:
            one = self._inputs[place]
            entry = self._journal.done(one.image_name(number), one.stamp)
            if entry is not None:
                yield Sealed(place, number, entry.place, one.image_title(number) if self._drawn else "")

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
        for place, count in zip(self._own, self._counts, strict=True):
            one, passed = self._inputs[place], 0
            try:
                for picture in self._pictures(place, one):
                    passed += 1
                    if picture is None:
                        yield 1
                    elif batch := batches.add(picture):
                        yield self._explain(batch)
            except Unwritable:  # a full disk is not the fault of the input, and the next one would fare no better
                raise
            except PcdnetError as error:
                self._fail(one, error)
            yield max(0, count - passed)  # those that an input claimed and did not have
        for batch in batches.rest():
            yield self._explain(batch)

    def _pictures(self, place: int, one: Input) -> Iterator[Picture | None]:
        """The images of an input that are still to be explained; None for each that is not."""
        many, step = one.source.many, self._stride if one.source.strided else 1
        known, count, regular = self._known(one) if many else 1, 0, True
        numbers = range(0, step * (known or 0), step)
        own = (number for number in numbers if self._shard.has(place, number // step))
        done = bool(numbers) and all(self._done(one, number) for number in own)  # then no file need be opened
        for number, image in zip(numbers, repeat(None)) if done else one.images(self._stride):
            if self._shard.is_over(place, number // step):
                return
            count, regular = count + 1, regular and number == step * count
            if self._shard.has(place, number // step):
                self._images.append((place, number))
                if image is None or self._done(one, number):
                    self.known += 1
                    yield None
                else:
                    yield Picture(image=self._fitted(one, number, image), source=one, number=number)
            elif image is not None:
                self._fitted(one, number, image)  # what ends a file for one shard must end it for all
        if many and known is None and regular:  # pages that were skipped would be looked for by the wrong numbers
            self._journal.add([{"source": self._source(one), "stamp": one.stamp, "count": count}])

    def _fitted(self, one: Input, number: int, image: Num[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "h w c"]:
        """An image as the model takes it."""
        image = in_eight_bits(image, self._values, one.image_name(number))
        return fitted(image, channels=self._model.config.channels, size=self._model.image_size, resize=self._resize)

    def _done(self, one: Input, number: int) -> bool:
        """Whether the journal has of an image all that is wanted."""
        entry = self._journal.done(one.image_name(number), one.stamp)
        if entry is None or not self._drawn:
            return entry is not None
        return entry.drawn == self._drawn and are_drawn(self._base(one, number))

    def _explain(self, batch: list[Picture]) -> int:
        """Explain a batch, draw what is wanted, and note it in the journal; how many images it was about."""
        try:
            # One large picture is not copied to be a stack.
            images = batch[0].image[None] if len(batch) == 1 else np.stack([picture.image for picture in batch])
            found = self._model.decompose_all(images, backgrounds=False)
        except PcdnetError as error:
            for picture in batch:
                self._fail(picture.source, error)
            return len(batch)
        if self._drawn:
            for picture, one in zip(batch, found, strict=True):
                shown = one.without(self._kinds.names.hidden)
                write_pictures(picture.image, shown, self._kinds, self._base(picture.source, picture.number))
        # Labels are all that records need; pictures would fill the memory meanwhile.
        found = [replace(one, reconstruction=np.broadcast_to(NOTHING, one.reconstruction.shape)) for one in found]
        made = zip(batch, records(found, [picture.name for picture in batch]), strict=True)
        self._journal.add([{"stamp": one.source.stamp, "drawn": self._drawn, "record": record} for one, record in made])
        self.fresh += len(batch)
        return len(batch)

    def _fail(self, one: Input, error: PcdnetError) -> None:
        if one.name not in self.failed:
            self.failed[one.name] = reason = error.worded(self._say)
            whole = f"skipped {one.name}: {reason.removeprefix(f'{one.name} ')}"
            to_stderr(reason if isinstance(error, Incomplete) else whole)

    def _count(self, one: Input) -> int:
        """How many images an input holds, or claims to hold."""
        known = self._known(one)
        return one.count(self._stride) if known is None else known

    def _known(self, one: Input) -> int | None:
        """How many images an input holds, if it was read to its end before."""
        whole = self._journal.done(self._source(one), one.stamp)
        return None if whole is None else whole.count

    def _source(self, one: Input) -> str:
        """The input as the journal knows it as a whole."""
        return f"{one.name}?stride={self._stride}" if one.source.strided else one.name

    def _base(self, one: Input, number: int) -> Path:
        return self._folder / PICTURES / one.image_title(number)


def drawn_as(model: PCDNet) -> str:
    """What tells pictures with the names and colours that the model's kinds have from those with others."""
    words = [*model.names, *([kind.name, kind.colour] for kind in model.kinds), *sorted(model.names.hidden)]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]


def model_digest(model: PCDNet) -> str:
    """What results depend on besides the images and the names: the configuration, its scale and every weight."""
    digest = hashlib.sha256(repr((model.config, model.learned_size)).encode())
    for name, values in model.state_dict().items():
        digest.update(name.encode() + values.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
