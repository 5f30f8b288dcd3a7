"""Pieces: the inputs of a decomposition cut into pieces of work, each of which one worker does whole or not at all.

Pieces follow from the inputs alone, never from how many workers there are: asked again, on a cluster of another size,
what is done is recognised. Small inputs that follow each other are done together. A file of very many images is cut
into ranges of them; since such files can only be read from their beginning, into no more than `MOST_RANGES`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pcdnet.data.inputs import Input
from pcdnet.data.sources import FILES, STACK

SMALLEST, LARGEST = 128, 4096
"""Images of a piece, unless the inputs are fewer."""
ROUGHLY = 2000
"""Pieces that are aimed at: as few as they can be without making the one that is last, or lost, a long one."""
MOST_RANGES = 16
"""Ranges that a file of many images is cut into at most."""


class Span(NamedTuple):
    """Some of the images of an input."""

    place: int
    """The place of the input among those that it is cut from."""
    begin: int
    """The first image, by its place among those of the input that are used."""
    end: int | None
    """The one after the last; None for all that follow, as films may be longer than they say."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Inputs, or parts of them, that are done together."""

    inputs: tuple[Input, ...]
    """The inputs, in their order."""
    spans: tuple[Span, ...]
    """What of each of them is part of the piece; their places are those in `inputs`."""
    images: int
    """How many images these are, as far as is known in advance."""

    def has(self, place: int, number: int) -> bool:
        """Whether an image is part of it: by the place of its input, and its own place in the input."""
        _, begin, end = self.spans[place]
        return begin <= number and (end is None or number < end)

    def share(self, place: int, images: int) -> int:
        """How many of an input's images are part of it."""
        _, begin, end = self.spans[place]
        return max(0, (images if end is None else min(end, images)) - begin)

    def is_over(self, place: int, number: int) -> bool:
        """Whether neither this image of an input nor any later one is part of it."""
        end = self.spans[place].end
        return end is not None and number >= end

    def key(self, settings: Mapping[str, Any]) -> str:
        """What tells it from other pieces, and from itself with other settings or files that have changed."""
        words = [[one.name, one.stamp, one.source.name, one.source.many] for one in self.inputs]
        text = json.dumps([settings, words, self.spans], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """The piece as text for a worker."""
        inputs = [
            {
                "source": one.source.name,
                "many": one.source.many,
                "name": one.name,
                "path": str(one.path),
                "stamp": one.stamp,
                "title": one.title,
                "content": None if one.content is None else base64.b64encode(one.content).decode(),
            }
            for one in self.inputs
        ]
        return json.dumps({"inputs": inputs, "spans": self.spans, "images": self.images})

    @staticmethod
    def from_json(text: str) -> Piece:
        """The piece as `to_json` made it."""
        words = json.loads(text)
        return Piece(
            tuple(_input(one) for one in words["inputs"]), tuple(Span(*one) for one in words["spans"]), words["images"]
        )


def _input(words: dict[str, Any]) -> Input:
    source = STACK if words["many"] and words["source"] == STACK.name else None
    content = words["content"]
    return Input(
        source=source or next(each for each in FILES if each.name == words["source"]),
        name=words["name"],
        path=Path(words["path"]),
        stamp=tuple(words["stamp"]),
        title=words["title"],
        content=None if content is None else base64.b64decode(content),
    )


def pieces_of(inputs: Sequence[Input], counts: Sequence[int]) -> Iterator[Piece]:
    """Cut inputs of so many images each into pieces; the images of all pieces, one after the other, are in order."""
    size = min(LARGEST, max(SMALLEST, -(-sum(counts) // ROUGHLY)))
    spans: list[Span] = []
    images = 0
    for place, count in enumerate(counts):
        if count > size:
            if spans:
                yield _piece(inputs, spans, images)
            yield from _ranges(inputs, place, count, size)
            spans, images = [], 0
            continue
        spans.append(Span(place, 0, None))
        images += count
        if images >= size:
            yield _piece(inputs, spans, images)
            spans, images = [], 0
    if spans:
        yield _piece(inputs, spans, images)


def _ranges(inputs: Sequence[Input], place: int, count: int, size: int) -> Iterator[Piece]:
    size = max(size, -(-count // MOST_RANGES))
    for begin in range(0, count, size):
        end = None if begin + size >= count else begin + size
        yield _piece(inputs, [Span(place, begin, end)], min(size, count - begin))


def _piece(inputs: Sequence[Input], spans: Sequence[Span], images: int) -> Piece:
    own = tuple(span._replace(place=place) for place, span in enumerate(spans))
    return Piece(tuple(inputs[span.place] for span in spans), own, images)
