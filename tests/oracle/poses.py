"""Objects in poses, by the book: banks of all variants pixel by pixel, and a descent by automatic derivatives.

With neither finer poses nor fractions of a pixel a model with poses is that of a bank in which every prototype in every
pose is a prototype of its own: what `Oracle` finds with it, `posed` puts into words. `refined` judges how well poses
between those that are tried are fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.functional import jacobian, vjp

from pcdnet.config import ModelConfig
from pcdnet.model.poses.pose import CoarsePoses, pose_frame

STEPS, DAMPING, LEAST_STEP = 30, 1e-3, 1e-9


def picture_in_pose(picture: Tensor, pose: list[float], frame: tuple[int, int]) -> Tensor:
    """A picture (h w) mirrored left to right, scaled, turned counter-clockwise and moved, in the middle of a frame."""
    (h, w), (Y, X) = picture.shape, frame
    angle, scale, mirrored, down, right = pose
    made = picture.new_zeros(Y, X)
    for y in range(Y):
        for x in range(X):
            # Backwards: what is moved last is undone first. Up is positive where angles are counter-clockwise.
            up, across = -(y - (Y - 1) / 2 - down), x - (X - 1) / 2 - right
            turned = complex(across, up) * complex(math.cos(math.radians(angle)), -math.sin(math.radians(angle)))
            across, up = turned.real / scale, turned.imag / scale
            if mirrored:
                across = -across
            row, column = (h - 1) / 2 - up, (w - 1) / 2 + across
            for i in (math.floor(row), math.floor(row) + 1):
                for j in (math.floor(column), math.floor(column) + 1):
                    if 0 <= i < h and 0 <= j < w:
                        made[y, x] += (1 - abs(row - i)) * (1 - abs(column - j)) * picture[i, j]
    return made


def posed_bank(prototypes: Tensor, masks: Tensor, config: ModelConfig) -> tuple[Tensor, Tensor]:
    """All prototypes (P h w) and masks in all coarse poses, as larger ones (P*R y x); number p * R + r."""
    h, w = prototypes.shape[-2:]
    frame, poses = pose_frame((h, w), config), CoarsePoses.of(config, prototypes).values.tolist()
    made = [
        torch.stack([picture_in_pose(x, pose, frame) for x in bank for pose in poses]) for bank in (prototypes, masks)
    ]
    return made[0], made[1]


def posed(
    variant: tuple[int, int, int, Tensor], frame: tuple[int, int], config: ModelConfig
) -> tuple[int, list[float], int, int, Tensor]:
    """What the oracle found as (variant, row, column, colour), as (prototype, pose, row, column, colour).

    Rows and columns are then those of the prototype's own frame, whose middle is that of the larger one.
    """
    number, row, column, colour = variant
    poses = CoarsePoses.of(config, colour).values.tolist()
    (h, w), (Y, X) = frame, pose_frame(frame, config)
    return number // len(poses), poses[number % len(poses)], row + (Y - h) // 2, column + (X - w) // 2, colour


@dataclass(frozen=True)
class Posed:
    """An object anywhere: which prototype, the middle of its frame in the image, its pose and its colour."""

    prototype: int
    middle: tuple[float, float]
    """Row and column, of which whole numbers are the middles of pixels."""
    angle: float
    """Degrees counter-clockwise."""
    log_scale: float
    mirrored: bool
    colour: Tensor  # C

    @staticmethod
    def of(thing: tuple[int, list[float], int, int, Tensor], frame: tuple[int, int]) -> Posed:
        """From (prototype, pose, row, column, colour), the place being that of the prototype's own frame."""
        prototype, (angle, scale, mirrored, down, right), row, column, colour = thing
        middle = row + (frame[0] - 1) / 2 + down, column + (frame[1] - 1) / 2 + right
        return Posed(prototype, middle, angle, math.log(scale), bool(mirrored), colour)

    @property
    def numbers(self) -> list[float]:
        """What a descent may change: angle, log scale, down, right."""
        return [self.angle, self.log_scale, *self.middle]

    def at(self, numbers: Tensor) -> Posed:
        """The same object with other numbers."""
        angle, log_scale, down, right = numbers.tolist()
        return replace(self, angle=angle, log_scale=log_scale, middle=(down, right))


class Bank(NamedTuple):
    """What images are painted with."""

    prototypes: Tensor  # P h w
    masks: Tensor  # P h w
    background: Tensor  # C H W


