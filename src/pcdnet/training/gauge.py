"""Gauge: which angle, size and mirror image of a shape its prototype has; and the prototype drawn so.

Of a shape that turns by any angle, `upright` says which. Where objects turn by a part of a turn only, the middle of the
range is what half of them lie on either side of. The sizes of objects come to lie in the middle of their range, and of
two mirror images the commoner one is the prototype.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.poses.pose import SCALE, CoarsePoses
from pcdnet.training.aligning import Aligned, undone
from pcdnet.training.foreground import Blob
from pcdnet.training.looks import Looks, posed, turned
from pcdnet.training.shapes import shown
from pcdnet.training.upright import upright

TYPICAL = 0.02, 0.98
"""The sizes of all blobs of a shape but the smallest and largest few are in the middle of the range of sizes."""
OFF_CENTRE = 0.1
"""Where not all angles are allowed, the halves between two are shifted by such a share: many shapes lie just there."""
FIT_STEP = 5.0
"""Degrees between the angles that are tried where a frame does not hold a shape that is upright."""

Picture = tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]


@dataclass(frozen=True, slots=True)
class Gauge:
    """What makes a prototype of a shape: it is mirrored, then turned, then made larger."""

    angle: float
    """Degrees by which it is turned."""
    mirrored: int
    """Whether it is mirrored, 0 or 1."""
    unit: float
    """How many pixels of the prototype one of the shape's is."""

    @staticmethod
    def of(
        shape: Float32[np.ndarray, "s s"],
        angles: Float64[np.ndarray, "n"],
        mirrored: Int64[np.ndarray, "n"],
        units: Float64[np.ndarray, "n"],
        config: ModelConfig,
    ) -> Gauge:
        """The gauge of a shape that some blobs are, in these poses."""
        low, high = config.rotation_range
        step = CoarsePoses.of(config, torch.zeros(0)).turn
        more = int(mirrored.sum()) - len(mirrored) / 2
        flip = int(more > 0)
        if config.rotations == 1:
            angle = 0.0
        elif high - low == FULL_TURN:
            ways = [upright(shape), upright(shape[:, ::-1])]
            if config.mirror and abs(more) <= math.sqrt(len(mirrored)):
                flip = int(ways[1][1] > ways[0][1])
            angle = ways[flip][0]
            angle = angle if config.fine_poses else step * round(angle / step - OFF_CENTRE)
        else:
            median = _median(angles[mirrored == flip])
            angle = median - (low + high) / 2
            if not config.fine_poses:
                angle = step * round(median / step) - (low + step * ((config.rotations - 1) // 2))
        unit = float(units[0])
        if config.scales > 1:
            middle = np.quantile(np.log(units), TYPICAL).mean() - np.log(config.scale_range).mean()
            unit = float(np.exp(middle))
        return Gauge(angle, flip, unit)

    def poses(
        self,
        angles: Float64[np.ndarray, "n"],
        mirrored: Int64[np.ndarray, "n"],
        units: Float64[np.ndarray, "n"],
    ) -> tuple[Float64[np.ndarray, "n"], Int64[np.ndarray, "n"], Float64[np.ndarray, "n"]]:
        """Poses of blobs as seen from the shape, as seen from the prototype: angles, mirrored or not, scales."""
        now = mirrored ^ self.mirrored
        return angles - np.where(now == 1, -self.angle, self.angle), now, units / self.unit


def draw(
    blobs: list[Blob],
    looks: Looks,
    found: Aligned,
    shape: int,
    picture: Float[Tensor, "2 s s"],
    frame: tuple[int, int],
    config: ModelConfig,
) -> Picture:
    """The prototype and mask of a shape that some of the blobs are, in the middle of a frame that holds them."""
    own = np.flatnonzero(found.kinds == shape)
    parts = [blobs[n] for n in own]
    poses = found.angles[own], found.mirrored[own], looks.units[own]
    gauge = Gauge.of(picture[0].numpy(), *poses, config)
    drawn = _average(parts, looks.middles[own], gauge.poses(*poses))
    if not _holds(frame, drawn[1]):
        gauge = _fitting(gauge, drawn[1], frame, config)
        drawn = _average(parts, looks.middles[own], gauge.poses(*poses))
    return _centred(drawn, frame)


def _average(
    blobs: list[Blob],
    middles: Float64[np.ndarray, "n 2"],
    poses: tuple[Float64[np.ndarray, "n"], Int64[np.ndarray, "n"], Float64[np.ndarray, "n"]],
) -> Picture:
    """What blobs show in common, brought back from their poses; larger ones, which show more, count for more."""
    back = undone(*poses)
    reach = [math.hypot(*blob.mask.shape) * scale for blob, scale in zip(blobs, back[:, SCALE], strict=True)]
    layers = posed(blobs, middles, back, 2 * math.ceil(max(reach) / 2) + 3).double().numpy()
    weights = np.square(poses[2])
    prototypes, masks = shown(np.tensordot(weights, layers, 1)[None], weights.sum(keepdims=True))
    return prototypes[0], masks[0]


def _fitting(gauge: Gauge, mask: Float32[np.ndarray, "y x"], frame: tuple[int, int], config: ModelConfig) -> Gauge:
    """The gauge at the nearest angle at which a frame holds the shape, or else, if sizes may differ, of a size that
    does."""
    low, high = config.rotation_range
    step = FIT_STEP if config.fine_poses else CoarsePoses.of(config, torch.zeros(0)).turn
    if config.rotations > 1 and high - low == FULL_TURN:
        for more in sorted(np.arange(step, FULL_TURN, step).tolist(), key=lambda angle: min(angle, FULL_TURN - angle)):
            pose = torch.tensor([more, 1.0, 0.0, 0.0, 0.0])
            if _holds(frame, turned(torch.from_numpy(mask)[None, None], pose)[0, 0].numpy()):
                return replace(gauge, angle=gauge.angle + more)
    if config.scales > 1:
        (top, bottom), (left, right) = _box(mask)
        return replace(gauge, unit=gauge.unit * max((bottom - top) / frame[0], (right - left) / frame[1]))
    return gauge


def _box(mask: Float32[np.ndarray, "y x"]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last but one row and column in which a mask is opaque."""
    opaque = mask > 0.5 * mask.max()
    rows, columns = np.flatnonzero(opaque.any(axis=1)), np.flatnonzero(opaque.any(axis=0))
    return (int(rows[0]), int(rows[-1]) + 1), (int(columns[0]), int(columns[-1]) + 1)


def _holds(frame: tuple[int, int], mask: Float32[np.ndarray, "y x"]) -> bool:
    """Whether a frame is as large as what is opaque."""
    return all(last - first <= side for (first, last), side in zip(_box(mask), frame, strict=True))


def _centred(drawn: Picture, frame: tuple[int, int]) -> tuple[Float32[np.ndarray, "y x"], Float32[np.ndarray, "y x"]]:
    """Both cut out so that what is opaque is in the middle of a frame."""
    rim = max(frame) + max(drawn[1].shape)
    down, right = (
        rim + first - (side - last + first) // 2 for side, (first, last) in zip(frame, _box(drawn[1]), strict=True)
    )
    prototype, mask = (np.pad(layer, rim)[down : down + frame[0], right : right + frame[1]] for layer in drawn)
    return prototype, mask


def _median(angles: Float64[np.ndarray, "n"]) -> float:
    """The median of angles that lie within a part of the turn."""
    if not len(angles):
        return 0.0
    mean = float(np.degrees(np.angle(np.exp(1j * np.radians(angles)).mean())))
    away = (angles - mean + FULL_TURN / 2) % FULL_TURN - FULL_TURN / 2
    return mean + float(np.quantile(away, 0.5, method="lower"))
