"""Initialization: first prototypes taken from the images themselves.

Whatever stands out from the background falls into blobs. Most blobs are one object each, and objects repeat, so the
shapes that many blobs resemble are a far better start than the paper's grey squares. What the model learns from there
on is learned as ever, from the error of its reconstructions.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32, UInt8

from pcdnet.config import ModelConfig
from pcdnet.model.background.plain import Surface
from pcdnet.model.field import Field
from pcdnet.model.network import PCDNet
from pcdnet.pixels import Pixels
from pcdnet.training.assembling import join_turned_parts
from pcdnet.training.backdrop import behind_images
from pcdnet.training.borders import at_borders, beside_bars, find_bars, find_field
from pcdnet.training.fixtures import counters
from pcdnet.training.flicker import find_steady_foreground
from pcdnet.training.foreground import Blob, Foreground, find_foreground, largest_objects, some_of, strong
from pcdnet.training.parts import join_parts
from pcdnet.training.reset import COPY_NOISE
from pcdnet.training.shapes import Seeds, agreed, choose_seeds
from pcdnet.training.turned import choose_posed_seeds, posed_size

MOST_SHAPES = 60
"""Kinds of shapes that are distinguished, at least: what is drawn in counters, and what is joined, does not depend on
how many prototypes there are to be."""
SURE = 1.5
"""Raw mask values lie in [1 - SURE, SURE] at the start: pixels that all blobs agree on withstand the noise on masks."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What a bank starts from."""

    seeds: Seeds
    """The shapes that repeat, parts joined."""
    blobs: list[Blob]
    """The blobs that may be objects."""
    ignored: Bool[np.ndarray, "H W"]
    """Where nothing is looked for: in clutter, and where counters are drawn."""
    field: Field | None
    """The part of the images in which things are seen; None stands for all of it."""
    hidden: Bool[np.ndarray, "H W"]
    """Where bars hide them in it."""


def find_start(
    found: Foreground,
    count: int,
    largest: tuple[int, int],
    rng: np.random.Generator,
    frame: tuple[int, int] | None = None,
    *,
    still: bool = False,
    config: ModelConfig | None = None,
) -> Start:
    """At most `count` shapes among what stands out, without counters, and with parts that belong together joined.

    What is drawn in counters has at most the size `largest`; seeds have frames of that size, or of a smaller one. Where
    the camera is `still`, bars and panels may hide things. Of a model with poses, `config`, seeds stand for all
    poses of a shape.
    """
    clear, frame, many = found.clear(), frame or largest, 2 * max(count, MOST_SHAPES)
    posed = frame if config is None else posed_size(config, frame)
    fixed = counters(choose_seeds(clear, many, largest, rng), found.clutter.shape)
    blobs = [blob for blob in clear if not blob.inside(fixed)]
    if not any(blob.fits(posed) for blob in blobs):  # then the counters are all that there is
        blobs, fixed = clear, np.zeros_like(fixed)
    field, hidden = None, np.zeros_like(fixed)
    if still:
        field, hidden = find_field(blobs, (fixed.shape[0], fixed.shape[1])), find_bars(blobs, fixed.shape, frame)
        blobs = beside_bars(at_borders(blobs, field), hidden)
    if config is None or config.poses == 1:
        joined_blobs = join_parts(choose_seeds(blobs, many, posed, rng), blobs, posed)
    else:
        joined_blobs = join_turned_parts(blobs, many, frame, rng, config)
    seeds = choose_any_seeds(joined_blobs, count, frame, rng, config)
    seeds = agreed(seeds, soft=config is not None and config.poses > 1)
    return Start(seeds, blobs, found.clutter | fixed, field, hidden)


def choose_any_seeds(
    blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator, config: ModelConfig | None
) -> Seeds:
    """Seeds as a model of this configuration wants them: for shapes as they are, or for all poses of a shape."""
    if config is None or config.poses == 1:
        return choose_seeds(blobs, count, frame, rng)
    return choose_posed_seeds(blobs, count, frame, rng, config)


@torch.no_grad()
def init_from_images(
    model: PCDNet,
    images: UInt8[Pixels, "N H W C"],
    picture: Float32[np.ndarray, "Y X C"] | None,
    seed: int,
    *,
    every_shape: bool = True,
    surfaces: Sequence[Surface] | None = None,
) -> None:
    """Start a model from the images: its background, and as many prototypes as there are shapes to take.

    `picture` is the first background of a model that learns one, and `surfaces` are the plain ones of `some_of` the
    images, if they are known already. Without `every_shape` only what stands out
    most counts.
    """
    if model.background is not None and picture is not None:
        model.background.copy_(torch.from_numpy(picture).permute(2, 0, 1))
    rng, some = np.random.default_rng(seed), some_of(images)
    behind = behind_images(model.config.background, some, picture, surfaces)
    count, frame = model.config.num_prototypes, model.config.prototype_size
    if not every_shape:
        largest = posed_size(model.config)
        strongest = strong(find_foreground(some, behind, largest).blobs)
        seeds = choose_any_seeds(strongest, count, frame, rng, model.config)
    else:
        H, W = some.shape[1:3]
        (height, width), (y, x) = largest_objects((H, W)), posed_size(model.config)
        largest = max(height, y), max(width, x)
        found, looks = find_steady_foreground(model.config.background, some, behind, largest)
        start = find_start(
            found, count, largest, rng, frame, still=model.config.background == "still", config=model.config
        )
        seeds = start.seeds
        model.looks = None if looks is None else torch.from_numpy(looks).permute(0, 3, 1, 2).to(model.masks.device)
        if model.ignored is not None:
            model.ignored.copy_(torch.from_numpy(start.ignored))
        if model.hidden is not None:
            model.hidden.copy_(torch.from_numpy(start.hidden))
        if model.seen_in is not None and start.field is not None and start.field.holds(frame):
            model.seen_in.copy_(torch.tensor(dataclasses.astuple(start.field)))
    n = len(seeds.prototypes)
    model.prototypes[:n] = torch.from_numpy(seeds.prototypes)
    model.masks[:n] = torch.from_numpy(seeds.masks) * (2 * SURE - 1) + (1 - SURE)
    # Where there are fewer shapes than prototypes, the commonest get a second chance to be distinguished.
    counts = np.bincount(seeds.kinds[seeds.kinds >= 0], minlength=n)
    for spare, kind in zip(range(n, len(model.prototypes)), itertools.cycle(np.argsort(-counts)), strict=False):
        for values in (model.prototypes, model.masks):
            noise = rng.uniform(-COPY_NOISE, COPY_NOISE, values.shape[1:]).astype(np.float32)
            values[spare] = values[int(kind)] + torch.from_numpy(noise).to(values)
