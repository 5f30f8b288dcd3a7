"""Fitting: poses moved until they leave as little of the error as they can, by damped Gauss-Newton steps.

How an object's pixels change with its angle, its size and its place follows from the slopes of its sprite. The colour
follows by least squares, so what a change of colour would do as well is left out of account. A step that does not help
is taken back, and the next one is smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.poses.pose import ANGLE, DOWN, MARGIN, RIGHT, SCALE, CoarsePoses
from pcdnet.model.poses.resampling import sprites

ASIDE = {ANGLE: 0.3, SCALE: 0.005, DOWN: 0.05, RIGHT: 0.05}
"""How far sprites are moved to either side to see what changes: degrees, logarithm of the size, pixels."""
DAMPING, MILDER, HARDER = 1e-3, 0.3, 8.0
"""How much steps are shortened at the start, and the factors after one that helped and one that did not."""
ROOM = 0.75
"""Poses are fitted within this share of the distance between two coarse ones, to either side."""
OUTLIER = 0.1
"""A pixel whose squared error is this share of an object's typical contrast hardly counts for the pose of a candidate:
something else is there."""
LEAST_CONTRAST = 4e-4
"""Of that contrast, per channel, at least: a difference of two hundredths."""
STILL = 0.03
"""Pixels by which a step moves no part of a candidate that hardly moves any more: the rest is for polishing."""
AT_ONCE = 1 << 19
"""Pixels of sprites that are fitted together."""


@dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """Which numbers of poses may change, and how far."""

    free: tuple[int, ...]
    reach: dict[int, float]
    """How far each may move from where it began: degrees, logarithm of the size, pixels."""
    ends: tuple[float, float]
    """The smallest and the largest size."""
    angles: tuple[float, float]
    """The smallest and the largest angle."""

    @staticmethod
    def of(config: ModelConfig, *, moving: bool = True) -> Freedom:
        """That of objects of a model; `moving` lets them move by fractions of a pixel."""
        coarse = CoarsePoses.of(config, torch.empty(0))
        turning, growing = (config.fine_poses and many > 1 for many in (config.rotations, config.scales))
        free = ((ANGLE,) if turning else ()) + ((SCALE,) if growing else ()) + ((DOWN, RIGHT) if moving else ())
        reach = {ANGLE: ROOM * coarse.turn, SCALE: ROOM * coarse.growth, DOWN: MARGIN, RIGHT: MARGIN}
        return Freedom(free, reach, config.scale_range, config.rotation_range)

    def moved(self, poses: Float[Tensor, "n 5"], step: Float[Tensor, "n free"]) -> Float[Tensor, "n 5"]:
        """Poses after a step."""
        poses = poses.clone()
        for each, change in zip(self.free, step.unbind(-1), strict=True):
            poses[:, each] = poses[:, each] * change.exp() if each == SCALE else poses[:, each] + change
        return poses

    def within(self, poses: Float[Tensor, "n 5"], start: Float[Tensor, "n 5"]) -> Float[Tensor, "n 5"]:
        """Poses brought back to where they may be."""
        poses = poses.clone()
        for each in self.free:
            if each == SCALE:
                apart = (poses[:, each] / start[:, each]).log().clamp(-self.reach[each], self.reach[each])
                poses[:, each] = (start[:, each] * apart.exp()).clamp(*self.ends)
            else:
                poses[:, each] = start[:, each] + (poses[:, each] - start[:, each]).clamp(
                    -self.reach[each], self.reach[each]
                )
        if ANGLE in self.free and self.angles[1] - self.angles[0] < FULL_TURN:
            low, high = self.angles
            turned = low + (poses[:, ANGLE] - low).remainder(FULL_TURN)
            beyond = turned - high
            poses[:, ANGLE] = torch.where(
                beyond <= 0, turned, torch.where(2 * beyond < FULL_TURN - (high - low), high, low)
            )
        return poses


def derivatives(
    made: Float[Tensor, "n layers y x"], poses: Float[Tensor, "n 5"], freedom: Freedom
) -> Float[Tensor, "n free layers y x"]:
    """How sprites change with each of the free numbers of their poses.

    Where a sprite moves, it changes by its slope: turned, each pixel moves along a circle about the middle of the
    object, and grown, away from it.
    """
    down = pad(made, (0, 0, 0, 1)) - pad(made, (0, 0, 1, 0))
    down = (down[..., 1:, :] + down[..., :-1, :]) / 2
    right = pad(made, (0, 1)) - pad(made, (1, 0))
    right = (right[..., 1:] + right[..., :-1]) / 2
    (y, x), changes = made.shape[-2:], []
    rows = torch.arange(y, dtype=made.dtype, device=made.device)[:, None] - (y - 1) / 2 - poses[:, DOWN, None, None]
    columns = torch.arange(x, dtype=made.dtype, device=made.device) - (x - 1) / 2 - poses[:, RIGHT, None, None]
    rows, columns = rows[:, None], columns[:, None]
    for each in freedom.free:
        if each == ANGLE:
            changes.append((down * columns - right * rows) * (math.pi / 180))
        elif each == SCALE:
            changes.append(-down * rows - right * columns)
        else:
            changes.append(-down if each == DOWN else -right)
    return torch.stack(changes, dim=1)


def differences(
    pictures: Float[Tensor, "n 2 h w"],
    poses: Float[Tensor, "n 5"],
    frame: tuple[int, int],
    config: ModelConfig,
    freedom: Freedom,
) -> Float[Tensor, "n free 2 y x"]:
    """The same as `derivatives`, read off sprites that are turned, grown and moved a little to either side.

    It takes longer, and ends where what is painted fits best: a slope between pixels is not quite that at a pixel.
    """
    sides = []
    for place, each in enumerate(freedom.free):
        step = poses.new_zeros(len(poses), len(freedom.free))
        step[:, place] = ASIDE[each]
        one, other = (sprites(pictures, freedom.moved(poses, sign * step), frame, config) for sign in (1, -1))
        sides.append((one - other) / (2 * ASIDE[each]))
    return torch.stack(sides, dim=1)


def gauss_newton(
    jacobian: Float[Tensor, "n free pixels"],
    tint: Float[Tensor, "n C y"],
    left: Float[Tensor, "n pixels"],
    damping: Float[Tensor, "n"],
) -> Float[Tensor, "n free"]:
    """The damped steps that reduce what is left, after what a change of colour (`tint`, per channel) explains is taken
    out; all are weighted already."""
    (n, free, pixels), C = jacobian.shape, tint.shape[1]
    per_channel = jacobian.view(n, free, C, pixels // C)
    norm = tint.square().sum(-1).clamp(min=1e-12)
    share = torch.einsum("nfcy,ncy->nfc", per_channel, tint) / norm[:, None]
    clean = (per_channel - share[..., None] * tint[:, None]).flatten(2)
    normal = torch.einsum("nfy,ngy->nfg", clean, clean)
    slope = torch.einsum("nfy,ny->nf", clean, left)
    diagonal = normal.diagonal(dim1=1, dim2=2)
    stiff = normal + torch.diag_embed(damping[:, None] * diagonal + 1e-9 + 1e-6 * diagonal.amax(1, keepdim=True))
    steps: Tensor = torch.linalg.solve(stiff, slope)
    return steps


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What candidates are laid over: parts of images in their frames, channels first."""

    shown: Float[Tensor, "n C y x"]
    behind: Float[Tensor, "n C y x"]
    inside: Float[Tensor, "n y x"]
    """1 where something can be seen, 0 elsewhere."""
    radius: float = math.inf
    """How far prototypes reach from the middle of their frames, if that is known."""

    def part(self, which: Int[Tensor, "m"] | slice) -> Seen:
        """Those of some of them."""
        return Seen(self.shown[which], self.behind[which], self.inside[which], self.radius)


