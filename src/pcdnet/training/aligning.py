"""Aligning: which shape blobs are, in which pose, and what the blobs of a shape have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

from pcdnet.model.poses.pose import ANGLE, MIRRORED
from pcdnet.model.poses.resampling import resampled
from pcdnet.training.looks import STEPS_APART, Looks, turned

TOGETHER = 36
"""Poses that shapes are compared in at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """How blobs lie to the shapes that they resemble."""

    kinds: Int64[np.ndarray, "n"]
    """The shape each resembles most; -1 where it resembles none."""
    angles: Float64[np.ndarray, "n"]
    """By how many degrees it is turned from it."""
    mirrored: Int64[np.ndarray, "n"]
    """1 where it is its mirror image, turned."""
    distances: Float64[np.ndarray, "n"]
    """How far it is from it, as `shapes.distances`."""


def align(looks: Looks, shapes: Float[Tensor, "k 2 s s"], poses: Float[Tensor, "poses 5"], near: float) -> Aligned:
    """The nearest of some shapes for every blob, and the one of some poses in which it is nearest.

    What is farther than `near` is none of them.
    """
    far, which = compared(looks, shapes, poses)
    nearest, kind = far.min(dim=1)
    chosen = poses[which.gather(1, kind[:, None])[:, 0]].double().numpy()
    distances = nearest.double().numpy()
    kinds = np.where(distances < near, kind.numpy(), -1)
    return Aligned(kinds, chosen[:, ANGLE], chosen[:, MIRRORED].astype(np.int64), distances)


def compared(
    looks: Looks, shapes: Float[Tensor, "k 2 y x"], poses: Float[Tensor, "poses 5"]
) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
    """How far blobs are from shapes in the pose in which they are nearest, and which pose that is.

    Distances are those of `shapes.distances`, without what pixels make of one shape at several angles.
    """
    shapes = _as_large(shapes, looks.layers.shape[-1])
    flat, areas = looks.layers.flatten(1), shapes[:, 0].sum(dim=(1, 2))
    best = torch.full((len(flat), len(shapes)), torch.inf)
    which = torch.zeros(len(flat), len(shapes), dtype=torch.long)
    for first, some in enumerate(torch.split(poses, TOGETHER)):
        other = torch.stack([turned(shapes, pose).flatten(1) for pose in some], dim=1)
        products = (flat @ other.flatten(0, 1).T).view(len(flat), len(shapes), len(some))
        apart, number = (other.square().sum(dim=2) - 2 * products).min(dim=2)
        nearer = apart < best
        best, which = torch.where(nearer, apart, best), torch.where(nearer, first * TOGETHER + number, which)
    squares, together = flat.square().sum(dim=1), looks.areas[:, None] + areas[None]
    steps = STEPS_APART * looks.outlines()[:, None]
    return (best + squares[:, None] - steps).clamp(min=0) / together, which


def averages(looks: Looks, found: Aligned, shapes: Float[Tensor, "k 2 s s"]) -> Float[Tensor, "k 2 s s"]:
    """What the blobs of each shape have in common, turned back to it; a shape of no blob stays."""
    side = looks.layers.shape[-1]
    poses = torch.from_numpy(undone(found.angles, found.mirrored, np.ones(len(found.kinds)))).float()
    upright = resampled(looks.layers, poses, (side, side))
    kinds = torch.from_numpy(found.kinds)
    own = [upright[kinds == kind] for kind in range(len(shapes))]
    return torch.stack([some.mean(dim=0) if len(some) else shape for some, shape in zip(own, shapes, strict=True)])


def undone(
    angles: Float64[np.ndarray, "n"], mirrored: Int64[np.ndarray, "n"], scales: Float64[np.ndarray, "n"]
) -> Float64[np.ndarray, "n 5"]:
    """The poses that undo others: a mirror image that is turned is its own inverse."""
    still = np.zeros(len(angles))
    return np.stack([np.where(mirrored == 1, angles, -angles), 1 / scales, mirrored, still, still], axis=1)


def _as_large(shapes: Float[Tensor, "k 2 y x"], side: int) -> Float[Tensor, "k 2 s s"]:
    """Shapes in frames of another odd side: what lies around them is empty."""
    rim = (side - shapes.shape[-1]) // 2
    return torch.nn.functional.pad(shapes, (rim, rim, rim, rim)) if rim else shapes
