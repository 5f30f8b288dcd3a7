"""Values: which values of images of more than 8 bits become black and white, for all images of some data alike.

Microscopes and other instruments use a small part of the values that their files could hold, with a few outliers. So
the range is read off the images: of every small block the second lowest and the second highest value, which single dead
or hot pixels do not reach; then a low percentile of the former and a high one of the latter, over all blocks. Counted
by blocks, a small bright thing in a large dark picture weighs more than by pixels, and is not cut off.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Num

BLOCK = 8
"""Side of a block."""
PERCENTILES = 0.02, 99.98
"""One block in five thousand, of the size of a picture of 565x565, may be darker than black, and one brighter than
white: so a speck of dust does not decide, and one small thing in each picture is still seen."""
MOST_IMAGES = 300
"""Images that are looked at, evenly spread; more tell nothing new."""
MOST_BLOCKS = 20_000
"""Blocks of an image that are looked at, evenly spread."""


def value_range(images: Iterable[Num[np.ndarray, "H W C"]]) -> tuple[float, float]:
    """Return the values that are to become black and white.

    Examples
    --------
    >>> dim = np.full((64, 64, 1), 200, np.uint16)
    >>> dim[10:14, 10:14], dim[50, 50] = 1100, 65535  # a spot, and a hot pixel
    >>> value_range([dim])
    (200.0, 1100.0)
    """
    found = [_extremes(image) for image in images]
    lows, highs = (np.concatenate([pair[end] for pair in found]) for end in (0, 1))
    if len(lows) == 0:
        return 0.0, 1.0
    low = float(np.percentile(lows, PERCENTILES[0], method="lower"))  # a value that is there, and none between two
    high = float(np.percentile(highs, PERCENTILES[1], method="higher"))
    low, high = (float(f"{value:.6g}") for value in (low, high))
    return low, high if high > low else low + 1.0  # all is black where nothing differs


def _extremes(image: Num[np.ndarray, "H W C"]) -> tuple[Num[np.ndarray, "n"], Num[np.ndarray, "n"]]:
    """The second lowest and the second highest value of every block, without blocks that hold what is no number."""
    side = min(BLOCK, *image.shape[:2])
    H, W = (length // side for length in image.shape[:2])
    whole = image[: H * side, : W * side].reshape(H, side, W, side, -1)
    blocks = whole.transpose(0, 2, 4, 1, 3).reshape(-1, side * side)
    blocks = blocks[:: -(-len(blocks) // MOST_BLOCKS)]
    blocks = blocks[np.isfinite(blocks).all(axis=1)]
    second = min(1, side - 1)
    ordered = np.partition(blocks, (second, -1 - second), axis=1)
    return ordered[:, second], ordered[:, -1 - second]
