"""Paying: whether objects are explained by fewer shapes if they may turn, and so on, told by images held out.

Shapes are found among the blobs of one half of the images, as they are and up to several kinds of poses, and the blobs
of the other half say what they are worth: how much of the energy of all blobs is in those that are one of the shapes.
Poses pay if they explain as much with a few of the shapes, or far more. Where every shape that there is comes in one
or two turns only, as among letters and Tetrominoes, they do not.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from pcdnet.config import ModelConfig
from pcdnet.training.aligning import Aligned, align
from pcdnet.training.assembling import join_turned_parts
from pcdnet.training.foreground import Blob
from pcdnet.training.looks import Looks, between_poses
from pcdnet.training.parts import join_parts
from pcdnet.training.shapes import choose_seeds
from pcdnet.training.turned import MOST_BLOBS, STEP, TIGHT, repeated
from pcdnet.training.upright import THERE, harmonics

FEWER = 3.0
"""Poses pay if they explain as much with so many times fewer shapes, at least."""
AS_MUCH, MORE, FAR_MORE = 0.02, 0.1, 0.25
"""How much smaller a share still is as much, how much larger one pays with clearly fewer shapes (`STEP_UP`), and how
much larger one pays with any number: shapes that are seen at all angles are hardly found at all without."""
MOST_OF_IT = 0.5
"""They must explain this share in any case."""
STEP_UP = 1.5
"""More kinds of poses are worth it if they divide the number of shapes by so much, or explain more by a tenth."""
ENOUGH = 6
"""Fewer shapes than this that explain most of what there is are too few to be others turned."""
BUNDLED = 0.5
"""Angles that are bundled more than this, up to quarter turns, are not those of objects that turn freely."""
SIZES_APART, SIZE_STEP = 1.15, 1.3
"""Ratio of the largest and smallest size from which on sizes differ, and of two that are tried."""
WIDEST = 1 / 4
"""The smallest size that is considered, as a share of the largest."""
STILL, QUARTERS = ModelConfig(), ModelConfig(rotations=4, fine_poses=False)
"""No poses, and the kinds that are tried, each of which includes the one before; mirror images come on top."""
ANGLES = ModelConfig(rotations=24)
SIZES = dataclasses.replace(ANGLES, scales=2, scale_range=(WIDEST, 1.0))


@dataclass(frozen=True, slots=True)
class Worth:
    """What shapes of one half of the images are worth to the other."""

    config: ModelConfig
    """Up to which poses they were found."""
    shapes: int
    """How many they are."""
    share: float
    """How much of the blobs' energy in the other half is in blobs that are one of them."""
    turns: bool
    """Whether blobs of one shape lie at all angles, and not just at a few."""
    ratio: float
    """The largest size of a shape's blobs divided by the smallest."""


@dataclass(frozen=True, slots=True)
class Paid:
    """Poses that pay, and what for."""

    config: ModelConfig
    """The configuration with the poses."""
    reason: str
    """In words, with figures."""


def poses_that_pay(blobs: list[Blob], count: int, largest: tuple[int, int], rng: np.random.Generator) -> Paid | None:
    """The fewest kinds of poses that pay among whole blobs no larger than `largest`; None where none do."""
    whole = _some_images([blob for blob in blobs if blob.fits(largest)], rng)
    if len({blob.image % 2 for blob in whole}) < 2:
        return None
    still = worth(join_parts(choose_seeds(whole, count, largest, rng), whole, largest), count, STILL)
    if still.shapes < ENOUGH and still.share >= 1 - 2 * AS_MUCH:
        return None
    best, objects = None, whole
    for more in (QUARTERS, ANGLES, SIZES):
        joined = join_turned_parts(whole, count, largest, rng, more)
        tried = worth(joined, count, more)
        if _pays(tried, still) and (best is None or _worth_it(tried, best)):
            best, objects = tried, joined
    if best is None:
        return None
    mirrored = worth(objects, count, dataclasses.replace(best.config, mirror=True))
    if mirrored.shapes * STEP_UP <= best.shapes and mirrored.share >= best.share - AS_MUCH:
        best = mirrored
    return Paid(_with_sizes(best), _reason(best, still))


