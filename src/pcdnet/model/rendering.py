"""Rendering: the objects of a decomposition, found or edited by hand, painted anew."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.config import Labels, ModelConfig
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.composition import OPAQUE, changed
from pcdnet.model.evidence import error_fall, occluded
from pcdnet.model.geometry import Geometry
from pcdnet.model.posed import Pose, check_pose, posed_place, posed_sprite, poses_of


@torch.no_grad()
def recompose(
    bank: PrototypeBank,
    scene: Decomposition,
    image: Float[Tensor, "C H W"] | None,
    own: Float[Tensor, "C H W"] | None,
    channels: int,
    seen: Float[Tensor, "1 H W"] | None = None,
    labelled: Labels = "mask",
    config: ModelConfig | None = None,
) -> Decomposition:
    """The scene with its labels, its picture and, for a given image, its errors; see `PCDNet.recompose`.

    Objects are painted one by one, so memory goes with the picture and not with how many they are.

    `own` is the scene's background where it is not the bank's; objects are seen where `seen` is 1 alone. For `labelled`
    see the model's `labels`; `config` is the model's where its objects have poses.
    """
    if config is not None and config.posed and not scene.posed:
        scene = scene.with_poses(scene.poses)
    _check(bank, scene, image, own, channels, config)
    (H, W), like = scene.instances.shape, bank.masks
    background = bank.behind(like.new_zeros(channels, H, W)) if own is None else own
    stamps = _Stamps.of(bank, scene, config)
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
    pose: list[Pose]
    colour: Float[Tensor, "N C"]
    config: ModelConfig | None

    @staticmethod
    def of(bank: PrototypeBank, scene: Decomposition, config: ModelConfig | None) -> _Stamps:
        """Those of a scene that was checked."""
        size = scene.instances.shape[0], scene.instances.shape[1]
        colour = torch.from_numpy(scene.colours).to(bank.masks)
        return _Stamps(bank, size, scene.prototype_ids.tolist(), poses_of(scene), colour, config)

    def nth(self, n: int) -> tuple[tuple[slice, slice], Float[Tensor, "h w 1"], Float[Tensor, "h w C"]]:
        """Where the n-th object lies in the picture, and the part of its mask and of its paint that lies there."""
        p = self.prototype[n]
        sprite = posed_sprite(self.bank.prototypes[p], self.bank.masks[p], self.pose[n], self.config)
        row, column = (
            (max(0, at), min(at + side, end), at)
            for at, side, end in zip((sprite.row, sprite.column), sprite.mask.shape, self.size, strict=True)
        )
        inside = slice(row[0] - row[2], row[1] - row[2]), slice(column[0] - column[2], column[1] - column[2])
        T, M = (each[inside][..., None] for each in (sprite.prototype, sprite.mask))
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


def _check(
    bank: PrototypeBank,
    scene: Decomposition,
    image: Tensor | None,
    own: Tensor | None,
    channels: int,
    config: ModelConfig | None,
) -> None:
    """Refuse a scene that cannot be painted."""
    behind = bank.background if own is None else own
    (H, W), P = scene.instances.shape, len(bank.prototypes)
    for what, picture in (("background", behind), ("image", image)):
        if picture is not None and (size := tuple(picture.shape[1:])) != (H, W):
            raise PcdnetError(f"the {what} of {size[0]}x{size[1]} does not fit a scene of {H}x{W}; make them equal")
    if scene.colours.shape[1] != channels:
        raise PcdnetError(f"objects have {scene.colours.shape[1]} colour values; give {channels}, one a channel")
    for n, (p, pose) in enumerate(zip(scene.prototype_ids.tolist(), poses_of(scene), strict=True)):
        if not 0 <= p < P:
            raise PcdnetError(f"object {n} is of prototype {p}; use a number of 0 to {P - 1}")
        check_pose(n, pose, bank.frame, (H, W), config)
        row, column, frame = posed_place(bank.frame, pose, config)
        if not Geometry.touching((H, W), frame).admits(row, column):
            place = f"row {pose.row}, column {pose.column}"
            raise PcdnetError(f"object {n} at {place} is outside a picture of {H}x{W}; move it back")