def bilinear(picture: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """A picture (h w) between its pixels, black around."""
    (h, w), made = picture.shape, torch.zeros_like(rows)
    for i in (rows.detach().floor(), rows.detach().floor() + 1):
        for j in (columns.detach().floor(), columns.detach().floor() + 1):
            there = (i >= 0) & (i < h) & (j >= 0) & (j < w)
            value = picture[i.clamp(0, h - 1).long(), j.clamp(0, w - 1).long()]
            made = made + there * (1 - (rows - i).abs()) * (1 - (columns - j).abs()) * value
    return made


def on_canvas(picture: Tensor, thing: Posed, numbers: Tensor, size: tuple[int, int]) -> Tensor:
    """A picture (h w) as an object on the whole canvas (H W), differentiable in angle, log scale, down and right."""
    angle, log_scale, down, right = numbers
    up = -(torch.arange(size[0], dtype=numbers.dtype)[:, None] - down)
    across = torch.arange(size[1], dtype=numbers.dtype)[None, :] - right
    cosine, sine = torch.cos(torch.deg2rad(angle)), torch.sin(torch.deg2rad(angle))
    across, up = (cosine * across + sine * up) / log_scale.exp(), (cosine * up - sine * across) / log_scale.exp()
    h, w = picture.shape
    return bilinear(picture, (h - 1) / 2 - up, (w - 1) / 2 + (-across if thing.mirrored else across))


def painted(numbers: Tensor, things: list[Posed], bank: Bank) -> Tensor:
    """The image (C H W) that objects make, front to back, with these numbers (N 4) in place of theirs."""
    G, (H, W) = bank.background, bank.background.shape[-2:]
    for thing, own in reversed(list(zip(things, numbers, strict=True))):
        T, M = (on_canvas(each[thing.prototype], thing, own, (H, W)) for each in (bank.prototypes, bank.masks))
        G = thing.colour[:, None, None] * T * M + (1 - M) * G
    return G


def error(image: Tensor, things: list[Posed], bank: Bank) -> float:
    """E of equation 4."""
    numbers = image.new_tensor([thing.numbers for thing in things]).reshape(-1, 4)
    return float((image - painted(numbers, things, bank)).square().sum())


def recoloured(image: Tensor, things: list[Posed], bank: Bank, most: float) -> list[Posed]:
    """The same objects, front to back each in the colour of least error, up to the largest one."""
    things = list(things)
    for n, thing in enumerate(things):
        black, white = ([*things[:n], replace(thing, colour=thing.colour * 0 + v), *things[n + 1 :]] for v in (0, 1))
        numbers = image.new_tensor([each.numbers for each in things])
        G_0 = painted(numbers, black, bank)
        V = painted(numbers, white, bank) - G_0
        colour = ((image - G_0) * V).sum((1, 2)) / V.square().sum((1, 2)).clamp(min=1e-12)
        things[n] = replace(thing, colour=colour.clamp(0, most))
    return things


def refined(
    image: Tensor,
    things: list[Posed],
    bank: Bank,
    config: ModelConfig,
    steps: int = STEPS,
) -> tuple[list[Posed], float]:
    """Objects moved by damped steps of Gauss and Newton while the error falls, all at once; and the error they leave.

    Angles stay where only one is tried, sizes too; both stay within the ranges of the configuration.
    """
    free = torch.tensor([config.rotations > 1, config.scales > 1, True, True]).repeat(len(things))
    damping = DAMPING
    if config.colour == "least_squares":
        things = recoloured(image, things, bank, config.max_colour)
    least = error(image, things, bank)
    for _ in range(steps if things else 0):

        def residual(numbers: Tensor, things: list[Posed] = things) -> Tensor:
            return (image - painted(numbers, things, bank)).flatten()

        numbers = image.new_tensor([thing.numbers for thing in things])
        J = derivatives(residual, numbers)[:, free]
        normal, slope = J.T @ J, J.T @ residual(numbers)
        while damping < 1e6:
            step = torch.zeros(len(free), dtype=image.dtype)
            damped = normal + damping * (normal.diagonal() + 1e-9).diag()
            step[free] = torch.linalg.solve(damped, -slope)
            moved = [within(x.at(n), config) for x, n in zip(things, numbers + step.reshape(-1, 4), strict=True)]
            if config.colour == "least_squares":
                moved = recoloured(image, moved, bank, config.max_colour)
            left = error(image, moved, bank)
            if left < least:
                break
            damping *= 4
        else:
            break
        fall, things, least, damping = least - left, moved, left, damping / 8
        if fall < LEAST_STEP * least:
            break
    return things, least


def derivatives(residual: Callable[[Tensor], Tensor], numbers: Tensor) -> Tensor:
    """The Jacobian of many values by few numbers, one row a value.

    Pulling back is linear in what is pulled back, and its own derivative is the Jacobian: a pass for each number
    instead of one for each value.
    """

    def pulled_back(cotangent: Tensor) -> Tensor:
        pulled: Tensor = vjp(residual, numbers, cotangent, create_graph=True)[1]  # type: ignore[no-untyped-call]
        return pulled.flatten()

    rows: Tensor = jacobian(pulled_back, torch.zeros_like(residual(numbers)))  # type: ignore[no-untyped-call]
    return rows.T


def within(thing: Posed, config: ModelConfig) -> Posed:
    """An object turned and scaled back into the ranges of the configuration, if it is beyond them."""
    angle, log_scale = thing.angle, thing.log_scale
    low, high = config.rotation_range
    if config.rotations > 1 and not math.isclose(high - low, 360):
        middle = (low + high) / 2
        off = (angle - middle + 180) % 360 - 180
        angle = middle + min(max(off, -(high - low) / 2), (high - low) / 2)
    if config.scales > 1:
        small, large = map(math.log, config.scale_range)
        log_scale = min(max(log_scale, small), large)
    return replace(thing, angle=angle, log_scale=log_scale)
