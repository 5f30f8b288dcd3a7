"""Initialization: first prototypes taken from the images themselves.

Whatever stands out from the static background falls into blobs, connected pieces of foreground. Most blobs are one
object each, and objects repeat, so the shapes that many blobs resemble are a far better start than the paper's grey
squares: chosen one after the other, each seed is the blob that brings most others near to a seed. Blobs of two objects
that touch, or of one that is cut off, resemble few others and are not chosen. What the model learns from there on
is learned as ever, from the error of its reconstructions.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64, UInt8

from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.network import PCDNet
from pcdnet.training.backdrop import behind_images
from pcdnet.training.foreground import Blob, find_foreground, joined, some_of, strong
from pcdnet.training.reset import COPY_NOISE

NEAR = 0.5
"""From this distance on two blobs are simply different; farther is not worse."""
SUPPORT = 3.0
"""A seed must stand for so many blobs, itself included, that no other seed stands for."""
MOST_BLOBS = 3000
"""Blobs that are compared with each other."""
TOGETHER = 0.8
"""Parts belong together if they do so in this share of the cases."""
FEW_PLACES, RARE_PLACES = 4, 0.02
"""A shape stands at fixed places if they are so few, or so few of its blobs have a place of their own."""
COUNTER_SHAPES = 3
"""So many shapes, one after the other at one place, are a counter's."""
SURE = 1.5
"""Raw mask values lie in [1 - SURE, SURE] at the start: pixels that all blobs agree on withstand the noise on masks."""


@dataclass(frozen=True, slots=True, eq=False)
class Seeds:
    """First prototypes, and the blobs they stand for."""

    prototypes: Float32[np.ndarray, "n h w"]
    """Grey, centred in their frames."""
    masks: Float32[np.ndarray, "n h w"]
    """The share of its blobs that cover each pixel."""
    blobs: list[Blob]
    """The blobs that were compared: whole ones that fit into the frame."""
    kinds: Int64[np.ndarray, "blobs"]
    """Which seed every blob resembles most; -1 where it resembles none."""


@torch.no_grad()
def init_from_images(
    model: PCDNet,
    images: UInt8[np.ndarray, "N H W C"],
    picture: Float32[np.ndarray, "Y X C"] | None,
    seed: int,
    *,
    every_shape: bool = True,
) -> None:
    """Start a model from the images: its background, and as many prototypes as there are shapes to take.

    `picture` is the first background of a model that learns one. Without `every_shape` only what stands out
    most counts.
    """
    if model.background is not None and picture is not None:
        model.background.copy_(torch.from_numpy(picture).permute(2, 0, 1))
    rng, some = np.random.default_rng(seed), some_of(images)
    behind = behind_images(model.config.background, some, picture)
    found = find_foreground(some, behind, model.config.prototype_size)
    count, frame = model.config.num_prototypes, model.config.prototype_size
    if not every_shape:
        seeds = choose_seeds(strong(found.blobs), count, frame, rng)
    else:
        seeds = find_seeds(found.clear(), count, frame, rng)
        if model.ignored is not None:
            model.ignored.copy_(torch.from_numpy(found.clutter))
    n = len(seeds.prototypes)
    model.prototypes[:n] = torch.from_numpy(seeds.prototypes)
    model.masks[:n] = torch.from_numpy(seeds.masks) * (2 * SURE - 1) + (1 - SURE)
    # Where there are fewer shapes than prototypes, the commonest get a second chance to be distinguished.
    counts = np.bincount(seeds.kinds[seeds.kinds >= 0], minlength=n)
    for spare, kind in zip(range(n, len(model.prototypes)), itertools.cycle(np.argsort(-counts)), strict=False):
        for values in (model.prototypes, model.masks):
            noise = rng.uniform(-COPY_NOISE, COPY_NOISE, values.shape[1:]).astype(np.float32)
            values[spare] = values[int(kind)] + torch.from_numpy(noise).to(values)


