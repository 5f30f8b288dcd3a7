"""Nearby: how well every prototype of a plan fits the places near a given one, measured place by place.

So few places are one product of matrices for each image; transforms would measure all places of the image.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.model.change import change_planes, own_planes
from pcdnet.model.evidence import best_colour, error_reduction_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Peaks, top_peaks
from pcdnet.model.plan import SearchPlan
from pcdnet.model.windows import Windows, canvas

BESIDE = 0.15
"""Places are near that are within this share of the frame's sides."""


def peaks_near(
    plan: SearchPlan,
    images: Float[Tensor, "n C H W"],
    own: Float[Tensor, "n C H W"],
    clear: Float[Tensor, "n 1 H W"],
    places: Int[Tensor, "n 2"],
) -> Peaks:
    """The best place of every prototype near a place of each image, by the unhidden maps of `change`.

    `own` are backgrounds, and only where it is `clear` anything is seen. Places are those of the plan's maps.
    """
    (h, w), padding, positions = plan.tight.frame, plan.geometry.padding, plan.geometry.positions
    counts = [min(most, 2 * math.ceil(BESIDE * side) + 1) for most, side in zip(positions, (h, w), strict=True)]
    starts = [(places[:, axis] - count // 2).clamp(0, positions[axis] - count) for axis, count in enumerate(counts)]
    planes = [change_planes(images * clear, own * clear, unhidden=True), own_planes(own * clear), clear]
    geometry = Geometry(plan.geometry.image, (counts[0] + h - 1, counts[1] + w - 1), padding)
    number = torch.arange(len(images), device=images.device)
    windows = Windows(geometry, number, starts[0] - padding[0], starts[1] - padding[1])
    content = windows.cut(canvas(torch.cat(planes, dim=1), geometry)).permute(0, 3, 1, 2).contiguous()
    height, row, column = top_peaks(_maps(plan, content, images.shape[1]), 1)
    down, right = (start[:, None, None] for start in starts)
    return height, row + down, column + right


def _maps(plan: SearchPlan, content: Float[Tensor, "n planes y x"], C: int) -> Float[Tensor, "n P rows columns"]:
    """The unhidden maps at all places at which frames lie within the planes around them."""
    T, M = (values.flatten(1) for values in (plan.tight.prototypes, plan.tight.masks))
    kernels = M * T, M * M * T, M, M * M, (M * T).square()
    (h, w), (y, x) = plan.tight.frame, content.shape[-2:]
    made = content.new_empty(len(content), len(T), y - h + 1, x - w + 1)
    for n, planes in enumerate(content):  # few enough pixels to stay in the cache
        windows = planes.unfold(1, h, 1).unfold(2, w, 1).reshape(len(planes), -1, h * w).mT
        a = kernels[0] @ windows[:C] + kernels[1] @ windows[C + 1 : 2 * C + 1]
        k = kernels[2] @ windows[C] + kernels[3] @ windows[2 * C + 1]
        q = kernels[4] @ windows[2 * C + 2]
        reductions = error_reduction_of(a, q, k, best_colour(a, q, plan.config.max_colour, dim=0), dim=0)
        made[n] = reductions.view_as(made[n])
    return made
