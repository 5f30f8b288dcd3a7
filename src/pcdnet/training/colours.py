"""Colours: the few distinct colours that the objects of a prototype come in, if they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, UInt8

from pcdnet.colours import SEEN, comparable
from pcdnet.decomposition import Decomposition
from pcdnet.model.network import PCDNet
from pcdnet.names import STRONGEST, Colour, Names
from pcdnet.pixels import Pixels
from pcdnet.progress import phase

LEAST_IMAGES, MOST_IMAGES, PIXELS = 200, 1000, 2**22
"""Images whose objects are looked at: as many as have so many pixels together, within these bounds."""
MOST_OBJECTS = 1000
"""Objects of a prototype that are compared, at most: every two of them are."""
FEW = 6
"""Distinct colours of a prototype at most; more are rather a continuum."""
APART = 4.0
"""Distinct colours are so many times farther from each other than their objects are from them."""
NEARLY_ALL = 0.95
"""Share of the objects that must be of one of the distinct colours."""
LEAST_MEMBERS, LEAST_SHARE = 3, 0.02
"""Objects that make a colour at least, and their share of all."""
VISIBLE = 0.5
"""Objects of which less is seen than this share of the usual pixels are left out: others colour what they hide."""


def with_colours(model: PCDNet, images: UInt8[Pixels, "n H W C"], names: Names) -> Names:
    """The names with the distinct colours of the model's objects in some of the images; any earlier ones are gone."""
    if model.config.colour == "none":
        return replace(names, colours={})
    chosen = np.linspace(0, len(images) - 1, looked_at(images)).astype(int)
    found = model.decompose_all((images[n] for n in chosen), refined=False)
    with phase("reading the colours of objects"):
        return replace(names, colours=distinct_colours(found, names))


def looked_at(images: UInt8[Pixels, "n H W C"]) -> int:
    """How many of the images are decomposed for their colours."""
    return min(len(images), MOST_IMAGES, max(LEAST_IMAGES, PIXELS // (images.shape[1] * images.shape[2])))


def distinct_colours(found: Iterable[Decomposition], names: Names) -> dict[int, tuple[Colour, ...]]:
    """The colours of those prototypes whose objects come in a few that are far apart.

    Prototypes of one name are looked at together, and have the same colours.

    Parameters
    ----------
    found
        Decomposed images, of which few are held at a time.
    names
        What the prototypes are called.

    Returns
    -------
    dict
        Two to six colours in order, by prototype. A prototype in one colour, or in all shades between some, has none.

    Examples
    --------
    >>> things = [{"prototype": 0, "position": [0, 0], "colour": colour} for colour in ([1.0, 0, 0], [0, 0, 1.0])]
    >>> found = [Decomposition.from_dict({"size": [8, 8], "objects": things})] * 9
    >>> distinct_colours(found, Names(count=2))
    {0: ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))}
    """
    parts = [
        (names.first[one.prototype_ids], one.colours, np.bincount(one.instances.ravel(), minlength=len(one) + 1)[1:])
        for one in found
    ]
    if not parts:
        return {}
    firsts, colours, pixels = map(np.concatenate, zip(*parts, strict=True))
    distinct: dict[int, tuple[Colour, ...]] = {}
    for first in np.unique(firsts):
        own = firsts == first
        own &= pixels >= VISIBLE * np.median(pixels[own])
        middles = clusters(colours[own])
        if middles:
            distinct |= dict.fromkeys(np.flatnonzero(names.first == first).tolist(), middles)
    return distinct


def clusters(colours: Float[np.ndarray, "n C"]) -> tuple[Colour, ...]:
    """The middles of the clusters that colours fall into; none if they do not fall into a few that are far apart.

    Clusters are balls of one radius. It begins where two balls just differ for the eye, and grows until the balls hold
    nearly all colours; a continuum never does, since what lies between two balls belongs to none.
    """
    count = min(len(colours), MOST_OBJECTS)
    colours = (
        colours[np.linspace(0, len(colours) - 1, count).astype(int)].astype(np.float64).clip(-STRONGEST, STRONGEST)
    )
    points = comparable(colours)
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    radius = SEEN / APART
    while APART * radius < distance.max(initial=0.0):
        balls = _balls(distance, radius)
        if 2 <= len(balls) <= FEW and sum(ball.sum() for ball in balls) >= NEARLY_ALL * count:
            return tuple(sorted(tuple(np.median(colours[ball], axis=0).round(3).tolist()) for ball in balls))
        radius *= np.sqrt(2)
    return ()


def _balls(distance: Float[np.ndarray, "n n"], radius: float) -> list[Bool[np.ndarray, "n"]]:
    """The members of the densest balls, fullest first, until what is left makes no cluster."""
    near, left = distance <= radius, np.ones(len(distance), bool)
    balls: list[Bool[np.ndarray, "n"]] = []
    while True:
        members = near & left
        centre = int((members.sum(axis=1) * left).argmax())
        if not left[centre] or members[centre].sum() < max(LEAST_MEMBERS, LEAST_SHARE * len(distance)):
            return balls
        balls.append(members[centre])
        left &= distance[centre] > APART * radius
