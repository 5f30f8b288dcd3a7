"""Automatic: a configuration read off the images, for data that nobody made a preset for.

What stands out from the background falls into blobs (see `initialization`), and the blobs tell what a model of them
needs: how large the things are, how many kinds there are, how many are in an image, and how much error the smallest
removes.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, UInt8

from pcdnet.config import Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.errors import PcdnetError
from pcdnet.model.background.plain import Surface
from pcdnet.model.refinement import MAX_DOUBTFUL_TO_RESTART
from pcdnet.pixels import Pixels
from pcdnet.progress import phase
from pcdnet.training.assembling import join_turned_parts
from pcdnet.training.backdrop import behind_images, choose_background, plain_surfaces
from pcdnet.training.flicker import find_steady_foreground
from pcdnet.training.foreground import largest_objects, some_of
from pcdnet.training.initialization import MOST_SHAPES, Start, find_start
from pcdnet.training.paying import Paid, poses_that_pay
from pcdnet.training.shapes import Seeds, agreed
from pcdnet.training.standing import first_background
from pcdnet.training.turned import choose_posed_seeds

MARGIN = 2
"""Pixels between the largest thing and its frame, on every side."""
COMMON = 0.005
"""A shape that fewer than this share of the blobs resemble does not decide how large frames are."""
ROOM = 1.25
"""Images may hold so many times the objects that were seen in one."""
MOST_OBJECTS, MOST_PEAKS = 64, 20
"""Limits beyond which search takes too long; images with more objects are cut into tiles."""
TILE_OBJECTS, TILE_FRAMES = 40, 3
"""Tiles hold about so many objects, and have at least so many times the side of a frame."""
OVERHANG = 0.95
"""Share of a frame that may leave images of a still background. It is known up to the border, so that even a stripe is
a thing that is cut off, and its own prototype must be able to explain it."""
STRONGEST = 3.0
"""Largest colour factor: a prototype whose brightest detail is white may be dark elsewhere, and its objects bright."""
LEAST_GAIN = 0.25
"""An object must remove at least this share of the error that the faintest kind of blob causes."""
PALEST = 0.02
"""Share of the blobs that may be paler than half of the palest objects must be."""
RESTARTS = 3
"""Restarts of refinement where images hold few enough objects for them."""
IMAGES = 1600
"""How many images training looks at."""
BATCH_PIXELS = 160_000
"""Pixels in a batch of images, about."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration, and why."""

    config: Config
    """What was chosen."""
    reasons: tuple[str, ...]
    """What was seen in the images, in words."""
    tiles: int | None = None
    """The side of tiles to cut the images into and to look at instead, where whole ones hold too many objects."""
    picture: Float32[np.ndarray, "H W C"] | None = field(default=None, compare=False, repr=False)
    """The still background of the images, without things that stand there."""
    surfaces: Sequence[Surface] | None = field(default=None, compare=False, repr=False)
    """Or the plain surfaces of those that were looked at."""


