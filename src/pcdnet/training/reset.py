"""Reset: prototypes that nothing needs become copies of prototypes that stand for two shapes.

Two faults keep a bank from learning. A prototype may be superfluous: never chosen, or chosen only where another
would have done as well. Another may be shared: two shapes are explained by a blur of both that fits neither. The
first is known by its *value*, the error that no other prototype could have removed in its place; the second by the
*error* it leaves under its own masks. Where half the largest error exceeds the least value, the prototype of least
value becomes a noisy copy of the one of largest error, and from then on the two compete for the two shapes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy import ndimage
from torch import Tensor

from pcdnet.config import ModelConfig, TrainConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.engine import Layers
from pcdnet.model.geometry import Geometry, fast_size, support
from pcdnet.model.network import PCDNet
from pcdnet.model.poses.pose import SCALE, pose_frame
from pcdnet.model.poses.resampling import resampled
from pcdnet.model.sharing import WHOLE, Sharing
from pcdnet.model.windows import Windows, canvas
from pcdnet.training.looks import between_poses

MEMORY = 0.97
"""How much of the running averages is kept in a step."""
IN_USE = 0.25
"""A prototype counts as in use from this share of its fair share of objects."""
HOPE = 0.5
"""The share of a shared prototype's error that a split may be expected to remove."""
COPY_NOISE = 0.15
"""Half width of the noise that tells a copy from its original."""
LIKENESS_STEP, LIKENESS_GROWTH = 5.0, 1.1
"""Degrees between the angles, and the ratio of the sizes, in which prototypes are compared."""
UPRIGHT = 0.0, 1.0, 0.0, 0.0, 0.0
"""The pose of what is not posed."""
SOLID = 0.3
"""What is painted brighter than this share of a prototype's max_colour pixel counts when it is centred."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that was done to the bank."""

    step: int
    """When, as the number of steps then done."""
    kind: str
    """`split` (a superfluous prototype became a copy of a shared one) or `centre` (moved to the middle)."""
    prototype: int
    """Which prototype was changed."""
    source: int
    """Which prototype it was copied from; itself for `centre`."""


@dataclass(slots=True)
class Health:
    """Running averages of how every prototype is doing; updated in place, saved with the run."""

    usage: Float[Tensor, "P"]
    """Share of the chosen objects that are this prototype's."""
    error: Float[Tensor, "P"]
    """Squared error that is left under its masks, over all its objects in a batch."""
    value: Float[Tensor, "P"]
    """Squared error that no other prototype could have removed in its place, over all its objects in a batch."""
    changed: Int[Tensor, "P"]
    """The step at which it was last split."""

    @staticmethod
    def start(prototypes: int) -> Health:
        """A bank of which nothing is known: all equally used."""
        return Health(
            usage=torch.full((prototypes,), 1 / prototypes),
            error=torch.zeros(prototypes),
            value=torch.zeros(prototypes),
            changed=torch.zeros(prototypes, dtype=torch.long),
        )

    @torch.no_grad()
    def observe(self, images: Float[Tensor, "B C H W"], layers: Layers, sharing: Sharing = WHOLE) -> None:
        """Take one explained batch into the averages; where the images are a part of it, all of it."""
        where, P = layers.placement, len(self.usage)
        image, n = where.exists.nonzero(as_tuple=True)
        prototype = where.prototype[image, n]
        everywhere = sharing.gathered(where.exists)
        prototype = sharing.objects(prototype, where.exists, everywhere)
        used = torch.bincount(prototype, minlength=P).cpu().float()
        h, w = layers.masks.shape[-2:]
        geometry = Geometry.touching((images.shape[-2], images.shape[-1]), (h, w))
        left = canvas((layers.reconstruction - images).square().sum(dim=1, keepdim=True), geometry)
        frames = Windows(geometry, image, where.row[image, n], where.column[image, n]).cut(left)[..., 0]
        under = (frames * layers.masks[image, n].clamp(0, 1)).sum(dim=(1, 2))
        under, advantage = (
            sharing.objects(each, where.exists, everywhere).float().cpu()
            for each in (under, where.advantage[image, n].clamp(min=0))
        )
        prototype = prototype.cpu()
        errors = torch.zeros(P).index_add(0, prototype, under)
        values = torch.zeros(P).index_add(0, prototype, advantage)
        self.usage.mul_(MEMORY).add_((1 - MEMORY) * used / used.sum().clamp(min=1))
        self.error.mul_(MEMORY).add_((1 - MEMORY) * errors)
        self.value.mul_(MEMORY).add_((1 - MEMORY) * values)

    def in_use(self) -> int:
        """How many prototypes are chosen often enough to learn."""
        return int((self.usage >= IN_USE / len(self.usage)).sum())


def reset_prototypes(
    model: PCDNet, optimizer: torch.optim.Adam, health: Health, config: TrainConfig, step: int, rng: torch.Generator
) -> list[Event]:
    """Centre the prototypes and, where it pays, reset one; the events say what was done."""
    noisy = step <= 2 * config.noise_steps  # what it leaves takes as long to go
    events = [Event(step, "centre", p, p) for p in centre(model, optimizer, by_parts=not noisy)]
    rested = (step - health.changed >= 2 * config.reset_every) | (health.changed == 0)
    value, error = health.value.where(rested, torch.inf), health.error.where(rested, 0)
    target, source = int(value.argmin()), int(error.argmax())
    if target != source and HOPE * error[source] > value[target]:
        _copy(model, optimizer, source, target, rng)
        for values in (health.usage, health.error, health.value):
            values[target] = values[source] = values[source] / 2
        health.changed[target] = health.changed[source] = step
        events.append(Event(step, "split", target, source))
    return events