def find_seeds(blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator) -> Seeds:
    """The seeds of what stands out, when parts that always stand together are one and counters are left out."""
    first = choose_seeds(blobs, 2 * count, frame, rng)
    blobs = without_counters(first, blobs)
    again = choose_seeds(blobs, 2 * count, frame, rng)
    return choose_seeds(join_parts(again, blobs, frame), count, frame, rng)


def without_counters(seeds: Seeds, blobs: list[Blob]) -> list[Blob]:
    """The blobs without those of counters, such as a score or a clock: where one shape after the other is drawn.

    A shape that is seen only at a few places, and at places where several such shapes are seen, is one of a counter's.
    """
    places: dict[int, set[tuple[int, int]]] = {}
    counts: Counter[int] = Counter()
    for blob, kind in zip(seeds.blobs, seeds.kinds.tolist(), strict=True):
        places.setdefault(kind, set()).add((blob.top, blob.left))
        counts[kind] += 1
    fixed = {kind for kind in places if kind >= 0 and len(places[kind]) <= max(FEW_PLACES, RARE_PLACES * counts[kind])}
    shapes = Counter(place for kind in fixed for place in places[kind])
    drawn = {place for place, count in shapes.items() if count >= COUNTER_SHAPES}
    counters = {kind for kind in fixed if places[kind] <= drawn}
    of_counters = {id(blob) for blob, kind in zip(seeds.blobs, seeds.kinds.tolist(), strict=True) if kind in counters}
    return [blob for blob in blobs if id(blob) not in of_counters]


def join_parts(seeds: Seeds, blobs: list[Blob], frame: tuple[int, int]) -> list[Blob]:
    """The blobs with those joined that always stand together: the dot of an i and its stem, the digits of a "50".

    Where a shape nearly always has another beside it at one offset, and the other nearly always stands beside such a
    shape, both are parts of one object.
    """
    kind_of = {id(blob): kind for blob, kind in zip(seeds.blobs, seeds.kinds.tolist(), strict=True) if kind >= 0}
    images: dict[int, list[Blob]] = {}
    for blob in blobs:
        if id(blob) in kind_of:
            images.setdefault(blob.image, []).append(blob)
    counts = Counter(kind_of.values())
    offsets: Counter[tuple[int, int, int, int]] = Counter()
    for together in images.values():
        for one, two, *offset in _neighbours(together, frame):
            offsets[kind_of[id(one)], kind_of[id(two)], *offset] += 1
    bound = {rule: n for rule, n in offsets.items() if n >= TOGETHER * counts[rule[0]] and n >= SUPPORT}
    held: Counter[int] = Counter()
    for (_, part, _, _), n in bound.items():
        held[part] += n
    rules = {rule for rule in bound if held[rule[1]] >= TOGETHER * counts[rule[1]]}
    result = [blob for blob in blobs if id(blob) not in kind_of]
    for together in images.values():
        group = {id(blob): [blob] for blob in together}
        for one, two, *offset in _neighbours(together, frame):
            if (kind_of[id(one)], kind_of[id(two)], *offset) in rules and group[id(one)] is not group[id(two)]:
                both = [*group[id(one)], *group[id(two)]]
                for blob in both:
                    group[id(blob)] = both
        result += [joined(parts) for parts in {id(parts): parts for parts in group.values()}.values()]
    return result


def _neighbours(blobs: list[Blob], frame: tuple[int, int]) -> Iterator[tuple[Blob, Blob, int, int]]:
    """Pairs of blobs of one image that would fit into one frame, with their offset."""
    for one, two in itertools.permutations(blobs, 2):
        bottom = max(one.top + one.mask.shape[0], two.top + two.mask.shape[0]) - min(one.top, two.top)
        right = max(one.left + one.mask.shape[1], two.left + two.mask.shape[1]) - min(one.left, two.left)
        if bottom <= frame[0] and right <= frame[1]:
            yield one, two, two.top - one.top, two.left - one.left


