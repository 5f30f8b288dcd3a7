"""Origin: what a run learned from and how it was looked at, and the fingerprint by which the same images are known."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import sys
from dataclasses import dataclass
from typing import Any

from jaxtyping import UInt8

from pcdnet.data.view import UNCHANGED, View
from pcdnet.files import Checksum, checksum, sealed_json, unsealed_json
from pcdnet.pixels import Pixels
from pcdnet.progress import phase
from pcdnet.scene import Scenes

FILE = "origin.json"
"""The file of a run folder that holds it."""
ALWAYS = {"data", "minutes", "crop", "resize", "stride", "grey"}
"""What every version wrote; a file without them is none of ours, or has lost them."""

MARK = re.compile(r"(\d+)x(\d+x\d+x\d+):[0-9a-f]{8} (\d+)x\d+x\d+x\d+:[0-9a-f]{8}")
"""What fingerprints look like."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What the configuration of a run does not say: which images it learned from, and how they were looked at."""

    data: str | None = None
    """The name or path of the data; None where the images were given in Python."""
    view: View = UNCHANGED
    """How the images were looked at."""
    minutes: float | None = None
    """How long training was to take, if that was limited."""
    size: tuple[int, int] | None = None
    """Height and width of the images; None in runs of version 0.1."""
    fingerprint: str | None = None
    """That of the images, for training and for validation; None in runs of version 0.1."""

    def to_json(self) -> str:
        """The origin as text that `from_json` reads."""
        words = {f.name: getattr(self, f.name) for f in dataclasses.fields(Origin) if f.name != "view"}
        return sealed_json(json.dumps({**words, **dataclasses.asdict(self.view)}, indent=1) + "\n")

    @staticmethod
    def from_json(text: str) -> Origin:
        """Read `to_json`'s text, or raise ValueError."""
        words = json.loads(unsealed_json(text))
        if not isinstance(words, dict):
            raise ValueError("it holds no object")
        known = {field.name for kind in (Origin, View) for field in dataclasses.fields(kind)} - {"view"}
        for name in (*sorted(ALWAYS - words.keys()), *sorted(words.keys() - known)):
            raise ValueError(f"it has no {name!r}" if name in ALWAYS else f"nothing is called {name!r:.40}")
        data, minutes, mark = words["data"], words["minutes"], words.get("fingerprint")
        stride, grey, tiles = words["stride"], words["grey"], words.get("tiles")
        if not isinstance(data, str | None) or not (mark is None or MARK.fullmatch(str(mark))):
            raise ValueError(f"data is {data!r}, fingerprint is {mark!r}")
        if data is not None and ("\0" in data or not _encodable(data)):
            raise ValueError(f"data is {data!r}, which no file can be called")
        if minutes is not None and (type(minutes) not in (int, float) or not 0 < minutes < math.inf):
            raise ValueError(f"minutes is {minutes!r}")
        if type(stride) is not int or type(grey) is not bool or type(tiles) not in (int, type(None)):
            raise ValueError(f"stride is {stride!r}, grey is {grey!r}, tiles is {tiles!r}")
        sides = {name: whole_numbers(words.get(name), n) for name, n in (("crop", 4), ("resize", 2), ("ignore", 4))}
        view = View(**sides, stride=stride, grey=grey, values=numbers(words.get("values"), 2), tiles=tiles)
        size = size_in(words.get("size"))
        return Origin(data=data, minutes=minutes, size=size, view=view, fingerprint=mark)


def _encodable(name: str) -> bool:
    try:
        return bool(os.fsencode(name))
    except UnicodeEncodeError:
        return False


def fingerprint(training: Scenes, validation: Scenes) -> str:
    """Which images a run learns from, and which its best weights are chosen by: how many, how large, and a checksum.

    It is of the images as they are seen, every one of them: while it is the same, so is what is learned, wherever the
    files lie.
    """
    with phase("taking the fingerprint of the images"):
        return " ".join(map(_mark, (training.images, validation.images)))


def _mark(images: UInt8[Pixels, "N H W C"]) -> str:
    sums = Checksum()
    for image in images:  # one at a time: a copy of all is large
        sums.add(checksum(image.tobytes()).encode())
    return f"{'x'.join(map(str, images.shape))}:{sums}"


def in_words(mark: object) -> str:
    """A fingerprint as people are told it: `72 images of 35x35x3 and 8 for validation`."""
    found = MARK.fullmatch(str(mark))
    return f"{found[1]} images of {found[2]} and {found[3]} for validation" if found else "others"


def whole_numbers(value: Any, count: int) -> Any:
    """So many whole numbers as a tuple, or None; anything else is a ValueError."""
    found = numbers(value, count)
    if found is not None and any(type(side) is not int for side in found):
        raise ValueError(f"{value!r} is not {count} whole numbers")
    return found


def size_in(value: Any) -> Any:
    """Height and width of images as a tuple, or None; anything else is a ValueError."""
    found = whole_numbers(value, 2)
    if found is not None and not all(1 <= side < 2**31 for side in found):
        raise ValueError(f"{value!r} is no size of images")
    return found


def numbers(value: Any, count: int) -> Any:
    """So many finite numbers as a tuple, or None; anything else is a ValueError."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != count or any(type(each) not in (int, float) for each in value):
        raise ValueError(f"{value!r} is not {count} numbers")
    if not all(abs(each) < sys.float_info.max for each in value):
        raise ValueError(f"{value!r:.80} are not {count} finite numbers")
    return tuple(value)
