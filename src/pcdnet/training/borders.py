"""Borders: the field of the images, and what is cut off at its borders.

Where things pass behind a bar or a panel, blobs end at one line, and no blob ever crosses it. They end there cut to all
sizes, whereas things that merely stand in a row are all whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int64
from scipy import ndimage

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


def find_bars(blobs: list[Blob], size: tuple[int, ...], frame: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """Where bars across the images hide what passes: on either side things are cut off to all sizes.

    A bar is no wider than a frame, so that one thing can be seen on both sides of it.
    """
    hidden = np.zeros(size, bool)
    for axis in (0, 1):
        start = np.array([blob.top if axis == 0 else blob.left for blob in blobs])
        extent = np.array([blob.mask.shape[axis] for blob in blobs])
        for first, last in _gaps(start, extent, frame[axis]):
            if axis == 0:
                hidden[first:last] = True
            else:
                hidden[:, first:last] = True
    return hidden


def beside_bars(blobs: list[Blob], hidden: Bool[np.ndarray, "H W"]) -> list[Blob]:
    """The blobs, those cut that touch a bar: there may be more of them behind it."""
    if not hidden.any():
        return blobs
    near = np.pad(ndimage.binary_dilation(hidden), 1)

    def touches(blob: Blob) -> bool:
        h, w = blob.mask.shape
        there = near[blob.top + 1 : blob.top + 1 + h, blob.left + 1 : blob.left + 1 + w]
        return bool((there & blob.mask).any())

    return [replace(blob, cut=blob.cut or touches(blob)) for blob in blobs]


def _gaps(start: Int64[np.ndarray, "n"], extent: Int64[np.ndarray, "n"], widest: int) -> Iterator[tuple[int, int]]:
    """Where bars begin and end along one side."""
    end = start + extent
    ends = [line for line in np.unique(end).tolist() if _cut_to_all_sizes(extent[end == line])]
    for line in np.unique(start).tolist():
        before = [first for first in ends if line - widest < first < line]
        if before and _cut_to_all_sizes(extent[start == line]):
            inside = ((start < line) & (end > before[-1])).mean()
            if inside <= CROSSING:
                yield before[-1], line


def _cut_to_all_sizes(extent: Int64[np.ndarray, "n"]) -> bool:
    return len(extent) >= FEWEST and len(np.unique(extent)) >= SIZES


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
        if _cut_to_all_sizes(extent[here]) and crossing <= CROSSING:
            return int(line)
    return 0
