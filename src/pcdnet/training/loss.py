"""Loss: what training minimises (equation 6 of the paper, and a price on mask area)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from pcdnet.config import LossConfig
from pcdnet.model.sharing import WHOLE, Sharing


def loss_of(
    images: Float[Tensor, "B C H W"],
    painted: Float[Tensor, "B C H W"],
    prototypes: Float[Tensor, "P h w"],
    masks: Float[Tensor, "P h w"],
    config: LossConfig,
    sharing: Sharing = WHOLE,
) -> Float[Tensor, ""]:
    """Mean squared error plus the weighted regularizers, on the raw prototypes and masks.

    The paper sums the error over the pixels of an image, and its weights on L1 and TV are meant against that sum.
    Here everything is divided by their number, so that losses of different images can be compared. Of images that
    are a part of a batch the error is that of all of it.
    """
    loss = sharing.error((painted - images).square())
    values = images[0].numel()
    if config.l1:
        loss = loss + config.l1 / values * area(prototypes)
    if config.tv:
        loss = loss + config.tv / values * total_variation(masks)
    if config.mask_area:
        # Values above 1 paint no more than 1, but they pay: a useless pixel that strayed there would never come back.
        loss = loss + config.mask_area * masks.clamp(min=0).mean()
    return loss


def area(prototypes: Float[Tensor, "P h w"]) -> Float[Tensor, ""]:
    """The mean over prototypes of their absolute values' sum: L1 of the paper."""
    return prototypes.abs().sum(dim=(1, 2)).mean()


def total_variation(masks: Float[Tensor, "P h w"]) -> Float[Tensor, ""]:
    """The mean over masks of the absolute differences of neighbouring pixels: TV of the paper."""
    down = (masks[:, 1:] - masks[:, :-1]).abs().sum(dim=(1, 2))
    right = (masks[:, :, 1:] - masks[:, :, :-1]).abs().sum(dim=(1, 2))
    return (down + right).mean()
