"""Diagnosis: what a model makes of images, in figures that need no ground truth.

What stands out is what differs from the bare background by more than the noise. The noise is read from neighbouring
pixels, not from the distance to the background: where the background is wrong everywhere, that is no noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64, UInt8
from scipy import ndimage

from pcdnet.decomposition import Decomposition
from pcdnet.model.background.flicker import steady
from pcdnet.model.network import CHUNK, PCDNet
from pcdnet.pixels import Pixels, spread
from pcdnet.training.foreground import LEAST_CONTRAST, NOISE_FACTOR, standing_pieces
from pcdnet.training.twins import Twins

MOST_IMAGES = 200
"""Images that are looked at; more hardly change a share."""
REPEATED = 48
"""Images that are decomposed a second time, with noise."""
OPAQUE, CORE = 0.5, 1 / 3
"""A prototype has a shape if a piece of at least this opacity is this share of its mask; of a blurred spot, half is."""
NEAR = 0.1
"""An object is found again if it moved by at most this share of its frame's sides, and by a pixel in any case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What was measured; shares are of 0 to 1."""

    images: int
    """Images that were decomposed."""
    stands_out: float
    """Share of the pixels that stand out from the bare background."""
    explained: float
    """Share of the squared error of what stands out that the objects remove."""
    unexplained_background: float
    """Share of the pixels that no object covers, and that stand out all the same."""
    left_in_large_pieces: float
    """Share of the squared error left over that is in pieces larger than the frame of a prototype."""
    bare_error: float
    """Mean squared error of the bare background, per pixel and channel."""
    error: float
    """The same with the objects."""
    objects: float
    """Mean number of objects in an image."""
    at_limit: float
    """Share of the images with as many objects as there may be."""
    limited: float
    """The same, but only where enough is left over for another object."""
    overlooked: float
    """Share of the images in which something stands out, and no object was found."""
    repeated: float
    """Share of the objects that are found again if as much noise is added as there is; 1 where there are none."""
    prototypes: int
    """Prototypes in the bank."""
    in_use: int
    """Prototypes of which there is an object."""
    shapeless: tuple[int, ...]
    """Those of them whose mask has no solid core."""
    of_shapeless: float
    """Share of the objects that are of these."""
    alike: tuple[tuple[int, int], ...]
    """Pairs of those in use that stand for one kind of object, either as well as the other."""
    unused: tuple[int, ...] = ()
    """Prototypes of which there is no object."""
    fixtures: tuple[tuple[int, int, int, int], ...] = ()
    """Top, left, height and width of the places where nothing is looked for: counters, clutter, what is ignored."""


class _Measured(NamedTuple):
    """What is counted and summed up of one image; energies are squared errors."""

    noise: float
    pixels: int
    standing: int
    uncovered: int
    uncovered_standing: int
    bare: float
    left: float
    bare_standing: float
    left_standing: float
    left_large: float
    objects: int


