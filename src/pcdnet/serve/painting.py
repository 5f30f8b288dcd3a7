"""Painting: a scene that somebody made or changed, as a Decomposition like any other."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, UInt8

from pcdnet.colours import as_rgb
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.composition import stamp
from pcdnet.model.geometry import Geometry
from pcdnet.model.inspection import stages
from pcdnet.output.figures import panels
from pcdnet.serve.messages import Scene
from pcdnet.serve.pictures import MOST_PIXELS


@torch.inference_mode()
def painted(
    scene: Scene, bank: PrototypeBank, channels: int, picture: UInt8[np.ndarray, "H W C"] | None
) -> Decomposition:
    """Paint the objects of a scene; their gains tell how well they explain the picture, if there is one."""
    _check(scene, bank, channels, picture)
    (h, w), N, size = bank.frame, len(scene.objects), scene.size
    like = bank.masks
    prototype = torch.tensor([thing.prototype for thing in scene.objects], dtype=torch.long, device=like.device)
    places = torch.tensor([thing.position for thing in scene.objects], dtype=torch.long, device=like.device)
    row, column = places.reshape(N, 2).unbind(1)
    colour = like.new_tensor([thing.colour for thing in scene.objects]).reshape(N, channels)
    pictures = stages(bank, prototype, row, column, colour, size)
    exists = torch.ones(1, N, dtype=torch.bool, device=like.device)
    whole = Geometry(size, (h, w), (h - 1, w - 1))
    instances = stamp(bank.masks[prototype][None], row[None], column[None], exists, whole)[0]
    errors = torch.zeros(N + 1)
    if picture is not None:
        errors = (pictures - tensor(picture, bank)).square().sum(dim=(1, 2, 3)).float().cpu()
    return Decomposition(
        prototype_ids=prototype.int().cpu().numpy(),
        positions=places.reshape(N, 2).int().cpu().numpy(),
        colours=colour.float().cpu().numpy(),
        error_reductions=(errors[:-1] - errors[1:]).numpy(),
        instances=instances.cpu().numpy(),
        reconstruction=pictures[-1].permute(1, 2, 0).float().contiguous().cpu().numpy(),
        error=float(errors[-1]),
        name=scene.name,
    )


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


def tensor(picture: UInt8[np.ndarray, "H W C"], bank: PrototypeBank) -> Float[torch.Tensor, "C H W"]:
    """A picture as the model sees it."""
    pixels = torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1)))
    return pixels.to(bank.masks.device, bank.masks.dtype) / 255


def _check(scene: Scene, bank: PrototypeBank, channels: int, picture: UInt8[np.ndarray, "H W C"] | None) -> None:
    """Refuse a scene that cannot be painted."""
    (H, W), (h, w), P = scene.size, bank.frame, len(bank.prototypes)
    if H * W > MOST_PIXELS:
        raise PcdnetError(f"a scene of {H}x{W} has more than {MOST_PIXELS:,} pixels; ask for a smaller one")
    if bank.background is not None and bank.background.shape[1:] != (H, W):
        height, width = bank.background.shape[1:]
        raise PcdnetError(f"a scene of {H}x{W} does not fit the background; make it {height}x{width}")
    if picture is not None and picture.shape[:2] != (H, W):
        height, width = picture.shape[:2]
        raise PcdnetError(f"the picture of {height}x{width} does not fit a scene of {H}x{W}; use one size for both")
    for n, thing in enumerate(scene.objects):
        row, column = thing.position
        if thing.prototype >= P:
            raise PcdnetError(f"object {n} is of prototype {thing.prototype}; use a number of 0 to {P - 1}")
        if len(thing.colour) != channels:
            raise PcdnetError(f"object {n} has {len(thing.colour)} colour values; give {channels}, one a channel")
        if not (-h < row < H and -w < column < W):
            raise PcdnetError(f"object {n} at row {row}, column {column} is outside a picture of {H}x{W}; move it back")
