"""Correction: a bank with prototypes made of boxes that people drew, and without those that they removed.

What stands out in a box, against the background that the model sees behind it, is the thing: its pixels are a mask and
a grey paint, as those of the blobs that training starts from. Whatever is too small for it grows: frames, the number of
objects, and how faint an object may be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, UInt8
from scipy import ndimage

from pcdnet.config import ModelConfig
from pcdnet.corrections import Drawn, within
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.pixels import Pixels, spread
from pcdnet.training.automatic import LEAST_GAIN, MARGIN, MOST_OBJECTS, MOST_PEAKS, ROOM
from pcdnet.training.backdrop import to_tensor
from pcdnet.training.diagnosis import noise_of
from pcdnet.training.foreground import LEAST_CONTRAST, NOISE_FACTOR, Blob, blobs_of, joined
from pcdnet.training.initialization import SURE
from pcdnet.training.shapes import common_shape

INSIDE = 0.5
"""A piece of which less than this share lies in the box is a neighbour of the thing."""
IMAGES = 32
"""Images in which objects are counted, to see how many there may be."""


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """A corrected model, and how it came from the former one."""

    model: PCDNet
    """What training is to start from."""
    numbers: dict[int, int]
    """The new numbers of the prototypes that stay, by the former ones."""
    shift: tuple[int, int]
    """What is added to the position of a former object to be that of the same object: frames may have grown."""
    reasons: tuple[str, ...]
    """What was changed, in words."""


def correct(
    model: PCDNet, drawn: Sequence[Drawn], removed: Collection[int], images: UInt8[Pixels, "N H W C"]
) -> Correction:
    """The model with a prototype for every drawn box, and without the removed ones.

    `images` are some that it will learn from. Boxes of one name and of one shape make one prototype; where objects turn
    or grow, the largest thing of a name makes it.
    """
    config = model.config
    for prototype in removed:
        if not 0 <= prototype < config.num_prototypes:
            raise PcdnetError(f"there is no prototype {prototype}; give a number of 0 to {config.num_prototypes - 1}")
    blobs = [thing_in(model, within(each, config.channels)) for each in drawn]
    kept = [p for p in range(config.num_prototypes) if p not in set(removed)]
    if not kept and not blobs:
        raise PcdnetError("all prototypes are removed and no box is drawn; leave a prototype, or draw a box")
    names = [each.name for each in drawn]
    groups = _grouped(blobs, names) if config.poses == 1 else _largest(blobs, names)
    frame, shift = _frame(config.prototype_size, blobs, (images.shape[1], images.shape[2]))
    seeds = [common_shape([blobs[n] for n in group], frame) for group in groups]
    weakest = min((blob.energy for blob in blobs if not blob.cut), default=np.inf)
    least = min(config.min_error_reduction, float(f"{LEAST_GAIN * weakest:.2g}"))
    changed = dataclasses.replace(
        config, num_prototypes=len(kept) + len(seeds), prototype_size=frame, min_error_reduction=least
    )
    made = _with_room(_made(model, changed, kept, seeds, shift), images)
    given = {len(kept) + n: drawn[group[0]].name for n, group in enumerate(groups) if drawn[group[0]].name}
    numbers = {p: n for n, p in enumerate(kept)}
    called = model.names.renumbered(numbers, made.config.num_prototypes)
    made.names = dataclasses.replace(called, given={**called.given, **given}, colours={})
    reasons = tuple(_reasons(config, made.config, len(seeds), sorted(removed)))
    return Correction(made, numbers, (-shift[0], -shift[1]), reasons)


@torch.no_grad()
def thing_in(model: PCDNet, drawn: Drawn) -> Blob:
    """What stands out from the background in a box: pieces that lie in it, and not those that only reach into it."""
    top, left, height, width = drawn.box
    image, behind = _against_background(model, drawn.image)
    difference = image - behind
    threshold = max(NOISE_FACTOR * noise_of(difference), LEAST_CONTRAST)
    foreground = np.abs(difference).max(axis=-1) > threshold
    box = np.zeros(foreground.shape, bool)
    box[top : top + height, left : left + width] = True
    pieces, count = ndimage.label(foreground, structure=np.ones((3, 3)))
    whole, inside = (np.bincount(pieces[where], minlength=count + 1) for where in (foreground, foreground & box))
    neighbours = inside < INSIDE * whole
    if (inside[1:][~neighbours[1:]] > 0).any():
        foreground &= ~neighbours[pieces]
    pixels = np.rint(255 * image.clip(0, 1)).astype(np.uint8)
    found, _ = blobs_of(0, pixels, behind, foreground & box, (height, width))
    if not found:
        where = f"in the box of {height}x{width} at row {top}, column {left}"
        raise PcdnetError(f"nothing stands out from the background {where}; draw it around a thing")
    return joined(found)


def _against_background(
    model: PCDNet, image: UInt8[np.ndarray, "H W C"]
) -> tuple[Float32[np.ndarray, "H W C"], Float32[np.ndarray, "H W C"]]:
    """A picture as it is searched, and what the model sees behind its objects."""
    batch = model.seen(to_tensor(image[None].copy()).to(model.masks))
    own = model.own_backgrounds(batch)
    behind = model.weights().clamped().behind(batch[0]) if own is None else own[0]
    pair = [each.permute(1, 2, 0).float().contiguous().cpu().numpy() for each in (batch[0], behind)]
    return pair[0], pair[1]


def _grouped(blobs: Sequence[Blob], names: Sequence[str]) -> list[list[int]]:
    """The boxes that show one shape: those of one name whose things are equally large, or nearly so."""
    groups: list[list[int]] = []
    for n, (blob, name) in enumerate(zip(blobs, names, strict=True)):
        for group in groups:
            first = blobs[group[0]]
            alike = all(abs(a - b) <= 1 for a, b in zip(first.mask.shape, blob.mask.shape, strict=True))
            if name and names[group[0]] == name and alike:
                group.append(n)
                break
        else:
            groups.append([n])
    return groups


def _largest(blobs: Sequence[Blob], names: Sequence[str]) -> list[list[int]]:
    """The largest thing of every name, and all without one: those of a name that is turned or smaller are its poses."""
    largest: dict[str, int] = {}
    for n, (blob, name) in enumerate(zip(blobs, names, strict=True)):
        if name and (name not in largest or blob.mask.sum() > blobs[largest[name]].mask.sum()):
            largest[name] = n
    return [[n] for n, name in enumerate(names) if not name or largest[name] == n]


def _frame(
    former: tuple[int, int], blobs: Sequence[Blob], size: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """A frame that holds all things, and where the former one lies in it."""
    sides = [max((blob.mask.shape[axis] + 2 * MARGIN for blob in blobs), default=0) for axis in (0, 1)]
    height, width = (max(old, min(new, most)) for old, new, most in zip(former, sides, size, strict=True))
    for blob in blobs:
        if blob.mask.shape[0] > height or blob.mask.shape[1] > width:
            problem = f"a thing of {blob.mask.shape[0]}x{blob.mask.shape[1]} pixels is larger than the images"
            raise PcdnetError(f"{problem} that are learned from ({size[0]}x{size[1]}); draw a smaller box")
    return (height, width), ((height - former[0]) // 2, (width - former[1]) // 2)


@torch.no_grad()
def _made(
    model: PCDNet,
    config: ModelConfig,
    kept: Sequence[int],
    seeds: Sequence[tuple[np.ndarray, np.ndarray]],
    shift: tuple[int, int],
) -> PCDNet:
    """A model of the kept prototypes in larger frames, and of new ones after them; all else stays as it is."""
    size = None if model.background is None else (model.background.shape[1], model.background.shape[2])
    made = PCDNet(config, size).to(model.masks)
    prototypes = torch.zeros_like(made.prototypes)
    masks = torch.full_like(made.masks, 1 - SURE)
    h, w = model.config.prototype_size
    inner = slice(len(kept)), slice(shift[0], shift[0] + h), slice(shift[1], shift[1] + w)
    prototypes[inner], masks[inner] = model.prototypes[list(kept)], model.masks[list(kept)]
    for n, (prototype, mask) in enumerate(seeds, start=len(kept)):
        prototypes[n] = torch.from_numpy(prototype)
        masks[n] = torch.from_numpy(mask) * (2 * SURE - 1) + (1 - SURE)
    made.looks = model.looks
    made.load_state_dict({**model.state_dict(), "prototypes": prototypes, "masks": masks})
    made.values, made.learned_size = model.values, model.learned_size
    return made.eval()


def _with_room(model: PCDNet, images: UInt8[Pixels, "N H W C"]) -> PCDNet:
    """The model with limits that hold the objects that it finds in some images if they are wider."""
    config = model.config
    roomy = dataclasses.replace(
        config,
        max_objects=max(config.max_objects, min(MOST_OBJECTS, 2 * config.max_objects + 4)),
        peaks_per_prototype=max(config.peaks_per_prototype, MOST_PEAKS),
        restarts=0,
    )
    model.config = roomy
    some = spread(images, -(-len(images) // IMAGES), IMAGES)
    found = model.decompose_all(some, refined=False)
    most = max(map(len, found), default=0)
    alike = max((int(np.bincount(one.prototype_ids).max()) for one in found if len(one)), default=0)
    model.config = dataclasses.replace(
        config,
        max_objects=max(config.max_objects, min(roomy.max_objects, most + 1)),
        peaks_per_prototype=max(config.peaks_per_prototype, min(MOST_PEAKS, int(ROOM * alike) + 1)),
    )
    return model


def _reasons(former: ModelConfig, config: ModelConfig, drawn: int, removed: Sequence[int]) -> list[str]:
    """What was changed, in words."""
    reasons = []
    if drawn:
        reasons.append(f"{drawn} new prototype{'s' * (drawn > 1)} made of what is in the drawn boxes")
    if removed:
        reasons.append(f"without prototype{'s' * (len(removed) > 1)} {', '.join(map(str, removed))}")
    if config.prototype_size != former.prototype_size:
        reasons.append("frames of {}x{}, as the largest thing needs them".format(*config.prototype_size))
    if config.max_objects != former.max_objects:
        reasons.append(f"up to {config.max_objects} objects an image, {former.max_objects} before")
    if config.min_error_reduction != former.min_error_reduction:
        reasons.append(f"an object must reduce the squared error by {config.min_error_reduction:g}, as faint ones do")
    return reasons or ["nothing but more training"]
