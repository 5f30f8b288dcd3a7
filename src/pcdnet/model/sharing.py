"""Sharing: a batch of images that several processes explain, each its own; they learn from the whole of it.

The search and the painting of an image need no other image. What is summed or averaged over images, a gradient or the
statistics of the colour network, is gathered image by image first, and then every process sums all of it in the order
of the batch. So it does not matter how many of them there are: the sums are the same to the last bit, and so is what is
learned. Sums of sums are not, and by one bit near ties flip, until two trainings have little in common.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

Rows = TypeVar("Rows", Tensor, np.ndarray)


class Sharing:
    """How a batch is shared; this one stands for a batch that nobody shares."""

    @property
    def alone(self) -> bool:
        """Whether nobody shares it."""
        return True

    def rows(self, whole: Rows) -> Rows:
        """Our rows of the whole batch, without a gradient."""
        return whole

    def error(self, squares: Float[Tensor, "b ..."]) -> Float[Tensor, ""]:
        """The mean over the whole batch of squares in our images; the gradient is that of ours."""
        return squares.mean()

    def gathered(self, own: Shaped[Tensor, "b ..."]) -> Shaped[Tensor, "B ..."]:
        """From a row for every image that is ours the rows of the whole batch, in its order.

        Whoever uses them does so in all processes alike: the gradient of our rows is that of one use, not their sum.
        """
        return own

    def own(self, whole: Shaped[Tensor, "B ..."]) -> Shaped[Tensor, "b ..."]:
        """From rows of the whole batch, which all processes have alike, ours; each gives the gradient of its own."""
        return whole

    def spread(self, one: Shaped[Tensor, "1 ..."]) -> Shaped[Tensor, "b ..."]:
        """What all images have in common, for ours; the gradient is that of the whole batch."""
        return one

    def objects(
        self, own: Shaped[Tensor, "k ..."], exists: Bool[Tensor, "b N"], everywhere: Bool[Tensor, "B N"]
    ) -> Shaped[Tensor, "K ..."]:
        """From a row for every object in our images those of the whole batch, image by image.

        Which of N objects there are is `exists` in ours and `everywhere` in all images.
        """
        if self.alone:
            return own
        dense = own.new_zeros(*exists.shape, *own.shape[1:]).index_put(exists.nonzero(as_tuple=True), own)
        return self.gathered(dense)[everywhere.nonzero(as_tuple=True)]


WHOLE = Sharing()
"""A batch that nobody shares."""
