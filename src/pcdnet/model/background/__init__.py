"""Background: what is behind the objects of every image. One file a kind that needs more than a tensor."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from pcdnet.config import Background
from pcdnet.model.background.moving import find_places, look
from pcdnet.model.background.plain import fit_surface
from pcdnet.model.sharing import WHOLE, Sharing


def backgrounds(
    kind: Background,
    images: Float[Tensor, "B C H W"],
    picture: Float[Tensor, "C Y X"] | None,
    covered: Bool[Tensor, "B H W"] | None = None,
    sharing: Sharing = WHOLE,
) -> Float[Tensor, "B C H W"] | None:
    """What is behind the objects of each image; None where it is the same for all, black or still.

    `picture` is the learned background, if there is one; gradients flow into it. `covered` are pixels that objects are
    known to hide.
    """
    if kind == "plain":
        return fit_surface(images, covered).picture()
    if kind == "moving" and picture is not None:
        size = images.shape[2], images.shape[3]
        return sharing.own(look(picture, sharing.gathered(find_places(images, picture.detach())), size))
    return None