def choose_seeds(blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator) -> Seeds:
    """At most `count` prototypes and masks that most whole blobs resemble, centred in frames of this size."""
    h, w = frame
    whole = [blob for blob in blobs if not blob.cut and blob.mask.shape[0] <= h and blob.mask.shape[1] <= w]
    if not whole:
        raise PcdnetError(
            f"no object of at most {h}x{w} pixels stands out from the background of the images; use ",
            *(Setting("model.prototype_size"), " for larger frames, or ", Setting("train.init", "constant")),
        )
    if len(whole) > MOST_BLOBS:
        sample = [whole[n] for n in np.sort(rng.choice(len(whole), MOST_BLOBS, replace=False))]
    else:
        sample = whole
    features, areas = _features(sample, frame)
    near = np.clip(NEAR - _distances(features, areas, features, areas), 0, None)  # how well one stands for the other
    weight = np.sqrt(areas)  # large objects count for more than specks
    served = np.zeros(len(sample))
    seeds: list[int] = []
    while len(seeds) < min(count, len(sample)):
        gains = (weight[:, None] * np.clip(near - served[:, None], 0, None)).sum(axis=0)
        best = int(gains.argmax())
        if seeds and gains[best] < SUPPORT * NEAR * weight[best]:
            break
        seeds.append(best)
        served = np.maximum(served, near[:, best])
    if sample is not whole:
        chosen, sizes = features[seeds], areas[seeds]
        features, areas = _features(whole, frame)
        near = np.clip(NEAR - _distances(features, areas, chosen, sizes), 0, None)
    else:
        near = near[:, seeds]
    kinds = np.where(near.max(axis=1) > 0, near.argmax(axis=1), -1)
    half = features.shape[1] // 2
    means = np.stack([features[kinds == kind].mean(axis=0) for kind in range(len(seeds))])
    masks, greys = means[:, :half].reshape(-1, h, w), means[:, half:].reshape(-1, h, w)
    return Seeds(greys / np.maximum(masks, 1e-3), masks, whole, kinds)


def _features(
    blobs: list[Blob], frame: tuple[int, int]
) -> tuple[Float32[np.ndarray, "n features"], Float32[np.ndarray, "n"]]:
    """What blobs are compared by, their masks and what these show, centred in a frame; and the areas of the masks."""
    features = np.empty((len(blobs), 2, frame[0] * frame[1]), np.float32)
    for row, blob in zip(features, blobs, strict=True):
        mask, grey = _framed(blob, frame)
        row[0], row[1] = mask.ravel(), (mask * grey).ravel()
    return features.reshape(len(blobs), -1), features[:, 0].sum(axis=1)


def _framed(blob: Blob, frame: tuple[int, int]) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """The blob's mask and grey in the middle of a frame; the grey spans up to 1, since colour will dim it."""
    mask, grey = np.zeros(frame, np.float32), np.zeros(frame, np.float32)
    h, w = blob.mask.shape
    top, left = (frame[0] - h) // 2, (frame[1] - w) // 2
    inside = slice(top, top + h), slice(left, left + w)
    mask[inside] = blob.mask
    max_colour = max(float(np.percentile(blob.grey[blob.mask], 90)), 1e-3)
    grey[inside] = np.clip(blob.grey / max_colour, 0, 1)
    return mask, grey


def _distances(
    one: Float32[np.ndarray, "n features"],
    one_area: Float32[np.ndarray, "n"],
    two: Float32[np.ndarray, "m features"],
    two_area: Float32[np.ndarray, "m"],
) -> Float64[np.ndarray, "n m"]:
    """The squared difference of every two blobs, as a share of their areas together."""
    squares = [np.square(features).sum(axis=1, dtype=np.float64) for features in (one, two)]
    apart = squares[0][:, None] + squares[1][None] - 2 * (one @ two.T).astype(np.float64)
    share: np.ndarray = np.clip(apart, 0, None) / (one_area[:, None] + two_area[None])
    return share
