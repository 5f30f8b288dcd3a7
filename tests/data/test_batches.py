"""Laws of batches: every image comes out once, with others of its size, and few wait."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.data.batches import MOST_IMAGES, MOST_PIXELS, Batches, Picture
from pcdnet.data.inputs import Input
from pcdnet.data.sources import FILES

SOURCE = Input(source=FILES[-2], name="a.npz", path=Path("a.npz"), stamp=(0, 0), title="a")


def picture(order: int, height: int, width: int = 4) -> Picture:
    """A picture that takes no memory, whatever its size."""
    image = np.broadcast_to(np.uint8(0), (height, width, 3))
    return Picture(image=image, source=SOURCE, number=order)


@given(st.lists(st.integers(1, 300), max_size=400))
def test_every_image_comes_out_once_with_others_of_its_size(heights: list[int]) -> None:
    batches, out = Batches(), []
    for order, height in enumerate(heights):
        if batch := batches.add(picture(order, height)):
            out.append(batch)
        assert order + 1 - sum(map(len, out)) < 4 * MOST_IMAGES
    out += list(batches.rest())
    assert sorted(one.number for batch in out for one in batch) == list(range(len(heights)))
    for batch in out:
        assert len({one.image.shape for one in batch}) == 1
        assert 1 <= len(batch) <= MOST_IMAGES


def test_a_full_batch_leaves_at_once_and_large_images_leave_in_small_ones() -> None:
    batches = Batches()
    sizes = [len(batches.add(picture(order, 10))) for order in range(2 * MOST_IMAGES)]
    assert sizes == 2 * ([0] * (MOST_IMAGES - 1) + [MOST_IMAGES])
    assert len(Batches().add(picture(0, MOST_PIXELS, 2))) == 1
    quarters = Batches()
    assert [len(quarters.add(picture(order, MOST_PIXELS // 16))) for order in range(4)] == [0, 0, 0, 4]


def test_a_picture_is_named_by_its_input_and_number() -> None:
    assert picture(7, 10).name == "a.npz#7"
