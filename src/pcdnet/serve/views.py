"""Views: the ways to look at a scene, as pictures."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from pcdnet.colours import as_rgb
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.output.figures import panels


def view_of(found: Decomposition, picture: UInt8[np.ndarray, "H W C"] | None, view: str) -> UInt8[np.ndarray, "H W 3"]:
    """One way to look at a scene: image, reconstruction, residual, instances or semantics."""
    if view in ("image", "residual") and picture is None:
        raise PcdnetError(f"the view {view!r} needs the picture that the scene explains; send it as image")
    image = found.reconstruction if picture is None else picture.astype(np.float32) / 255
    if view == "residual":
        return as_rgb(np.abs(image - found.reconstruction))
    views = dict(zip(("image", "reconstruction", "semantics", "instances"), panels(image, found, 0), strict=True))
    shown = views[view]
    assert shown is not None
    return shown
