"""Rendering: the objects of a decomposition, found or edited by hand, painted anew."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.config import Labels
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.composition import OPAQUE, changed
from pcdnet.model.evidence import error_fall, occluded
from pcdnet.model.geometry import Geometry


@torch.no_grad()
def recompose(
    bank: PrototypeBank,
    scene: Decomposition,
    image: Float[Tensor, "C H W"] | None,
    own: Float[Tensor, "C H W"] | None,
    channels: int,
    seen: Float[Tensor, "1 H W"] | None = None,
    labelled: Labels = "mask",
) -> Decomposition:
    """The scene with its labels, its picture and, for a given image, its errors; see `PCDNet.recompose`.

    Objects are painted one by one, so memory goes with the picture and not with how many they are.

    `own` is the scene's background where it is not the bank's; objects are seen where `seen` is 1 alone. For `labelled`
    see the model's `labels`.
    """
    _check(bank, scene, image, own, channels)
    (H, W), like = scene.instances.shape, bank.masks
    background = bank.behind(like.new_zeros(channels, H, W)) if own is None else own
    stamps = _Stamps.of(bank, scene)
    picture, labels = background.permute(1, 2, 0).clone(), torch.zeros(H, W, dtype=torch.int32, device=like.device)
    for n in reversed(range(len(scene))):
        part, mask, texture = stamps.nth(n)
        under = picture[part]
        under += mask * (texture - under)
        labels[part].masked_fill_(mask[..., 0] > OPAQUE, n + 1)
    if seen is not None:
        shown = seen[0] > 0
        picture, labels = torch.where(shown[..., None], picture, background.permute(1, 2, 0)), labels * shown
    if labelled == "change":
        labels = labels * changed(picture, background.permute(1, 2, 0), 2)
    reductions, error = torch.zeros(len(scene)), 0.0
    if image is not None:
        reductions = _error_reductions(image, background, torch.ones_like(image[:1]) if seen is None else seen, stamps)
        error = float((picture - image.permute(1, 2, 0)).square().sum())
    return dataclasses.replace(
        scene,
        error_reductions=reductions.numpy(),
        instances=labels.cpu().numpy(),
        reconstruction=picture.float().contiguous().cpu().numpy(),
        error=error,
        background=None if own is None else own.detach().permute(1, 2, 0).float().contiguous().cpu().numpy(),
    )


@dataclass(frozen=True, slots=True)
class _Stamps:
    """The objects of a scene, each made when it is painted: all of them at once would fill the memory."""

    bank: PrototypeBank
    size: tuple[int, int]
    prototype: list[int]
    position: list[list[int]]
    colour: Float[Tensor, "N C"]

    @staticmethod
    def of(bank: PrototypeBank, scene: Decomposition) -> _Stamps:
        """Those of a scene that was checked."""
        size = scene.instances.shape[0], scene.instances.shape[1]
        colour = torch.from_numpy(scene.colours).to(bank.masks)
        return _Stamps(bank, size, scene.prototype_ids.tolist(), scene.positions.tolist(), colour)

    def nth(self, n: int) -> tuple[tuple[slice, slice], Float[Tensor, "h w 1"], Float[Tensor, "h w C"]]:
        """Where the n-th object lies in the picture, and the part of its mask and of its paint that lies there."""
        row, column = (
            (max(0, at), min(at + side, end), at)
            for at, side, end in zip(self.position[n], self.bank.frame, self.size, strict=True)
        )
        inside = slice(row[0] - row[2], row[1] - row[2]), slice(column[0] - column[2], column[1] - column[2])
        T, M = (each[self.prototype[n]][inside][..., None] for each in (self.bank.prototypes, self.bank.masks))
        return (slice(*row[:2]), slice(*column[:2])), M, T * self.colour[n]


def _error_reductions(
    image: Float[Tensor, "C H W"],
    background: Float[Tensor, "C H W"],
    inside: Float[Tensor, "1 H W"],
    stamps: _Stamps,
) -> Float[Tensor, "N"]:
    """How much the squared error falls with every object, added behind those before it; from windows alone."""
    Y, Q, behind = (
        (inside * each).permute(1, 2, 0).contiguous() for each in (image, torch.ones_like(inside), background)
    )
    reductions = image.new_zeros(len(stamps.prototype))
    for n in range(len(reductions)):
        part, M, T = stamps.nth(n)
        reductions[n] = error_fall(Y[part], Q[part], behind[part], M, T).sum()
        Y[part], Q[part] = occluded(Y[part], Q[part], M, T)
    return reductions.float().cpu()


def _check(bank: PrototypeBank, scene: Decomposition, image: Tensor | None, own: Tensor | None, channels: int) -> None:
    """Refuse a scene that cannot be painted."""
    behind = bank.background if own is None else own
    (H, W), P = scene.instances.shape, len(bank.prototypes)
    for what, picture in (("background", behind), ("image", image)):
        if picture is not None and (size := tuple(picture.shape[1:])) != (H, W):
            raise PcdnetError(f"the {what} of {size[0]}x{size[1]} does not fit a scene of {H}x{W}; make them equal")
    if scene.colours.shape[1] != channels:
        raise PcdnetError(f"objects have {scene.colours.shape[1]} colour values; give {channels}, one a channel")
    for n, (p, (row, column)) in enumerate(zip(scene.prototype_ids.tolist(), scene.positions.tolist(), strict=True)):
        if not 0 <= p < P:
            raise PcdnetError(f"object {n} is of prototype {p}; use a number of 0 to {P - 1}")
        if not Geometry.touching((H, W), bank.frame).admits(row, column):
            raise PcdnetError(f"object {n} at row {row}, column {column} is outside a picture of {H}x{W}; move it back")
