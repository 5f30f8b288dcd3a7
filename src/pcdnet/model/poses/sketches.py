"""Sketches: candidates fitted in small pictures first, in which a step costs a fraction of what it costs in full size.

Which of many poses an object has shows when each is fitted a little: coarse poses leave more of the error by what they
are off than by what they are. Those that explain most are then fitted in full size.
"""

from __future__ import annotations

import dataclasses
import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.geometry import Geometry
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.fitting import Freedom, Seen, fits
from pcdnet.model.poses.pose import ANGLE, DOWN, MARGIN, MIRRORED, RIGHT, SCALE
from pcdnet.model.windows import Windows, canvas

ALIKE = 0.75
"""Small pixels by which no part of a candidate is moved from where the same one is that began in another pose."""
STEPS = 4
"""In which each is fitted."""


@torch.no_grad()
def best_sketched(
    things: PosedCandidates,
    shown: Float[Tensor, "n C h w"],
    behind: Float[Tensor, "n C h w"],
    clear: Float[Tensor, "n 1 h w"],
    bank: PrototypeBank,
    frame: tuple[int, int],
    config: ModelConfig,
    factor: int,
    radius: float,
    most: int,
) -> PosedCandidates:
    """Of the candidates of each picture those that explain most of it, at most so many, in the poses that fit best.

    Pictures are smaller by a factor than those in which the candidates lie, in frames of posed objects; `radius` is how
    far prototypes are seen from the middle of theirs.
    """
    if len(things) == 0:
        return things
    size, freedom = (shown.shape[-2], shown.shape[-1]), Freedom.of(config)
    low, high = freedom.ends
    small = dataclasses.replace(freedom, ends=(low / factor, high / factor))
    side = 2 * (math.ceil(radius * high / factor) + MARGIN) + 1
    geometry = Geometry.touching(size, (side, side))
    pose, first = things.pose.clone(), []
    for place, each, outer in ((things.row, DOWN, frame[0]), (things.column, RIGHT, frame[1])):
        exact = _smaller(place + (outer - 1) / 2 + pose[:, each], factor) - (side - 1) / 2
        (pad, count) = geometry.padding[0], geometry.positions[each - DOWN]
        first.append(exact.round().long().clamp(-pad, count - pad - 1))
        pose[:, each] = exact - first[-1]
    pose[:, SCALE] /= factor
    where = Windows(geometry, things.image, *first)
    parts = [where.cut(canvas(each, geometry)).permute(0, 3, 1, 2) for each in (shown, behind, clear)]
    pictures = _softened(torch.stack([bank.prototypes, bank.masks], dim=1), factor)[things.prototype]
    seen = Seen(parts[0], parts[1], parts[2][:, 0], radius + factor - 1)
    pose, gains = fits(pictures, pose, seen, config, small, STEPS, robust=False)
    places = torch.stack([first[0] + pose[:, DOWN], first[1] + pose[:, RIGHT]], dim=1)
    kept = _best(gains, things, pose, places, radius, most)
    pose, things = pose[kept], things.part(kept)
    made = pose.clone()
    made[:, SCALE] = (pose[:, SCALE] * factor).clamp(low, high)
    for each, place, outer, top in ((DOWN, things.row, frame[0], first[0]), (RIGHT, things.column, frame[1], first[1])):
        middle = _larger(top[kept] + (side - 1) / 2 + pose[:, each], factor)
        made[:, each] = middle - (outer - 1) / 2 - place
    return dataclasses.replace(things, pose=made).settled(subpixel=True)


def _smaller(place: Tensor, factor: int) -> Tensor:
    """A place in a picture that is smaller by a factor."""
    return (place + 0.5) / factor - 0.5


def _larger(place: Tensor, factor: int) -> Tensor:
    """The place in the larger picture again."""
    return (place + 0.5) * factor - 0.5


def _softened(pictures: Float[Tensor, "P 2 h w"], factor: int) -> Float[Tensor, "P 2 h w"]:
    """Prototypes and masks as soft as they are in small pictures, in their own size."""
    if factor == 1:
        return pictures
    paint, masks = pictures.unbind(1)
    slope = torch.arange(1, 2 * factor, device=pictures.device).to(pictures)
    slope = torch.minimum(slope, 2 * factor - slope) / factor**2
    kernel = (slope[:, None] * slope)[None, None]
    soft, opaque = (conv2d(each[:, None], kernel, padding=factor - 1)[:, 0] for each in (paint * masks, masks))
    return torch.stack([soft / opaque.clamp(min=1e-3), opaque], dim=1)


def _best(
    gains: Float[Tensor, "n"], things: PosedCandidates, pose: Float[Tensor, "n 5"], places: Tensor, radius: float, most: int
) -> Tensor:
    """The numbers of the best of each picture, in the order of pictures; of those that came to one pose the best."""
    order = gains.argsort(descending=True, stable=True)
    order = order[things.image[order].argsort(stable=True)]
    image = things.image[order]
    nth = torch.arange(len(order), device=order.device) - torch.searchsorted(image, image)  # from where a picture's begin
    table = order.new_full((int(image[-1]) + 1, int(nth.max()) + 1), -1)
    table[image, nth] = order
    known = table.clamp(min=0)
    kind = (2 * things.prototype + pose[:, MIRRORED].long())[known]
    moved = torch.cat([places, (radius * pose[:, SCALE])[:, None]], dim=1)[known]
    turned = (pose[known, ANGLE, None] - pose[known, ANGLE][:, None]).remainder(FULL_TURN)
    turned = torch.deg2rad(torch.minimum(turned, FULL_TURN - turned)) * moved[..., 2:]
    alike = (kind[:, :, None] == kind[:, None]) & (turned < ALIKE)
    alike &= ((moved[:, :, None] - moved[:, None]).abs() < ALIKE).all(-1)
    kept = (table >= 0) & ~alike.tril(-1).any(-1)
    kept &= kept.cumsum(1) <= most
    chosen: Tensor = table[kept]
    return chosen
