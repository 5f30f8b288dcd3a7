"""Borders: the field of the images, and what is cut off at its borders.

Where things pass behind a bar or a panel, blobs end at one line, and no blob ever crosses it. They end there cut to all
sizes, whereas things that merely stand in a row are all whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from pcdnet.model.field import Field
from pcdnet.training.foreground import Blob

FEWEST, SIZES = 10, 4
"""Blobs that must end at a border, and different sizes that they are cut to, at least."""
CROSSING = 0.001
"""Share of the blobs that may cross a border: what is noise, or seen through a gap."""
OUTSIDE = 0.2
"""Share of the blobs that may lie beyond a border, such as the digits of a panel."""


def find_field(blobs: list[Blob], size: tuple[int, int]) -> Field | None:
    """The part of images of this size in which things are seen; None where no border is inside the images."""
    if not blobs:
        return None
    corners = np.array([(blob.top, blob.left) for blob in blobs])
    extents = np.array([blob.mask.shape for blob in blobs])
    (top, bottom), (left, right) = (
        (_first(start, extent, side), side - _first(side - start - extent, extent, side))
        for start, extent, side in zip(corners.T, extents.T, size, strict=True)
    )
    found = Field(top, left, bottom - top, right - left)
    return None if found.size == size else found


def at_borders(blobs: list[Blob], field: Field | None) -> list[Blob]:
    """The blobs in the field, with those that reach its borders cut."""
    if field is None:
        return blobs
    bottom, right = field.top + field.height, field.left + field.width
    found = []
    for blob in blobs:
        rows, columns = (blob.top, blob.top + blob.mask.shape[0]), (blob.left, blob.left + blob.mask.shape[1])
        if rows[1] <= field.top or rows[0] >= bottom or columns[1] <= field.left or columns[0] >= right:
            continue
        cut = rows[0] <= field.top or rows[1] >= bottom or columns[0] <= field.left or columns[1] >= right
        found.append(replace(blob, cut=blob.cut or cut))
    return found


def _first(start: Int64[np.ndarray, "n"], extent: Int64[np.ndarray, "n"], side: int) -> int:
    """The border that is met first from the beginning of a side; 0 where there is none."""
    end = start + extent
    for line in np.unique(start[start < side // 2]).tolist():
        here = start == line
        crossing, beyond = ((start < line) & (end > line)).mean(), (end <= line).mean()
        if beyond > OUTSIDE:
            break
        if here.sum() >= FEWEST and len(np.unique(extent[here])) >= SIZES and crossing <= CROSSING:
            return int(line)
    return 0
