"""Rendering: the objects of a decomposition, found or edited by hand, painted anew."""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.composition import compose_objects, instance_labels
from pcdnet.model.evidence import background_coefficient, colour_coefficients, error_reduction_of, occluded
from pcdnet.model.geometry import Geometry
from pcdnet.model.windows import canvas, cut, paste


@torch.no_grad()
def recompose(
    bank: PrototypeBank, scene: Decomposition, image: Float[Tensor, "C H W"] | None, channels: int
) -> Decomposition:
    """The scene with its labels, its picture and, for a given image, its errors; see `PCDNet.recompose`."""
    _check(bank, scene, image, channels)
    size, device = (scene.instances.shape[0], scene.instances.shape[1]), bank.masks.device
    prototype = torch.from_numpy(scene.prototype_ids).to(device).long()[None]
    row, column = torch.from_numpy(scene.positions).to(device).long()[None].unbind(-1)
    colour = torch.from_numpy(scene.colours).to(bank.masks)[None]
    picture = compose_objects(bank, prototype, row, column, colour, size)[0]
    masks, exists = bank.masks[prototype], torch.ones_like(row, dtype=torch.bool)
    reductions, error = torch.zeros(len(scene)), 0.0
    if image is not None:
        reductions = _error_reductions(bank, image, prototype[0], row[0], column[0], colour[0]).float().cpu()
        error = float((picture - image).square().sum())
    return dataclasses.replace(
        scene,
        error_reductions=reductions.numpy(),
        instances=instance_labels(masks, row, column, exists, size)[0].cpu().numpy(),
        reconstruction=picture.permute(1, 2, 0).float().contiguous().cpu().numpy(),
        error=error,
    )


def _error_reductions(
    bank: PrototypeBank, image: Tensor, prototype: Tensor, row: Tensor, column: Tensor, colour: Tensor
) -> Float[Tensor, "N"]:
    """How much the squared error falls with every object, added behind those before it; from windows alone."""
    C, geometry = len(image), Geometry.touching((image.shape[1], image.shape[2]), bank.frame)
    background = torch.zeros_like(image) if bank.background is None else bank.background
    behind = canvas(background[None], geometry)
    planes = canvas(torch.cat([image, torch.ones_like(image[:1])])[None], geometry)
    reductions = image.new_zeros(len(prototype))
    first = torch.zeros_like(prototype[:1])
    for n in range(len(prototype)):
        r, c = row[n : n + 1], column[n : n + 1]
        T, M = bank.prototypes[prototype[n]][None, ..., None], bank.masks[prototype[n]][None, ..., None]
        window, B = cut(planes, geometry, first, r, c), cut(behind, geometry, first, r, c)
        Y, Q = window[..., :C], window[..., C:]
        a, q = colour_coefficients(Y, Q, B, T, M)
        reductions[n] = error_reduction_of(a, q, background_coefficient(Y, Q, B, M), colour[n : n + 1])[0]
        paste(planes, geometry, first, r, c, torch.cat(occluded(Y, Q, M, T * colour[n]), dim=-1))
    return reductions


def _check(bank: PrototypeBank, scene: Decomposition, image: Tensor | None, channels: int) -> None:
    """Refuse a scene that cannot be painted."""
    (H, W), (h, w), P = scene.instances.shape, bank.frame, len(bank.prototypes)
    if bank.background is not None and tuple(bank.background.shape[1:]) != (H, W):
        height, width = bank.background.shape[1:]
        raise PcdnetError(f"a scene of {H}x{W} does not fit the background; make it {height}x{width}")
    if image is not None and tuple(image.shape[1:]) != (H, W):
        height, width = image.shape[1:]
        raise PcdnetError(f"the image of {height}x{width} does not fit a scene of {H}x{W}; use one size for both")
    if scene.colours.shape[1] != channels:
        raise PcdnetError(f"objects have {scene.colours.shape[1]} colour values; give {channels}, one a channel")
    for n, (p, (row, column)) in enumerate(zip(scene.prototype_ids.tolist(), scene.positions.tolist(), strict=True)):
        if not 0 <= p < P:
            raise PcdnetError(f"object {n} is of prototype {p}; use a number of 0 to {P - 1}")
        if not (-h < row < H and -w < column < W):
            raise PcdnetError(f"object {n} at row {row}, column {column} is outside a picture of {H}x{W}; move it back")
