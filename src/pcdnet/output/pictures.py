"""Pictures: what was found in one image, as PNG files for eyes and for programs.

NAME.reconstruction.png   the image that the objects make
NAME.instances.png        indexed: 0 is background, n the n-th object from the front
NAME.semantics.png        indexed: 0 is background, p + 1 prototype p, the first of those that have the same name
NAME.overlay.png          the image, enlarged, with every object's outline, number and name
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from jaxtyping import Bool, Int32, UInt8
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from pcdnet.colours import as_rgb, instance_colours, prototype_colours
from pcdnet.decomposition import Decomposition
from pcdnet.files import folder as made
from pcdnet.files import whole_file
from pcdnet.kinds import Kinds

KINDS = ("reconstruction", "instances", "semantics", "overlay")
"""The pictures of an image."""

_SIDE, _LARGEST = 700, 20  # dots: the overlay's longer side at least, as far as so many dots a pixel make it
_DARK, _LIGHT = (0, 0, 0), (255, 255, 255)


def picture_files(base: Path) -> list[Path]:
    """The files that `write_pictures` writes for a base name."""
    return [base.with_name(f"{base.name}.{kind}.png") for kind in KINDS]


def are_drawn(base: Path) -> bool:
    """Whether all pictures of an image are there, and whole."""
    with suppress(OSError):
        return all(is_whole_png(path.read_bytes()) for path in picture_files(base))
    return False


def is_whole_png(content: bytes) -> bool:
    """Whether every chunk of a PNG file is there and has its checksum."""
    place = 8 if content.startswith(b"\x89PNG\r\n\x1a\n") else len(content)
    while place + 12 <= len(content):
        end = place + 12 + int.from_bytes(content[place : place + 4])
        kind, checked = content[place + 4 : place + 8], content[place + 4 : end - 4]
        if zlib.crc32(checked) != int.from_bytes(content[end - 4 : end]):
            return False
        if kind == b"IEND":
            return end == len(content)
        place = end
    return False


def write_pictures(image: UInt8[np.ndarray, "H W C"], found: Decomposition, kinds: Kinds, base: Path) -> None:
    """Write the pictures of an image, each whole or not at all, into files that begin with `base`."""
    made(base.parent)
    names, words = kinds.names, PngInfo()
    words.add_itxt("names", json.dumps({p + 1: names[p] for p in names.first.tolist()}, ensure_ascii=False))
    labels = np.concatenate([np.zeros(1, np.int32), names.first.astype(np.int32) + 1])
    pictures = (
        Image.fromarray(as_rgb(found.reconstruction)),
        _indexed(found.instances, instance_colours(max(1, len(found)))),
        _indexed(labels[found.semantics], prototype_colours(np.arange(len(names)))),
        Image.fromarray(overlay(image, found, kinds)),
    )
    for kind, picture, path in zip(KINDS, pictures, picture_files(base), strict=True):
        with whole_file(path) as file:
            picture.save(file, format="PNG", pnginfo=words if kind == "semantics" else None)


def overlay(image: UInt8[np.ndarray, "H W C"], found: Decomposition, kinds: Kinds) -> UInt8[np.ndarray, "h w 3"]:
    """The image, enlarged by a whole number, with the objects' outlines in the colours of their prototypes."""
    scale = max(1, min(_LARGEST, -(-_SIDE // max(image.shape[:2]))))
    picture = _enlarged(np.broadcast_to(image, (*image.shape[:2], 3)), scale).copy()
    labels = _enlarged(found.instances, scale)
    line = max(1, round(scale / 7))
    own = prototype_colours(kinds.names.first[found.prototype_ids])
    inks = np.concatenate([np.zeros((1, 3), np.uint8), own])
    # A dark line inside the coloured one: one of the two shows on whatever the object looks like.
    for width, colours in ((line + max(1, line // 2), np.zeros_like(inks)), (line, inks)):
        edge = _edges(labels, width)
        picture[edge] = colours[labels[edge]]
    sheet = Image.fromarray(picture)
    draw = ImageDraw.Draw(sheet)
    which = kinds.ids(found.prototype_ids, found.colours).tolist()
    for n, thing in reversed(list(enumerate(found.objects, start=1))):
        if thing.box is not None:
            top, left, _, width = (scale * side for side in thing.box)
            # The number alone where the words are wider than the object.
            words = f"{n} {kinds[which[n - 1]].name}"
            short = draw.textlength(words, font=_font()) > max(width, 40)
            _plate(draw, top, left, str(n) if short else words, own[n - 1])
    return np.asarray(sheet)


def _edges(labels: Int32[np.ndarray, "h w"], width: int) -> Bool[np.ndarray, "h w"]:
    """The dots of objects that are at most so many dots away from something else, the picture's border included."""
    windows = sliding_window_view(np.pad(labels, width, constant_values=-1), labels.shape)[::width, ::width]
    other = np.zeros(labels.shape, bool)
    for window in (window for row in windows for window in row):  # one at a time: together they fill the memory
        other |= window != labels
    return np.asarray(other & (labels > 0))


def _plate(draw: ImageDraw.ImageDraw, top: int, left: int, words: str, colour: UInt8[np.ndarray, "3"]) -> None:
    """Write words on a plate of a colour, its corner at a place or as near to it as fits."""
    font = _font()
    wide, high = int(draw.textlength(words, font=font)) + 6, int(font.size) + 5
    left = max(0, min(left, draw.im.size[0] - wide))
    ink = _DARK if colour @ np.array([0.3, 0.6, 0.1]) > 110 else _LIGHT
    draw.rectangle((left, top, left + wide, top + high), fill=tuple(colour.tolist()), outline=_DARK)
    draw.text((left + 3, top + 1), words, fill=ink, font=font)


@lru_cache(maxsize=1)
def _font() -> ImageFont.FreeTypeFont:
    """Matplotlib's own font, which is there wherever it is, and has the letters of many languages."""
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), 13)


def _indexed(labels: Int32[np.ndarray, "H W"], colours: UInt8[np.ndarray, "n 3"]) -> Image.Image:
    """Labels as a picture whose pixels are the labels: with a palette if 256 values are enough, else 16 bits deep."""
    if len(colours) > 255:
        return Image.fromarray(labels.astype(np.uint16))
    picture = Image.fromarray(labels.astype(np.uint8))
    picture.putpalette(bytes(3) + colours.tobytes())
    return picture


def _enlarged(values: UInt8[np.ndarray, "H W *C"] | Int32[np.ndarray, "H W"], scale: int) -> np.ndarray:
    return values.repeat(scale, axis=0).repeat(scale, axis=1)
