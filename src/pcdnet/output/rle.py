"""RLE: visible masks as COCO's compressed run-length strings, a whole batch at a time.

A mask is read column by column as runs, the first of zeros. Every run's length, less that of the run two before it
from the fourth on, becomes digits of five bits, the lowest first; a digit that is not the last has the sixth bit set,
and 48 makes a printable character of it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int, Int32

MOST_DIGITS = 7
"""Digits of a run at most, the first not counted: no picture is larger."""


def encode(instances: Int32[np.ndarray, "B H W"], counts: list[int]) -> list[list[str]]:
    """The masks of the objects of every image, from label maps in which 1, 2, ... are an image's objects.

    `counts` says how many objects each image has; one that is hidden has an empty mask.
    """
    B, H, W = instances.shape
    first = np.cumsum([0, *counts])  # the number of every image's first object among all
    column_wise = np.ascontiguousarray(instances.transpose(0, 2, 1)).reshape(B, W * H)
    edge = np.ones((B, W * H + 1), bool)
    np.not_equal(column_wise[:, 1:], column_wise[:, :-1], out=edge[:, 1:-1])
    image, at = edge.nonzero()  # where runs begin, and after the last of every image its end
    begins = at < W * H
    label = column_wise[image, np.minimum(at, W * H - 1)]
    seen = (begins & (label > 0)).nonzero()[0]
    seen = seen[np.argsort(first[image[seen]] + label[seen], kind="stable")]
    owner = first[image[seen]] + label[seen] - 1
    lengths, owners = _lengths(owner, at[seen], at[seen + 1], W * H, int(first[-1]))
    words = _words(lengths, owners, int(first[-1]))
    return [words[begin:end] for begin, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]


def decode(word: str, size: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """The mask of a string, in an image of that height and width, or a ValueError for one that is no such mask."""
    (H, W), values = size, _runs(word, size)
    ones = np.arange(len(values)) % 2 == 1
    mask: Bool[np.ndarray, "H W"] = ones.repeat(values).reshape(W, H).T
    return mask


def corners(word: str, size: tuple[int, int]) -> Int[np.ndarray, "n 2"]:
    """Rows and columns of pixels of a string's mask between which all others lie, without making the mask."""
    (H, _), ends = size, _runs(word, size).cumsum()
    first, last = ends[:-1:2], ends[1::2] - 1
    first, last = first[first <= last], last[first <= last]
    # Of a run over several columns also where it leaves and enters them.
    left, right = (each[first // H < last // H] // H for each in (first, last))
    places = np.concatenate([first, last, left * H + H - 1, (left + 1) * H, right * H - 1, right * H])
    return np.stack([places % H, places // H], axis=1)


def _runs(word: str, size: tuple[int, int]) -> Int[np.ndarray, "n"]:
    """The lengths of the runs of a string, zeros and ones in turn, or a ValueError."""
    H, W = size
    digits = np.frombuffer(word.encode("ascii", errors="replace"), np.uint8).astype(np.int64) - 48
    if not len(digits) or digits.min() < 0 or digits.max() > 63 or digits[-1] >= 32:
        raise ValueError("a mask is no run-length string")
    last = digits < 32
    number = np.cumsum(np.append(0, last[:-1]))  # which run every digit belongs to
    place = np.arange(len(digits)) - np.append(0, np.flatnonzero(last) + 1)[number]
    if place.max() > MOST_DIGITS:
        raise ValueError("a mask has a run without end")
    values = np.zeros(int(number[-1]) + 1, np.int64)
    np.add.at(values, number, (digits & 31) << 5 * place)
    values -= np.where(digits[last] & 16, 1 << 5 * (place[last] + 1), 0)
    values[1::2], values[2::2] = values[1::2].cumsum(), values[2::2].cumsum()
    if values.min() < 0 or values.max() > H * W or int(values.sum()) != H * W:
        raise ValueError(f"a mask does not have the {H}x{W} pixels of its image")
    return values


def _lengths(
    owner: Int[np.ndarray, "R"], start: Int[np.ndarray, "R"], end: Int[np.ndarray, "R"], total: int, objects: int
) -> tuple[Int[np.ndarray, "L"], Int[np.ndarray, "L"]]:
    """Lengths of runs, zeros and ones in turn, and whose they are, from the runs of ones sorted by object."""
    owners = np.concatenate([owner.repeat(2), np.arange(objects)])
    order = np.argsort(owners, kind="stable")
    # Where a run ends: the zeros before ones, the ones, and after all of an object's the picture.
    edges = np.concatenate([np.stack([start, end], axis=1).reshape(-1), np.full(objects, total)])[order]
    owners = owners[order]
    first = np.diff(owners, prepend=-1) > 0
    lengths = np.where(first, edges, np.diff(edges, prepend=0))
    kept = (lengths > 0) | ~np.append(first[1:], True)  # a picture that ends with ones has no zeros behind them
    return lengths[kept], owners[kept]


def _words(lengths: Int[np.ndarray, "L"], owners: Int[np.ndarray, "L"], objects: int) -> list[str]:
    """The string of every object."""
    # The first three runs stand as they are.
    third = np.zeros(len(lengths), bool)
    third[3:] = owners[3:] == owners[:-3]
    values = lengths.copy()
    values[2:] -= np.where(third[2:], lengths[:-2], 0)
    bits = np.frexp(np.where(values < 0, ~values, values).astype(np.float64))[1]  # and one more, the sign
    counts = (bits + 5) // 5
    place = np.arange(counts.max(initial=0))
    digits = (values[:, None] >> 5 * place & 31) + 32 * (place < counts[:, None] - 1) + 48
    text = digits[place < counts[:, None]].astype(np.uint8).tobytes().decode("ascii")
    ends = np.bincount(owners, weights=counts, minlength=objects).astype(np.int64).cumsum().tolist()
    return [text[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
