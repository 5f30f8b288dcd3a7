"""Rendering: the objects of a decomposition, found or edited by hand, painted anew."""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.config import Labels
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.composition import changed, compose, instance_labels
from pcdnet.model.evidence import Evidence, error_fall, occluded
from pcdnet.model.geometry import Geometry
from pcdnet.model.windows import Frames, canvas


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

    `own` is the scene's background where it is not the bank's; objects are seen where `seen` is 1 alone. For `labelled`
    see the model's `labels`.
    """
    _check(bank, scene, image, own, channels)
    size, device = (scene.instances.shape[0], scene.instances.shape[1]), bank.masks.device
    prototype = torch.from_numpy(scene.prototype_ids).to(device).long()[None]
    row, column = torch.from_numpy(scene.positions).to(device).long()[None].unbind(-1)
    colour = torch.from_numpy(scene.colours).to(bank.masks)[None]
    frames = Frames(Geometry.touching(size, bank.frame), row, column, torch.ones_like(row, dtype=torch.bool))
    prototypes, masks = bank.prototypes[prototype], bank.masks[prototype]
    background = bank.behind(bank.masks.new_zeros(channels, *size)) if own is None else own
    picture, labels = compose(prototypes, masks, colour, frames, background[None]), instance_labels(masks, frames)
    picture, inside = picture[0], torch.ones_like(background[:1]) if seen is None else seen
    if seen is not None:
        picture, labels = torch.where(seen > 0, picture, background), labels * seen.to(labels)
    if labelled == "change":
        labels = labels * changed(picture, background, 0).to(labels)
    reductions, error = torch.zeros(len(scene)), 0.0
    if image is not None:
        textures = prototypes[..., None] * colour[:, :, None, None]
        reductions = _error_reductions(image * inside, background * inside, inside, textures, masks, frames)
        error = float((picture - image).square().sum())
    return dataclasses.replace(
        scene,
        error_reductions=reductions.numpy(),
        instances=labels[0].cpu().numpy(),
        reconstruction=picture.permute(1, 2, 0).float().contiguous().cpu().numpy(),
        error=error,
        background=None if own is None else own.detach().permute(1, 2, 0).float().contiguous().cpu().numpy(),
    )


def _error_reductions(
    image: Float[Tensor, "C H W"],
    background: Float[Tensor, "C H W"],
    inside: Float[Tensor, "1 H W"],
    textures: Float[Tensor, "1 N h w C"],
    masks: Float[Tensor, "1 N h w"],
    frames: Frames,
) -> Float[Tensor, "N"]:
    """How much the squared error falls with every object, added behind those before it; from windows alone."""
    evidence, behind = (
        Evidence.opening(image[None], frames.geometry, inside=inside[None]),
        canvas(background[None], frames.geometry),
    )
    reductions = image.new_zeros(textures.shape[1])
    for n in range(len(reductions)):
        windows, T, M = frames.nth(n), textures[:, n], masks[:, n, ..., None]
        Y, Q = evidence.cut(windows)
        reductions[n] = error_fall(Y, Q, windows.cut(behind), M, T).sum()
        evidence.paste(windows, *occluded(Y, Q, M, T))
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
