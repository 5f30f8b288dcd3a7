"""Sketches: candidates fitted in small pictures first, in which a step costs a fraction of what it costs in full size.

Which of many poses an object has shows when each is fitted a little: coarse poses leave more of the error by what they
are off than by what they are. Those that explain most are then fitted in full size.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import conv2d

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.geometry import Geometry
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.fitting import Freedom, Seen, fits
from pcdnet.model.poses.pose import ANGLE, DOWN, MARGIN, MIRRORED, RIGHT, SCALE
from pcdnet.model.poses.proposals import smaller
from pcdnet.model.windows import Windows, canvas

ALIKE = 0.75
"""Small pixels by which no part of a candidate is moved from where the same one is that began in another pose."""
FACTOR = 2
"""How much smaller the pictures are."""
STEPS = 4
"""In which each is fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class Sketchbook:
    """Pictures in a smaller size, and what candidates are sketched by."""

    shown: Float[Tensor, "n C h w"]
    behind: Float[Tensor, "b C h w"]
    clear: Float[Tensor, "n 1 h w"]
    """1 where something can be seen, 0 elsewhere."""
    bank: PrototypeBank
    config: ModelConfig
    frame: tuple[int, int]
    """Height and width of the frames of posed objects, in full size."""
    radius: float
    """How far prototypes are seen from the middle of theirs."""

    @torch.no_grad()
    def best(
        self, things: PosedCandidates, freedom: Freedom, most: int | None = None, *, robust: bool = False
    ) -> tuple[PosedCandidates, Int[Tensor, "m"]]:
        """Of the candidates of each picture those that explain most of it, at most so many, as they fit best.

        Those that come to one pose count as one. Of each its number among the candidates is returned, too.
        """
        if len(things) == 0:
            return things, things.image
        (low, high), size = freedom.ends, (self.shown.shape[-2], self.shown.shape[-1])
        small = dataclasses.replace(freedom, ends=(low / FACTOR, high / FACTOR))
        side = 2 * (math.ceil(self.radius * high / FACTOR) + MARGIN) + 1
        geometry = Geometry.touching(size, (side, side))
        pose, first = things.pose.clone(), []
        for axis, each in enumerate((DOWN, RIGHT)):
            middle = (things.row, things.column)[axis] + (self.frame[axis] - 1) / 2 + pose[:, each]
            exact = (middle + 0.5) / FACTOR - 0.5 - (side - 1) / 2
            first.append(exact.round().long().clamp(1 - side, size[axis] - 1))
            pose[:, each] = exact - first[axis]
        pose[:, SCALE] /= FACTOR
        how = self.seen(things, geometry, first), self.config, small, STEPS
        pose, gains = fits(self.pictures()[things.prototype], pose, *how, robust=robust)
        places = torch.stack([first[0] + pose[:, DOWN], first[1] + pose[:, RIGHT]], dim=1)
        kept = _best(gains, things, pose, places, self.radius, most)
        pose, places, things = pose[kept], places[kept], things.part(kept)
        pose[:, SCALE] = (pose[:, SCALE] * FACTOR).clamp(low, high)
        for axis, each in enumerate((DOWN, RIGHT)):
            middle = (places[:, axis] + (side - 1) / 2 + 0.5) * FACTOR - 0.5
            pose[:, each] = middle - (self.frame[axis] - 1) / 2 - (things.row, things.column)[axis]
        return dataclasses.replace(things, pose=pose).settled(subpixel=True), kept

    def seen(self, things: PosedCandidates, geometry: Geometry, first: list[Tensor]) -> Seen:
        """What is seen in the frames of candidates, and what is behind them there."""
        where = Windows(geometry, things.image, *first)
        ground = where if len(self.behind) > 1 else dataclasses.replace(where, image=torch.zeros_like(things.image))
        shown, inside = (where.cut(canvas(each, geometry)).permute(0, 3, 1, 2) for each in (self.shown, self.clear))
        behind = ground.cut(canvas(self.behind, geometry)).permute(0, 3, 1, 2)
        return Seen(shown, behind, inside[:, 0], self.radius + FACTOR - 1)

    def pictures(self) -> Float[Tensor, "P 2 h w"]:
        """Prototypes and masks as soft as they are in small pictures, in their own size."""
        slope = torch.arange(1, 2 * FACTOR, device=self.bank.masks.device).to(self.bank.masks)
        slope = torch.minimum(slope, 2 * FACTOR - slope) / FACTOR**2
        both = torch.stack([self.bank.prototypes * self.bank.masks, self.bank.masks], dim=1)
        kernel = (slope[:, None] * slope).expand(2, 1, -1, -1)
        paint, masks = conv2d(both, kernel, padding=FACTOR - 1, groups=2).unbind(1)
        return torch.stack([paint / masks.clamp(min=1e-3), masks], dim=1)

    @staticmethod
    def of(
        shown: Float[Tensor, "n C H W"],
        behind: Float[Tensor, "b C H W"],
        clear: Float[Tensor, "n 1 H W"] | None,
        bank: PrototypeBank,
        config: ModelConfig,
        frame: tuple[int, int],
        radius: float,
    ) -> Sketchbook:
        """Of pictures in full size."""
        clear = torch.ones_like(shown[:, :1]) if clear is None else clear
        whole = (smaller(clear, FACTOR) > 0.99).to(clear)  # what is seen in part is known no better than what is not
        return Sketchbook(smaller(shown, FACTOR), smaller(behind, FACTOR), whole, bank, config, frame, radius)


def _best(
    gains: Float[Tensor, "n"],
    things: PosedCandidates,
    pose: Float[Tensor, "n 5"],
    places: Float[Tensor, "n 2"],
    radius: float,
    most: int | None,
) -> Int[Tensor, "m"]:
    """The numbers of the best of each picture, in the order of pictures; of those that came to one pose the best."""
    order = gains.argsort(descending=True, stable=True)
    order = order[things.image[order].argsort(stable=True)]
    image = things.image[order]
    begin = torch.searchsorted(image, image)  # where those of each picture do
    nth = torch.arange(len(order), device=order.device) - begin
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
    kept &= most is None or kept.cumsum(1) <= most
    chosen: Tensor = table[kept]
    return chosen
