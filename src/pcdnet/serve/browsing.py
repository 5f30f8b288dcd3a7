"""Browsing: the strip of pictures as the page sees it: names, small pictures, whole ones, and the edits of each."""

from __future__ import annotations

import io
import secrets
import time
from math import prod

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from pcdnet.colours import as_rgb
from pcdnet.data import intake
from pcdnet.data.strip import Strip
from pcdnet.edits import Edited, Edits, digest_of
from pcdnet.errors import PcdnetError
from pcdnet.serve.limits import MOST_DECODED, QUICK_SEARCHED
from pcdnet.serve.pictures import png
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.shelf import Shelf

THUMBNAIL = 128
"""Pixels of the longer side of a small picture at most."""
SHELF_BYTES, THUMBNAIL_BYTES = 64 << 20, 16 << 20
"""Bytes of pictures and of small pictures that are kept in memory."""
MOST_LISTED = 200
"""Pictures that are listed at a time."""
HEADER_SECONDS = 0.05
"""Seconds for reading the sizes of listed pictures; those that are not read in it are not known yet."""
QUALITY = 88
"""That of JPEG, for small pictures of photographs."""


class Browsing:
    """A strip with what is remembered of it."""

    def __init__(self, strip: Strip | None, channels: int, edits: Edits) -> None:
        """`channels` are those of the model, which every picture is made to have."""
        self.strip, self.edits = strip, edits
        self.mark = secrets.token_hex(8)
        """What tells this strip from those of other servers."""
        self._channels = channels
        self._pixels: Shelf[UInt8[np.ndarray, "H W C"]] = Shelf(SHELF_BYTES, lambda picture: picture.nbytes)
        self._small: Shelf[tuple[bytes, str]] = Shelf(THUMBNAIL_BYTES, lambda file: len(file[0]))
        self._digests: dict[int, str] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        self._problems: dict[int, str] = {}

    def __len__(self) -> int:
        return 0 if self.strip is None else len(self.strip)

    @property
    def source(self) -> str:
        """Where the pictures come from."""
        return "" if self.strip is None else self.strip.source

    def name(self, number: int) -> str:
        """What a picture is called."""
        return self._checked(number).name(number)

    def numbers(self, names: set[str]) -> dict[str, int]:
        """The numbers of the pictures that are called so."""
        return {name: n for n in range(len(self) if names else 0) if (name := self.name(n)) in names}

    def problem(self, number: int) -> str | None:
        """Why a picture cannot be read, as far as that was tried."""
        return self._problems.get(number)

    def pixels(self, number: int) -> UInt8[np.ndarray, "H W C"]:
        """A picture with the model's channels; one that cannot be read is refused."""
        strip = self._checked(number)

        def read() -> UInt8[np.ndarray, "H W C"]:
            try:
                if prod(size := self.size(number)) > MOST_DECODED:
                    raise PcdnetError(f"{size[0]}x{size[1]} pixels are more than {MOST_DECODED:,}; cut it into parts")
                picture = intake.fitted(strip.pixels(number), channels=self._channels)
            except PcdnetError as error:
                self._problems[number] = f"{strip.name(number)}: {error}"
                raise Refusal(422, self._problems[number]) from None
            self._problems.pop(number, None)
            self._sizes[number] = picture.shape[0], picture.shape[1]
            self._digests[number] = digest_of(picture)
            return picture

        return self._pixels.get(number, read)

    def digest(self, number: int) -> str:
        """The digest of a picture's pixels."""
        if number not in self._digests:
            self.pixels(number)
        return self._digests[number]

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of a picture; nothing of it is decoded."""
        strip = self._checked(number)
        if number not in self._sizes:
            try:
                self._sizes[number] = strip.size(number)
            except PcdnetError as error:
                self._problems[number] = f"{strip.name(number)}: {error}"
                raise Refusal(422, self._problems[number]) from None
        return self._sizes[number]

    def sizes(self, numbers: range) -> dict[int, tuple[int, int]]:
        """The sizes of some pictures, as many as can be found in a moment."""
        found, end = {}, time.monotonic() + HEADER_SECONDS
        for number in numbers:
            if number in self._sizes:
                found[number] = self._sizes[number]
            elif number not in self._problems and time.monotonic() < end:
                try:
                    found[number] = self.size(number)
                except Refusal:
                    continue
        return found

    def usual_size(self) -> tuple[int, int] | None:
        """The size of the first picture that can be read, of a few."""
        return next(iter(self.sizes(range(min(len(self), 10))).values()), None)

    def is_large(self, number: int) -> bool:
        """Whether reading a picture takes long; what cannot be told is."""
        try:
            return prod(self.size(number)) > 4 * QUICK_SEARCHED
        except Refusal as refused:
            if refused.status == 404:
                raise
            return False

    def file(self, number: int) -> bytes:
        """A picture as a PNG file."""
        return png(as_rgb(self.pixels(number).astype(np.float32) / 255))

    def thumbnail(self, number: int) -> tuple[bytes, str]:
        """A small picture as a file, and its kind: a tiny one as it is, others as JPEG."""
        self._checked(number)
        return self._small.get(number, lambda: thumbnail(self.pixels(number)))

    def edits_of(self, number: int) -> Edited | None:
        """What is kept of a picture; damaged edits are refused."""
        if not Edits.is_among(self.name(number), self.edits.marks()):
            return None
        return self.edits.of(self.name(number), self.digest(number))

    def _checked(self, number: int) -> Strip:
        if self.strip is None or not 0 <= number < len(self.strip):
            raise Refusal(404, f"there is no picture {number}; there are {len(self)}, from 0 on")
        return self.strip


def thumbnail(picture: UInt8[np.ndarray, "H W C"]) -> tuple[bytes, str]:
    """A picture of THUMBNAIL pixels a side at most as the bytes of a file, and their kind."""
    longest = max(picture.shape[:2])
    if longest <= THUMBNAIL:
        return png(as_rgb(picture.astype(np.float32) / 255)), "image/png"
    factor = THUMBNAIL / longest
    height, width = (max(1, round(side * factor)) for side in picture.shape[:2])
    small = intake.resized(picture, (height, width))
    buffer = io.BytesIO()
    Image.fromarray(np.broadcast_to(small, (height, width, 3))).save(buffer, format="jpeg", quality=QUALITY)
    return buffer.getvalue(), "image/jpeg"
