"""TIFF stacks for tests, sound and broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

STRIPS, LENGTHS = 273, 279
"""The tags that say where the pixels of a page are."""


def write_stack(path: Path, pages: list[np.ndarray]) -> Path:
    """A stack whose pages are compressed, so that damage is noticed."""
    first, *others = map(Image.fromarray, pages)
    first.save(path, save_all=True, append_images=others, compression="tiff_adobe_deflate")
    return path


def break_page(path: Path, number: int) -> Path:
    """Overwrite the pixels of a page."""
    content = bytearray(path.read_bytes())
    with Image.open(path) as image:
        page = ImageSequence.Iterator(image)[number]
        for start, length in zip(page.tag_v2[STRIPS], page.tag_v2[LENGTHS], strict=True):  # type: ignore[attr-defined]
            content[start : start + length] = b"\xff" * length
    path.write_bytes(content)
    return path
