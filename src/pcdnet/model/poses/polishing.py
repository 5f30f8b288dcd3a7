"""Polishing: placed objects fitted together, each to what the objects in front of it let through.

All objects of an image take a step at once, in the colours that fit them best; a step after which the image is
explained worse is taken back, and the next one is smaller.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.colour import least_squares_colours
from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.composition import paint
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.fitting import DAMPING, HARDER, MILDER, Freedom, derivatives, differences, gauss_newton
from pcdnet.model.poses.pose import ANGLE, DOWN, RIGHT, SCALE
from pcdnet.model.poses.proposals import FAINT
from pcdnet.model.poses.resampling import sprites
from pcdnet.model.windows import Frames, canvas, inside_of, uncanvas


@torch.no_grad()
def polished(
    images: Float[Tensor, "B C H W"],
    behind: Float[Tensor, "b C H W"],
    plan: SearchPlan,
    frame: tuple[int, int],
    found: Placement,
    freedom: Freedom,
    steps: int,
) -> Placement:
    """The objects in poses that leave less of the error; colours are to be found anew."""
    if usable(images) and plan.config.poses > 1:
        return _compiled(images, behind, plan, frame, found, freedom, steps)
    scene, start, config = _Scene(images, behind, plan, frame), found.pose, plan.config
    state = scene.look(found)
    damping = torch.full_like(state.error, DAMPING)
    image, n = found.exists.nonzero(as_tuple=True)
    for number in range(steps):
        if (found.pose[..., [DOWN, RIGHT]].abs() >= 1).any():  # frames follow what moves away: it has room in them
            found = _settled(found, subpixel=True)
            state, start = scene.look(found), _from_here(start, found.pose)
        if 2 * number < steps:
            made = torch.stack([state.paint[image, n], state.mask[image, n]], dim=1)
            changes = derivatives(made, found.pose[image, n], freedom)
        else:
            if 2 * number < steps + 2:  # these steps are others
                damping = torch.full_like(damping, DAMPING)
            changes = differences(scene.pictures(found)[image, n], found.pose[image, n], frame, config, freedom)
        jacobian, tint, left = (values.flatten(-2) for values in state.change(changes, image, n))
        step = gauss_newton(jacobian.flatten(2), tint, left.flatten(1), damping[image])
        new = found.pose.clone()
        new[image, n] = freedom.within(freedom.moved(found.pose[image, n], step), start[image, n])
        tried = scene.look(dataclasses.replace(found, pose=new))
        better = tried.error < state.error
        found = dataclasses.replace(found, pose=torch.where(better[:, None, None], new, found.pose))
        state = state.where_better(better, tried)
        damping = damping * torch.where(better, MILDER, HARDER)
    return _settled(found, subpixel=config.subpixel)


def _compiled(
    images: Float[Tensor, "B C H W"],
    behind: Float[Tensor, "b C H W"],
    plan: SearchPlan,
    frame: tuple[int, int],
    found: Placement,
    freedom: Freedom,
    steps: int,
) -> Placement:
    """The same by compiled loops."""
    from pcdnet.model.compiled import polishing as loops

    bank, config, seen = plan.bank, plan.config, plan.seen
    reach = freedom.reach[ANGLE], freedom.reach[SCALE], freedom.reach[DOWN]
    limits = (1.0, 1.0) if config.colour == "none" else (0.0, config.max_colour)
    numbers = *reach, *freedom.ends, *freedom.angles, *limits
    dampings, coloured = (DAMPING, MILDER, HARDER), config.colour == "least_squares"
    rules = loops.Rules(freedom.free, numbers, dampings, reach_of(bank), steps, coloured)
    shown = images.new_ones(images.shape[-2:]) if seen is None else seen[0, 0]
    pictures = as_array(torch.stack([bank.prototypes, bank.masks], dim=1).to(images))
    places = as_array(found.prototype), as_array(found.row), as_array(found.column)
    things = *places, as_array(found.pose), as_array(found.colour)
    made = loops.polish((as_array(images), as_array(behind), as_array(shown)), pictures, things, frame, rules)
    pose, colour = map(torch.from_numpy, made)
    return _settled(dataclasses.replace(found, pose=pose, colour=colour), subpixel=config.subpixel)


def reach_of(bank: PrototypeBank) -> float:
    """How far what is seen of any prototype is from the middle of the frame."""
    h, w = bank.frame
    y = torch.arange(h, device=bank.masks.device)[:, None] - (h - 1) / 2
    x = torch.arange(w, device=bank.masks.device) - (w - 1) / 2
    return float(((y.square() + x.square()).sqrt() * (bank.masks > FAINT).any(0)).max())


def _from_here(start: Float[Tensor, "B N 5"], now: Float[Tensor, "B N 5"]) -> Float[Tensor, "B N 5"]:
    """Where objects began, but for their places: those are where they are now."""
    start = start.clone()
    start[..., [DOWN, RIGHT]] = now[..., [DOWN, RIGHT]]
    return start


def _settled(found: Placement, *, subpixel: bool) -> Placement:
    """The objects with frames where they lie nearest."""
    image, n = found.exists.nonzero(as_tuple=True)
    things = PosedCandidates.placed(found).settled(subpixel=subpixel)
    row, column, pose = found.row.clone(), found.column.clone(), found.pose.clone()
    row[image, n], column[image, n], pose[image, n] = things.row, things.column, things.pose
    return dataclasses.replace(found, row=row, column=column, pose=pose)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """How images are explained by objects in some poses."""

    paint: Float[Tensor, "B N y x"]
    mask: Float[Tensor, "B N y x"]
    colour: Float[Tensor, "B N C"]
    covered: Float[Tensor, "B N y x C"]
    """What is behind each object."""
    through: Float[Tensor, "B N y x 1"]
    """How much of it those in front let through."""
    left: Float[Tensor, "B N y x C"]
    error: Float[Tensor, "B"]

    def change(
        self, changes: Float[Tensor, "k free 2 y x"], image: Tensor, n: Tensor
    ) -> tuple[Float[Tensor, "k free C y x"], Float[Tensor, "k C y x"], Float[Tensor, "k C y x"]]:
        """How the images change with each of the free numbers and with the colours, and what is left to explain."""
        colour, covered = self.colour[image, n][:, :, None, None], self.covered[image, n].permute(0, 3, 1, 2)
        through = self.through[image, n].permute(0, 3, 1, 2)
        paint, mask = self.paint[image, n][:, None], self.mask[image, n][:, None]
        texture = colour * paint - covered
        made = changes[:, :, 1, None] * texture[:, None] + changes[:, :, 0, None] * (mask * colour)[:, None]
        tint = (through * mask * paint).expand_as(texture)
        return made * through[:, None], tint, self.left[image, n].permute(0, 3, 1, 2)

    def where_better(self, better: Tensor, other: _State) -> _State:
        """Each of the two in the images in which it is better."""

        def chosen(name: str) -> Tensor:
            one, two = getattr(self, name), getattr(other, name)
            return torch.where(better.view(-1, *(1 for _ in one.shape[1:])), two, one)

        return _State(*(chosen(name) for name in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """Images, and what objects of a bank are painted over in them."""

    images: Float[Tensor, "B C H W"]
    behind: Float[Tensor, "b C H W"]
    plan: SearchPlan
    frame: tuple[int, int]

    def pictures(self, found: Placement) -> Float[Tensor, "B N 2 h w"]:
        """The prototypes of the objects, upright, with their masks."""
        bank = self.plan.bank
        return torch.stack([bank.prototypes, bank.masks], dim=1)[found.prototype.clamp(min=0)]

    def look(self, found: Placement) -> _State:
        """How the images are explained by these objects."""
        images, config, seen = self.images, self.plan.config, self.plan.seen
        pictures, (B, N) = self.pictures(found).flatten(0, 1), found.prototype.shape
        made = sprites(pictures, found.pose.flatten(0, 1), self.frame, config)
        made = made.view(B, N, *made.shape[1:])
        texture, mask = made.unbind(2)
        mask = mask * found.exists[:, :, None, None]
        texture, mask = texture.contiguous(), mask.contiguous()
        frames = found.frames((images.shape[-2], images.shape[-1]), self.frame)
        colour = found.colour
        if config.colour == "least_squares":
            under = None if config.background == "black" and len(self.behind) == 1 else self.behind
            colour = least_squares_colours(images, under, texture, mask, frames, config.max_colour, seen)
        picture = canvas(self.behind.expand_as(images), frames.geometry)
        covered = paint(picture, texture[..., None] * colour[:, :, None, None], mask, frames)
        left = images - uncanvas(picture, frames.geometry)
        left = left if seen is None else left * seen
        through = self._through(mask, frames)
        rest, windows = canvas(left, frames.geometry), torch.zeros_like(covered)
        for n in range(N):
            where = frames.nth(n)
            windows[where.image, n] = where.cut(rest)
        return _State(texture, mask, colour, covered, through, windows, left.square().sum((1, 2, 3)))

    def _through(self, mask: Float[Tensor, "B N y x"], frames: Frames) -> Float[Tensor, "B N y x 1"]:
        """How much is seen of each object through those in front of it; nothing outside the images."""
        clear = inside_of(self.images, frames.geometry, self.plan.seen)
        through = torch.zeros_like(mask)[..., None]
        for n in range(mask.shape[1]):
            windows = frames.nth(n)
            seen = windows.cut(clear)
            through[windows.image, n] = seen
            windows.paste(clear, seen * (1 - mask[windows.image, n, ..., None]))
        return through