def _some_images(blobs: list[Blob], rng: np.random.Generator) -> list[Blob]:
    """All blobs of so many images that they are about as many as can be compared: parts stay together."""
    images, counts = np.unique([blob.image for blob in blobs], return_counts=True)
    order = rng.permutation(len(images))
    kept = np.cumsum(counts[order]) <= max(MOST_BLOBS, counts.max(initial=0))
    chosen = set(images[order[kept]].tolist())
    return [blob for blob in blobs if blob.image in chosen]


def worth(blobs: list[Blob], count: int, config: ModelConfig) -> Worth:
    """What the shapes of the blobs in every second image, up to the poses of a model, are worth to the others."""
    looks, first = Looks.of(blobs, config), np.array([blob.image % 2 == 0 for blob in blobs])
    shapes = repeated(looks.some(first), count, config)
    rest = looks.some(~first)
    found = align(rest, shapes, between_poses(config, STEP), TIGHT)
    energy = np.array([blob.energy for blob in blobs])[~first]
    told = np.array([bool((np.abs(harmonics(shape[0].numpy())) >= THERE).any()) for shape in shapes])
    turns = _turn(found, energy, told)
    return Worth(
        config,
        len(shapes),
        float(energy[found.kinds >= 0].sum() / energy.sum()),
        turns,
        _ratio(found, rest.units) if config.scales > 1 else 1.0,
    )


def _pays(tried: Worth, still: Worth) -> bool:
    """Whether poses are worth more than none."""
    if tried.share < MOST_OF_IT or (tried.config.fine_poses and not tried.turns):
        return False
    fewer = tried.shapes * FEWER <= still.shapes and tried.share >= still.share - AS_MUCH
    both = tried.shapes * STEP_UP <= still.shapes and tried.share >= still.share + MORE
    more = tried.share >= still.share + FAR_MORE
    return fewer or both or (more and tried.config.fine_poses)


def _worth_it(tried: Worth, best: Worth) -> bool:
    """Whether more kinds of poses are worth it."""
    if tried.config.scales > 1 and tried.ratio < SIZES_APART:
        return False
    fewer = tried.shapes * STEP_UP <= best.shapes and tried.share >= best.share - AS_MUCH
    return fewer or (tried.shapes <= best.shapes and tried.share >= best.share + MORE)


def _turn(found: Aligned, energy: Float64[np.ndarray, "n"], told: Bool[np.ndarray, "shapes"]) -> bool:
    """Whether most blobs are of shapes that are not round, and lie at all angles, up to quarter turns."""
    known = (found.kinds >= 0) & np.append(told, False)[found.kinds]
    if energy[known].sum() < energy[found.kinds >= 0].sum() / 2 or not known.any():
        return False
    quarters, kinds = np.exp(4j * np.radians(found.angles)), found.kinds
    bundled = sum(abs((quarters * energy)[known & (kinds == kind)].sum()) for kind in np.unique(kinds[known]))
    return bool(bundled < BUNDLED * energy[known].sum())


def _ratio(found: Aligned, units: Float64[np.ndarray, "n"]) -> float:
    """The ratio of the sizes of all blobs of a shape but the smallest and largest few, of the typical shape."""
    kinds, counts = np.unique(found.kinds[found.kinds >= 0], return_counts=True)
    some = kinds[counts >= counts.max(initial=1) / 4]
    ends = [np.quantile(units[found.kinds == kind], (0.02, 0.98)) for kind in some]
    return float(np.median([large / small for small, large in ends])) if ends else 1.0


def _with_sizes(best: Worth) -> ModelConfig:
    """The configuration with as many sizes as the blobs have."""
    if best.config.scales == 1:
        return best.config
    smallest = float(f"{max(WIDEST, 0.97 / best.ratio):.2g}")
    scales = max(2, math.ceil(-math.log(smallest) / math.log(SIZE_STEP)) + 1)
    return dataclasses.replace(best.config, scales=scales, scale_range=(smallest, 1.0))


def _reason(best: Worth, still: Worth) -> str:
    """Why these poses, in words."""
    how = "at any angle" if best.config.fine_poses else "in 4 turns"
    how += " and in any size" if best.config.scales > 1 else ""
    how += ", mirrored too," if best.config.mirror else ""
    return (
        f"{best.shapes} shapes {how} explain {best.share:.0%} of what stands out in images held out, "
        f"and {still.shapes} upright ones {still.share:.0%}"
    )