def likeness(bank: PrototypeBank, config: ModelConfig | None = None) -> Float[Tensor, "P P"]:
    """Correlation of every two prototypes under their masks, best aligned: 1 for the same shape at any place.

    Of a model with poses, `config`, the same shape turned, grown or mirrored is the same, too.
    """
    with torch.no_grad():
        objects = bank.prototypes * bank.masks
        if config is None or config.poses == 1:
            return _best_aligned(objects, objects)
        frame = pose_frame(bank.frame, config)
        alike = objects.new_zeros(len(objects), len(objects))
        still = resampled(objects[:, None], objects.new_tensor([UPRIGHT]).expand(len(objects), -1), frame)[:, 0]
        for pose in _poses_between(config, objects):
            turned = resampled(objects[:, None], pose.expand(len(objects), -1), frame)[:, 0]
            alike = torch.maximum(alike, _best_aligned(still, turned))
        return torch.maximum(alike, alike.T)


def _poses_between(config: ModelConfig, like: Tensor) -> Float[Tensor, "poses 5"]:
    """The poses that one of two prototypes can have as seen from the other: near angles, and sizes next to its own."""
    poses = between_poses(config, LIKENESS_STEP).to(like)
    if config.scales == 1:
        return poses
    ratio = config.scale_range[1] / config.scale_range[0]
    steps = math.ceil(math.log(ratio) / math.log(LIKENESS_GROWTH))
    sizes = [ratio ** (-step / steps) for step in range(steps + 1)]
    several = poses.repeat(len(sizes), 1)
    several[:, SCALE] = like.new_tensor(sizes).repeat_interleave(len(poses))
    return several


def _best_aligned(one: Float[Tensor, "P y x"], two: Float[Tensor, "P y x"]) -> Float[Tensor, "P P"]:
    """The correlation of every two pictures where they fit best."""
    h, w = one.shape[-2:]
    grid = fast_size(2 * h - 1), fast_size(2 * w - 1)
    spectra = [
        torch.fft.rfft2(some / some.flatten(1).norm(dim=1).clamp(min=1e-6)[:, None, None], s=grid)
        for some in (one, two)
    ]
    maps: Tensor = torch.fft.irfft2(spectra[0][:, None] * spectra[1].conj()[None], s=grid)
    return maps.flatten(2).amax(dim=-1)


@torch.no_grad()
def centre(model: PCDNet, optimizer: torch.optim.Adam, *, by_parts: bool = False) -> list[int]:
    """Move prototypes whose mask lies off the centre of its frame back to it; which were moved.

    With `by_parts`, of one that reaches from rim to rim the largest part counts: it holds more than one thing, or a
    slice of the next. While prototypes get noise it would be noise that reaches so far.
    What moves in at the rim is empty, and what faintly lay at the other rim is lost; the rest is painted as before,
    since the positions at which it is found move the other way.
    """
    moved = []
    bank = model.bank()
    painted = bank.prototypes * bank.masks
    solid = painted > SOLID * painted.amax(dim=(1, 2), keepdim=True)
    h, w = bank.frame
    for p, box in enumerate(support(solid)):
        if by_parts and (box.height == h or box.width == w):
            box = support(_largest_part(solid[p], painted[p])[None])[0]
        down, right = (h - box.height) // 2 - box.top, (w - box.width) // 2 - box.left
        if not solid[p].any() or (down == 0 and right == 0):
            continue
        for values in (model.prototypes, model.masks):
            _shift(values[p], down, right)
            for name in ("exp_avg", "exp_avg_sq"):
                if values in optimizer.state:
                    _shift(optimizer.state[values][name][p], down, right)
        moved.append(p)
    return moved


def _largest_part(solid: Bool[Tensor, "h w"], painted: Float[Tensor, "h w"]) -> Bool[Tensor, "h w"]:
    """The solid pixels that hang together, corners included, and are painted most of all such parts."""
    parts, count = ndimage.label(solid.cpu().numpy(), structure=np.ones((3, 3)))
    sums = ndimage.sum_labels(painted.cpu().numpy(), parts, np.arange(1, count + 1))
    return torch.from_numpy(parts == 1 + int(np.argmax(sums))).to(solid.device) if count else solid


def _shift(frame: Float[Tensor, "h w"], down: int, right: int) -> None:
    """Move a frame's content in place; zeros move in."""
    h, w = frame.shape
    moved = torch.zeros_like(frame)
    to = slice(max(down, 0), h + min(down, 0)), slice(max(right, 0), w + min(right, 0))
    source = slice(max(-down, 0), h + min(-down, 0)), slice(max(-right, 0), w + min(-right, 0))
    moved[to] = frame[source]
    frame.copy_(moved)


@torch.no_grad()
def _copy(model: PCDNet, optimizer: torch.optim.Adam, source: int, target: int, rng: torch.Generator) -> None:
    """Make two noisy copies of one prototype, and let the optimizer forget where either was heading."""
    for values in (model.prototypes, model.masks):
        original = values[source].clamp(-0.1, 1.1)
        for p in (target, source):
            noise = COPY_NOISE * (2 * torch.rand(original.shape, generator=rng) - 1)
            values[p] = original + noise.to(original)
        if values in optimizer.state:
            state = optimizer.state[values]
            state["exp_avg"][target] = state["exp_avg"][source] = 0
            state["exp_avg_sq"][target] = state["exp_avg_sq"][source]
