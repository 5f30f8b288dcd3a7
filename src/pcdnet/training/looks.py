"""Looks: blobs made comparable up to turns, sizes and mirror images, and compared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from scipy import ndimage
from torch import Tensor

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.poses.pose import ANGLE, DOWN, MIRRORED, RIGHT, SCALE, VALUES, CoarsePoses
from pcdnet.model.poses.resampling import resampled
from pcdnet.training.foreground import Blob
from pcdnet.training.shapes import framed

NEAR = 0.12
"""From this distance on two blobs are simply different: what is in all poses and out of focus is nearer than what is in
one (`shapes.NEAR`)."""
SIDE = 25
"""Pixels of the frames in which blobs are compared, at most."""
REACHING = 0.98
"""All but the farthest-reaching blobs are seen whole in them."""
SOFT = 0.8
"""Blobs are compared a little out of focus, by so many pixels: their steps do not count then."""
STEPS_APART = 0.05
"""Blobs that are so far apart for each pixel of their outlines are the same: the pixels do not tell them apart."""
ROOMY = 1.1
"""Sizes of blobs may differ by so much more than those of objects, as they are read off their areas."""
MANY = 1000
"""Blobs that are drawn at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Blobs made comparable, their middles in the middle of small frames, and of one size if sizes may differ."""

    layers: Float[Tensor, "n 2 s s"]
    """Their masks, and what is solid in them."""
    areas: Float[Tensor, "n"]
    """Their areas in these frames."""
    units: Float64[np.ndarray, "n"]
    """How many pixels of the blob one pixel of the frame is; thin blobs count as large as compact ones that reach as
    far, or these would be seen too small to tell their insides apart."""
    middles: Float64[np.ndarray, "n 2"]
    """How far their middles are below and right of the middles of their boxes."""
    weights: Float64[np.ndarray, "n"]
    """By how much they count: the roots of their areas, in their own pixels."""

    @staticmethod
    def of(blobs: list[Blob], config: ModelConfig) -> Looks:
        """The blobs as a model of this configuration has them compared."""
        inside = [np.argwhere(blob.mask) - (np.array(blob.mask.shape) - 1) / 2 for blob in blobs]
        middles = np.array([places.mean(axis=0) for places in inside])
        reach = np.array([np.hypot(*(at - middle).T).max() + 1 for at, middle in zip(inside, middles, strict=True)])
        sizes = np.array([spread_of(at - middle) for at, middle in zip(inside, middles, strict=True)])
        if config.scales > 1:
            units = sizes * float(np.quantile(reach / sizes, REACHING)) / (SIDE // 2)
        else:
            units = np.full(len(blobs), max(1.0, float(np.quantile(reach, REACHING)) / (SIDE // 2)))
        side = min(SIDE, 2 * math.ceil(float((reach / units).max())) + 1)
        parts = [slice(n, n + MANY) for n in range(0, len(blobs), MANY)]
        layers = torch.cat([_seen(blobs[part], middles[part], units[part], side) for part in parts])
        weights = np.sqrt([len(places) for places in inside])
        return Looks(layers, layers[:, 0].sum(dim=(1, 2)), units, middles, weights)

    def some(self, which: Bool[np.ndarray, "n"]) -> Looks:
        """Those of some of the blobs."""
        chosen = torch.from_numpy(which)
        return Looks(
            self.layers[chosen], self.areas[chosen], self.units[which], self.middles[which], self.weights[which]
        )

    def outlines(self) -> Float[Tensor, "n"]:
        """About how many pixels their outlines are long, in these frames."""
        return sum_of_steps(self.layers[:, 0])


def spread_of(places: Float64[np.ndarray, "pixels 2"]) -> float:
    """How far pixels are from their middle, typically: how large thin blobs and compact ones are, by one measure."""
    return math.sqrt(float(np.square(places).sum(axis=1).mean()) + 1 / 6)  # each pixel is a square


def sum_of_steps(masks: Float[Tensor, "n s s"]) -> Float[Tensor, "n"]:
    """How much masks differ from pixel to pixel, in all: about the lengths of their outlines."""
    return torch.stack([masks.diff(dim=dim).abs().sum(dim=(1, 2)) for dim in (1, 2)]).sum(dim=0)


def posed(
    blobs: list[Blob],
    middles: Float64[np.ndarray, "n 2"],
    poses: Float[np.ndarray, "n 5"],
    side: int,
) -> Float[Tensor, "n 3 s s"]:
    """Masks, solid pixels and greys of blobs (`shapes.framed`), posed around their middles, all in the middle."""
    largest = max(max(blob.mask.shape) for blob in blobs) + 2
    pictures = torch.from_numpy(np.stack([framed(blob, (largest, largest)) for blob in blobs]))
    spare = largest - np.array([blob.mask.shape for blob in blobs])
    down, right = (middles + spare // 2 - spare / 2).T  # of the middle, in its picture
    right = right * (1 - 2 * poses[:, MIRRORED])
    angle, scale = np.radians(poses[:, ANGLE]), poses[:, SCALE]
    values = np.array(poses, np.float32)
    values[:, DOWN] = -scale * (np.cos(angle) * down - np.sin(angle) * right)
    values[:, RIGHT] = -scale * (np.cos(angle) * right + np.sin(angle) * down)
    return resampled(pictures, torch.from_numpy(values), (side, side))


def turned(layers: Float[Tensor, "n l s s"], pose: Float[Tensor, "5"]) -> Float[Tensor, "n l s s"]:
    """All of them in one pose."""
    n, count, side, _ = layers.shape
    return resampled(layers.reshape(1, n * count, side, side), pose[None], (side, side)).view(n, count, side, side)


def between_poses(config: ModelConfig, step: float) -> Float[Tensor, "poses 5"]:
    """The poses that one object can have as seen from another: angles, at most a step apart if fine ones are found."""
    low, high = config.rotation_range
    pace = CoarsePoses.of(config, torch.zeros(0)).turn
    if config.fine_poses and pace:
        pace /= math.ceil(pace / step)
    found: dict[tuple[float, bool], None] = {}
    for mirrored in range(1 + config.mirror):
        # A mirror image of a turned object is turned the other way.
        first, last = (2 * low, 2 * high) if mirrored else (low - high, high - low)
        if high - low == FULL_TURN:
            first, last = first % FULL_TURN, first % FULL_TURN + FULL_TURN - pace
        for n in range(1 + (round((last - first) / pace) if pace else 0)):
            found[round((first + n * pace) % FULL_TURN, 6) if pace else 0.0, bool(mirrored)] = None
    return torch.tensor([(angle, 1.0, float(mirrored), 0.0, 0.0) for angle, mirrored in found])


def apart(looks: Looks, poses: Float[Tensor, "poses 5"], config: ModelConfig) -> Float64[np.ndarray, "n n"]:
    """How far every two blobs are from each other in the pose in which they are nearest, as `shapes.distances`.

    What pixels make of one shape at several angles does not count.
    """
    flat = looks.layers.flatten(1)
    squares, together = flat.square().sum(dim=1), looks.areas[:, None] + looks.areas[None]
    best = torch.full_like(together, torch.inf)
    for pose in _one_way(poses):
        other = turned(looks.layers, pose).flatten(1)
        torch.minimum(best, other.square().sum(dim=1)[:, None] + squares[None] - 2 * other @ flat.T, out=best)
    steps = STEPS_APART * looks.outlines()
    best = torch.minimum(best, best.T) - steps[:, None] - steps[None]
    far: Float64[np.ndarray, "n n"] = (best.clamp(min=0) / together).double().numpy()
    if config.scales > 1:
        sizes = np.log(looks.units)
        low, high = config.scale_range
        far[np.abs(sizes[:, None] - sizes[None]) > math.log(ROOMY * high / low)] = np.inf
    return far


def _one_way(poses: Float[Tensor, "poses 5"]) -> Iterator[Float[Tensor, "5"]]:
    """One of every two poses that undo each other."""
    for pose in poses:
        if pose[MIRRORED] or pose[ANGLE] <= FULL_TURN / 2:
            yield pose


def _seen(
    blobs: list[Blob], middles: Float64[np.ndarray, "n 2"], units: Float64[np.ndarray, "n"], side: int
) -> Float[Tensor, "n 2 s s"]:
    """Masks and greys of blobs, of the size that they are compared in, and a little out of focus."""
    poses = np.zeros((len(blobs), VALUES))
    poses[:, SCALE] = 1 / units
    layers = posed(blobs, middles, poses, side)[:, [0, 2]].numpy()
    return torch.from_numpy(ndimage.gaussian_filter(layers, (0, 0, SOFT, SOFT)))
