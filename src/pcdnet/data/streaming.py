"""Streaming: images that come one after the other, of which nothing is known before, as they are to be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Num, UInt8

from pcdnet.data.keeping import Keep
from pcdnet.data.tiles import cut
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.pixels import Images

Stream = Callable[[], Iterable[tuple[str, Num[np.ndarray, "_ _ _"]]]]
"""Goes through all images, with what messages call each, in the same way each time."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Streamed:
    """Images that were gone through, as they are seen."""

    images: UInt8[Images, "N H W C"]
    """All of them, or their tiles."""
    places: Int32[np.ndarray, "N 3"] | None
    """Where tiles are cut from; see `Scenes`."""


def streamed(stream: Stream, view: View, keep: Keep, size: int = 0) -> Streamed:
    """The images of a stream, one of which is held at a time; so many bytes are expected, if that is known.

    Images have three channels if any of them has colours: where that shows late, what was written is written again.
    """

    def seen() -> Iterator[UInt8[np.ndarray, "_ _ _"]]:
        return (view.image(image, label) for label, image in stream())

    if view.tiles:
        sizes, channels = [], 1
        for image in seen():
            sizes.append((image.shape[0], image.shape[1]))
            channels = max(channels, image.shape[2])
        if view.cuts(sizes):
            large = [size for size in sizes if min(size) >= view.tiles]
            images, places = cut(seen, large, channels, view.tiles, view.ignore)
            return Streamed(images=images, places=places)
    kept = keep.kept()
    if kept is not None:
        return Streamed(images=kept, places=None)
    for channels in (1, 3):
        try:
            return Streamed(images=keep.collect(_alike(seen(), channels, keep.name), size), places=None)
        except _Coloured:
            keep.words.clear()
    raise AssertionError("images have at most three channels")


class _Coloured(Exception):
    """An image has colours, and those before it had none."""


def _alike(
    images: Iterable[UInt8[np.ndarray, "_ _ _"]], channels: int, name: str
) -> Iterator[UInt8[np.ndarray, "H W C"]]:
    """The images with so many channels; those of another size than the first are refused."""
    size = None
    for image in images:
        size = size or image.shape[:2]
        if image.shape[:2] != size:
            (H, W), (h, w) = size, image.shape[:2]
            raise PcdnetError(
                f"the images of {name} are not of one size: the first is {H}x{W}, another {h}x{w}; use ",
                *(Setting("resize", size), ", ", Setting("crop"), " for a part that all of them have, or "),
                *(Setting("tiles"), " to cut them"),
            )
        if image.shape[2] > channels:
            raise _Coloured
        yield image if image.shape[2] == channels else image.repeat(channels, axis=2)