def choose(images: UInt8[Pixels, "N H W C"], seed: int, *, tiles: bool = False) -> Choice:
    """Look the images over and choose everything that a preset would say."""
    N, H, W, C = images.shape
    largest = largest_objects((H, W))
    with phase("finding the background"):
        some = some_of(images)
        backdrop = choose_background(some, largest, tiles=tiles)
        picture = backdrop.picture
        if picture is None:
            picture = first_background(backdrop.kind, some, largest)
    with phase("finding what stands out from it"):
        surfaces = tuple(plain_surfaces(some)) if backdrop.kind == "plain" else None
        behind = behind_images(backdrop.kind, some, picture, surfaces)
        found, _ = find_steady_foreground(backdrop.kind, some, behind, largest)
    with phase("comparing the shapes that stand out"):
        start = find_start(found, MOST_SHAPES, largest, np.random.default_rng(seed), still=backdrop.kind == "still")
        start, paid = _posed(start, largest, seed)
    seeds, blobs = start.seeds, start.blobs
    frame = _frame(seeds, largest)
    per_image = np.bincount([blob.image for blob in blobs], minlength=len(some))
    most = int(per_image.max())
    alike = _most_alike(seeds)
    energy = _least_energy(seeds)
    model = dataclasses.replace(
        ModelConfig() if paid is None else paid.config,
        num_prototypes=len(seeds.prototypes),
        prototype_size=frame,
        max_objects=min(MOST_OBJECTS, math.ceil(ROOM * most) + 1),
        peaks_per_prototype=min(MOST_PEAKS, math.ceil(ROOM * max(alike, most / 3)) + 4),
        channels=C,
        background=backdrop.kind,
        localization="error_reduction",
        restarts=RESTARTS if most <= MAX_DOUBTFUL_TO_RESTART else 0,
        rounds=2,
        overhang=OVERHANG if backdrop.kind == "still" else ModelConfig().overhang,
        min_error_reduction=float(f"{energy:.2g}"),
        max_colour=STRONGEST,
        min_visible=0.5,
        min_solid=0.4,
    )
    batch = max(1, min(32, BATCH_PIXELS // (H * W), N))
    steps = max(200, min(1000, IMAGES // batch))
    usual = TrainConfig(init="shapes", learning_rate=0.005, noise_steps=0, mask_noise=0.3, settle=True)
    train = dataclasses.replace(usual, steps=steps, batch=batch, validate_every=max(1, steps // 4), seed=seed)
    reasons = (
        f"{N:,} {'tiles' if tiles else 'images'} of {H}x{W} in {'colour' if C == 3 else 'grey'}",
        backdrop.reason,
        f"{len(blobs) / max(1, len({blob.image for blob in blobs})):.1f} things stand out in an image, at most {most}",
        f"they look like {len(seeds.prototypes)} shapes, the largest in frames of {frame[0]}x{frame[1]}",
        *(() if paid is None else (paid.reason,)),
        f"an object must reduce the squared error by {model.min_error_reduction:g}, as the faintest and palest do",
        *_borders(start),
    )
    side = None if tiles or backdrop.kind in ("still", "moving") else _side_of_tiles((H, W), frame, most)
    config = Config(model=model, loss=LossConfig(tv=0.01), train=train)
    # Of a moving camera, training also looks at the images for validation.
    return Choice(config, reasons, side, picture if backdrop.kind == "still" else None, surfaces)


def _posed(start: Start, largest: tuple[int, int], seed: int) -> tuple[Start, Paid | None]:
    """The start with shapes that stand for all their poses, and these poses, where images held out pay for them."""
    rng = np.random.default_rng(seed)
    paid = poses_that_pay(start.blobs, MOST_SHAPES, largest, rng)
    if paid is None:
        return start, None
    blobs = join_turned_parts(start.blobs, MOST_SHAPES, largest, rng, paid.config)
    seeds = agreed(choose_posed_seeds(blobs, MOST_SHAPES, largest, rng, paid.config), soft=True)
    return dataclasses.replace(start, seeds=seeds, blobs=blobs), paid


def _side_of_tiles(size: tuple[int, int], frame: tuple[int, int], most: int) -> int | None:
    """The side of tiles with few enough objects, for images that hold up to `most`; None where they may stay whole."""
    if ROOM * most <= MOST_OBJECTS:
        return None
    side = max(int((TILE_OBJECTS / most * size[0] * size[1]) ** 0.5), TILE_FRAMES * max(frame))
    return side if side < min(size) else None


def _borders(start: Start) -> Iterator[str]:
    """What was seen of bars and panels that hide things, in words."""
    if start.field is not None:
        top, left, height, width = dataclasses.astuple(start.field)
        yield f"things are cut off around {height}x{width} pixels at row {top}, column {left}, and looked for in there"
    for what, across in (("rows", start.hidden.all(axis=1)), ("columns", start.hidden.all(axis=0))):
        if across.any():
            yield f"{what} {', '.join(map(str, np.flatnonzero(across)))} hide what passes behind them"


def _frame(seeds: Seeds, largest: tuple[int, int]) -> tuple[int, int]:
    """Height and width that hold every common shape, with a margin."""
    counts = np.bincount(seeds.kinds[seeds.kinds >= 0], minlength=len(seeds.prototypes))
    common = counts >= COMMON * counts.sum()
    masks = seeds.masks[common] > 0.5
    if not masks.any():
        raise PcdnetError("nothing stands out in the images again and again; choose a preset or give more images")
    rows, columns = masks.any(axis=2).sum(axis=1).max(), masks.any(axis=1).sum(axis=1).max()
    return min(int(rows) + 2 * MARGIN, largest[0]), min(int(columns) + 2 * MARGIN, largest[1])


def _least_energy(seeds: Seeds) -> float:
    """How much an object must reduce the error: a quarter of what the faintest shape typically does, or less where some
    objects are paler still, half of which may be hidden."""
    energies, known = np.array([blob.energy for blob in seeds.blobs]), seeds.kinds >= 0
    faintest = min(float(np.median(energies[seeds.kinds == kind])) for kind in range(len(seeds.prototypes)))
    return min(LEAST_GAIN * faintest, float(np.quantile(energies[known], PALEST)) / 2)


def _most_alike(seeds: Seeds) -> int:
    """The largest number of blobs of one shape in one image."""
    pairs = Counter((blob.image, kind) for blob, kind in zip(seeds.blobs, seeds.kinds.tolist(), strict=True))
    return max(pairs.values())