@torch.no_grad()
def fitted(
    pictures: Float[Tensor, "n 2 h w"],
    poses: Float[Tensor, "n 5"],
    seen: Seen,
    config: ModelConfig,
    freedom: Freedom,
    steps: int,
    *,
    robust: bool,
) -> Float[Tensor, "n 5"]:
    """The poses of candidates, each fitted by itself to what is seen in its frame.

    Other things may lie over them: if `robust`, pixels that do not fit at all hardly count. What nothing lies over is
    fitted better without: its rim does not fit at all, either, as long as it is too small.
    """
    return poses if not freedom.free else fits(pictures, poses, seen, config, freedom, steps, robust=robust)[0]


@torch.no_grad()
def fits(
    pictures: Float[Tensor, "n 2 h w"],
    poses: Float[Tensor, "n 5"],
    seen: Seen,
    config: ModelConfig,
    freedom: Freedom,
    steps: int,
    *,
    robust: bool,
) -> tuple[Float[Tensor, "n 5"], Float[Tensor, "n"]]:
    """The same poses, and by how much each candidate lowers the error over what is behind it."""
    if len(poses) == 0:
        return poses, poses.new_zeros(0)
    if usable(poses) and config.poses > 1:
        return _compiled(pictures, poses, seen, config, freedom, steps, robust)
    frame = (seen.shown.shape[-2], seen.shown.shape[-1])
    most = max(1, AT_ONCE // (frame[0] * frame[1]))
    parts = [
        _fitted(pictures[some], poses[some], seen.part(some), config, freedom, steps, robust)
        for some in (slice(start, start + most) for start in range(0, len(poses), most))
    ]
    made, gains = zip(*parts, strict=True)
    return torch.cat(made), torch.cat(gains)


def _compiled(
    pictures: Float[Tensor, "n 2 h w"],
    poses: Float[Tensor, "n 5"],
    seen: Seen,
    config: ModelConfig,
    freedom: Freedom,
    steps: int,
    robust: bool,
) -> tuple[Float[Tensor, "n 5"], Float[Tensor, "n"]]:
    """The same by compiled loops."""
    from pcdnet.model.compiled import fitting as loops

    limits = (1.0, 1.0) if config.colour == "none" else (0.0, config.max_colour)
    rules = loops.Rules(
        freedom.free,
        (freedom.reach[ANGLE], freedom.reach[SCALE], freedom.reach[DOWN]),
        (*freedom.ends, *freedom.angles),
        limits,
        OUTLIER,
        LEAST_CONTRAST,
        (DAMPING, MILDER, HARDER),
        steps,
        robust,
        _reach(pictures, seen),
        STILL,
    )
    parts = as_array(seen.shown), as_array(seen.behind), as_array(seen.inside)
    made, gains = loops.fit(as_array(pictures), as_array(poses), parts, rules)
    return torch.from_numpy(made), torch.from_numpy(gains)


def _fitted(
    pictures: Float[Tensor, "n 2 h w"],
    poses: Float[Tensor, "n 5"],
    seen: Seen,
    config: ModelConfig,
    freedom: Freedom,
    steps: int,
    robust: bool,
) -> tuple[Float[Tensor, "n 5"], Float[Tensor, "n"]]:
    start = poses
    layers = _Look.of(pictures, poses, seen, config, None, robust)
    damping, moving = torch.full_like(poses[:, 0], DAMPING), torch.ones_like(poses[:, 0], dtype=torch.bool)
    for _ in range(steps):
        changes = derivatives(torch.stack([layers.paint, layers.mask], dim=1), poses, freedom)
        jacobian = layers.change(changes, seen)
        weight = layers.weight.sqrt()[:, None]
        jacobian, left = jacobian * weight[:, None], layers.left * weight
        tint = ((layers.mask * layers.paint)[:, None] * weight).expand_as(left)
        step = gauss_newton(jacobian.flatten(2), tint.flatten(2), left.flatten(1), damping)
        new = freedom.within(freedom.moved(poses, step), start)
        tried = _Look.of(pictures, new, seen, config, layers, robust)
        better = moving & (tried.cost < layers.cost)
        damping = damping * torch.where(moving, torch.where(better, MILDER, HARDER), 1)
        moving = moving & ~_hardly(poses, new, _reach(pictures, seen))
        poses = torch.where(better[:, None], new, poses)
        layers = layers.where_better(better, tried)
    bare = ((seen.shown - seen.behind) * seen.inside[:, None]).square().sum(1)
    share = 1 / (1 + bare / layers.scale[:, None, None]) if robust else 1
    return poses, (bare * share).sum((1, 2)) - layers.cost


def _reach(pictures: Float[Tensor, "n 2 h w"], seen: Seen) -> float:
    """How far prototypes reach from the middle of their frames, at most."""
    return min(seen.radius, math.hypot(*pictures.shape[-2:]) / 2)


def _hardly(poses: Float[Tensor, "n 5"], new: Float[Tensor, "n 5"], radius: float) -> Bool[Tensor, "n"]:
    """Whether no part of an object moves by much."""
    apart = (new - poses).abs()
    turned, grown = torch.deg2rad(apart[:, ANGLE]) * radius * poses[:, SCALE], apart[:, SCALE] * radius
    return torch.stack([turned, grown, apart[:, DOWN], apart[:, RIGHT]]).amax(0) < STILL


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """How candidates look in some poses, and what they leave of the error."""

    paint: Float[Tensor, "n y x"]
    mask: Float[Tensor, "n y x"]
    colour: Float[Tensor, "n C"]
    left: Float[Tensor, "n C y x"]
    weight: Float[Tensor, "n y x"]
    """How much each pixel counts."""
    scale: Float[Tensor, "n"]
    """The squared error from which on a pixel hardly counts."""
    cost: Float[Tensor, "n"]

    @staticmethod
    def of(
        pictures: Float[Tensor, "n 2 h w"],
        poses: Float[Tensor, "n 5"],
        seen: Seen,
        config: ModelConfig,
        before: _Look | None,
        robust: bool,
    ) -> _Look:
        """The candidates in these poses; colours and weights begin with those of `before`."""
        frame, C = (seen.shown.shape[-2], seen.shown.shape[-1]), seen.shown.shape[1]
        paint, mask = sprites(pictures, poses, frame, config).unbind(1)
        rest = seen.shown - (1 - mask)[:, None] * seen.behind
        tint = (mask * paint)[:, None]
        weight = seen.inside if before is None else before.weight
        colour = _colour(rest, tint, weight * (mask > 0.5) if before is None and robust else weight, config)
        if before is None and robust:  # once more, by the pixels that agree with most of them
            away = (rest - colour[..., None, None] * tint).square().sum(1)
            body = (mask > 0.5) & (seen.inside > 0)
            typical = torch.where(body, away, torch.nan).flatten(1).nanmedian(1).values.nan_to_num(0)
            agree = body & (away <= typical[:, None, None])
            colour = _colour(rest, tint, agree.to(weight), config)
        left = (rest - colour[..., None, None] * tint) * seen.inside[:, None]
        if before is None:
            contrast = (colour[..., None, None] * paint[:, None] - seen.behind).square().sum(1) * mask * seen.inside
            scale = OUTLIER * contrast.sum((1, 2)) / (mask * seen.inside).sum((1, 2)).clamp(min=1e-6)
            scale = scale.clamp(min=LEAST_CONTRAST * C)
        else:
            scale = before.scale
        error = left.square().sum(1)
        share = 1 / (1 + error / scale[:, None, None]) if robust else torch.ones_like(error)
        cost = (error * share).sum((1, 2))
        return _Look(paint, mask, colour, left, seen.inside * share.square(), scale, cost)

    def change(self, changes: Float[Tensor, "n free 2 y x"], seen: Seen) -> Float[Tensor, "n free C y x"]:
        """How what is painted changes."""
        paint, mask = changes[:, :, 0, None], changes[:, :, 1, None]
        colour = self.colour[:, None, :, None, None]
        texture = colour * self.paint[:, None, None]
        return mask * (texture - seen.behind[:, None]) + self.mask[:, None, None] * colour * paint

    def where_better(self, better: Tensor, other: _Look) -> _Look:
        """Each of the two where it is better."""
        names = self.__dataclass_fields__

        def chosen(name: str) -> Tensor:
            one, two = getattr(self, name), getattr(other, name)
            return torch.where(better.view(-1, *(1 for _ in one.shape[1:])), two, one)

        return _Look(*(chosen(name) for name in names))


def _colour(
    rest: Float[Tensor, "n C y x"], tint: Float[Tensor, "n 1 y x"], weight: Float[Tensor, "n y x"], config: ModelConfig
) -> Float[Tensor, "n C"]:
    """The colours that fit what is seen."""
    if config.colour == "none":
        return torch.ones_like(rest[:, :, 0, 0])
    weighted = tint * weight[:, None]
    norm = (weighted * tint).sum((2, 3)).clamp(min=1e-12)
    colour: Tensor = (weighted * rest).sum((2, 3)) / norm
    return colour.clamp(0, config.max_colour)