def diagnose(model: PCDNet, images: UInt8[Pixels, "N H W C"]) -> Figures:
    """Decompose some of the images, evenly spread over all, and measure how well the objects explain them.

    Selection is plain greedy: where it is good, refinement changes little, and where it is bad, it takes long.
    """
    some_images = spread(images, -(-len(images) // MOST_IMAGES))
    twice, rng = -(-len(some_images) // REPEATED), np.random.default_rng(0)
    measured: list[_Measured] = []
    used, tried, again = np.zeros(model.config.num_prototypes, np.int64), 0, 0
    twins = Twins(model)
    for start in range(0, len(some_images), CHUNK):
        chunk = some_images[start : start + CHUNK].astype(np.float32) / 255
        found = model.decompose_all(chunk, refined=False)
        measured += [_measure(model, *pair) for pair in zip(chunk, found, strict=True)]
        twins.add(chunk, found)
        used += np.bincount(np.concatenate([image.prototype_ids for image in found]), minlength=len(used))
        some = slice(-start % twice, None, twice)
        noise = np.array([image.noise for image in measured[start:]], np.float32)[some]
        noisy = chunk[some] + noise[:, None, None, None] * rng.standard_normal(chunk[some].shape, np.float32)
        tried += sum(map(len, found[some]))
        again += _found_again(model, found[some], noisy.clip(0, 1))
    return _figures(measured, used, again / tried if tried else 1.0, twins.pairs(), model)


def bare_background(
    model: PCDNet, image: Float32[np.ndarray, "H W C"], found: Decomposition
) -> Float32[np.ndarray, "H W C"]:
    """What the model would paint of an image if it had found nothing in it."""
    H, W, C = image.shape
    nothing = Decomposition.from_dict({"size": [H, W], "objects": []}, channels=C)
    return model.recompose(dataclasses.replace(nothing, background=found.background), image).reconstruction


def fixtures(model: PCDNet) -> tuple[tuple[int, int, int, int], ...]:
    """Top, left, height and width of the places where nothing is looked for."""
    if model.ignored is None:
        return ()
    pieces, _ = ndimage.label(model.ignored.cpu().numpy(), structure=np.ones((3, 3)))
    boxes = ndimage.find_objects(pieces)
    return tuple((r.start, c.start, r.stop - r.start, c.stop - c.start) for r, c in boxes)


def noise_of(difference: Float32[np.ndarray, "H W C"]) -> float:
    """The standard deviation of the noise, from neighbouring pixels.

    It is at least so large that differences of LEAST_CONTRAST stand out.
    """
    steps = np.concatenate([np.abs(np.diff(difference, axis=axis)).ravel() for axis in (0, 1)])
    typical = float(np.median(steps)) if len(steps) else 0.0
    return max(1.4826 / 2**0.5 * typical, LEAST_CONTRAST / NOISE_FACTOR)


def has_core(mask: Float[np.ndarray, "h w"]) -> bool:
    """Whether a solid piece is a fair part of a mask; masks that are not learned yet are grey, or specks.

    Here corners do not connect: at random, half of the pixels would then be one piece.
    """
    pieces, _ = ndimage.label(mask > OPAQUE)
    weights = np.bincount(pieces.ravel(), weights=mask.ravel(), minlength=2)[1:]
    return bool(weights.max() > CORE * mask.sum())


def _steadied(model: PCDNet, image: Float32[np.ndarray, "H W C"]) -> Float32[np.ndarray, "H W C"]:
    """The image with one look of a background that has several."""
    batch = torch.from_numpy(image).permute(2, 0, 1)[None].to(model.masks.device)
    assert model.looks is not None
    assert model.background is not None
    steadied = steady(batch, model.looks, model.background.detach().clamp(0, 1))
    result: np.ndarray = steadied[0].permute(1, 2, 0).cpu().numpy()
    return result


def _measure(model: PCDNet, image: Float32[np.ndarray, "H W C"], found: Decomposition) -> _Measured:
    behind = bare_background(model, image, found)
    if model.looks is not None:
        image = _steadied(model, image)
    noise = noise_of(image - behind)
    outside = (standing_pieces(image - behind, NOISE_FACTOR * noise) > 0) & (found.instances == 0)
    if model.ignored is not None:  # nothing is looked for there, but that it had to be ignored counts
        image = np.where(model.ignored.cpu().numpy()[..., None], behind, image)
    bare, left = image - behind, image - found.reconstruction
    standing = standing_pieces(bare, NOISE_FACTOR * noise) > 0
    pieces = standing_pieces(left, NOISE_FACTOR * noise)
    bare_error, left_error = np.square(bare).sum(axis=-1), np.square(left).sum(axis=-1)
    h, w = model.config.prototype_size
    sides = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in ndimage.find_objects(pieces)]
    large = np.array([False, *(height > h or width > w for height, width in sides)])
    return _Measured(
        noise=noise,
        pixels=standing.size,
        standing=int(standing.sum()),
        uncovered=int((found.instances == 0).sum()),
        uncovered_standing=int(outside.sum()),
        bare=float(bare_error.sum()),
        left=float(left_error.sum()),
        bare_standing=float(bare_error[standing].sum()),
        left_standing=float(left_error[pieces > 0].sum()),
        left_large=float(left_error[large[pieces]].sum()),
        objects=len(found),
    )


def _found_again(model: PCDNet, before: Sequence[Decomposition], noisy: Float32[np.ndarray, "n H W C"]) -> int:
    """How many objects of images are found in noisy ones too, of the same prototype and in the same place."""
    if len(noisy) == 0:
        return 0
    reach, count = np.maximum(1, NEAR * np.array(model.config.prototype_size)), 0
    for one, two in zip(before, model.decompose_all(noisy, refined=False), strict=True):
        near = (np.abs(one.positions[:, None] - two.positions[None]) <= reach).all(axis=-1)
        count += int((near & (one.prototype_ids[:, None] == two.prototype_ids[None])).any(axis=1).sum())
    return count


def _figures(
    measured: list[_Measured],
    used: Int64[np.ndarray, "P"],
    repeated: float,
    twins: list[tuple[int, int]],
    model: PCDNet,
) -> Figures:
    table = np.array(measured)
    total, each = _Measured(*table.sum(axis=0)), _Measured(*table.T)
    limit, counts = model.config.max_objects, model.config.min_error_reduction
    masks = model.bank().masks.detach().float().cpu().numpy()
    shapeless = [p for p in np.flatnonzero(used).tolist() if not has_core(masks[p])]
    figures = {
        "stands_out": total.standing / total.pixels,
        "explained": 1 - total.left_standing / max(total.bare_standing, total.left_standing, 1e-9),
        "unexplained_background": total.uncovered_standing / max(total.uncovered, 1),
        "left_in_large_pieces": total.left_large / max(total.left_standing, 1e-9),
        "bare_error": total.bare / (total.pixels * model.config.channels),
        "error": total.left / (total.pixels * model.config.channels),
        "objects": total.objects / len(measured),
        "at_limit": np.mean(each.objects >= limit),
        "limited": np.mean((each.objects >= limit) & (each.left_standing >= counts)),
        "overlooked": np.mean((each.objects == 0) & (each.bare_standing >= counts)),
        "repeated": repeated,
        "of_shapeless": used[shapeless].sum() / max(used.sum(), 1),
    }
    return Figures(
        images=len(measured),
        prototypes=len(used),
        in_use=int((used > 0).sum()),
        shapeless=tuple(shapeless),
        alike=tuple(twins),
        unused=tuple(np.flatnonzero(used == 0).tolist()),
        fixtures=fixtures(model),
        **{name: float(value) for name, value in figures.items()},
    )
