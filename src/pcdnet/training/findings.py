"""Findings: what the figures of a model say, in sentences, and how much each speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pcdnet.training.diagnosis import Figures
from pcdnet.training.evaluation import small

EXPLAINED, HARDLY_EXPLAINED = 4 / 5, 1 / 3
"""Less of what stands out being explained is partial, and failed: most should be, and hardly any is no result."""
ODD, WRONG = 1 / 10, 1 / 2
"""A share of the images, or of the pixels, that is no longer an exception; and one that is the rule."""
ENOUGH = 2
"""With so many objects a prototype, by chance only one prototype in seven is not seen if all are needed alike."""
MOST_NAMED = 3
"""Groups of prototypes that are nearly the same, and fixtures, are named up to this number."""


class Finding(NamedTuple):
    """Something that the figures say."""

    about: str
    """What it is about, in a word that cures refer to."""
    weight: int
    """How bad it is: 0 is fine, 1 makes the verdict partial and 2 failed."""
    words: str
    """What was found, in a sentence with figures."""


def findings(f: Figures, limit: int) -> Iterator[Finding]:
    """What the figures of a model say, good and bad; `limit` is how many objects an image may have."""
    if f.stands_out == 0:
        yield Finding("explained", 2, f"nothing stands out from the background in any of {f.images} images")
    else:
        yield Finding(
            "explained",
            (f.explained < EXPLAINED) + (f.explained < HARDLY_EXPLAINED),
            f"{_percent(f.explained)} of what stands out is explained (mean squared error {small(f.error)}, with the "
            f"bare background {small(f.bare_error)})",
        )
    found = f"{f.objects:.1f} objects were found in an image, of {limit} that there may be"
    none = f"no object was found in any of {f.images} images"
    yield Finding("objects", 0, found) if f.in_use else Finding("objects", 2, none)
    if f.unexplained_background > ODD:
        yield Finding(
            "background",
            1 + (f.unexplained_background > WRONG),
            f"{_percent(f.unexplained_background)} of the pixels that no object covers do not look like the background",
        )
    if f.limited > ODD:
        words = f"{_percent(f.limited)} of the images hold as many objects as there may be, and more is left over"
        yield Finding("limited", 1, words)
    if f.overlooked > ODD:
        words = f"in {_percent(f.overlooked)} of the images something stands out, and no object was found"
        yield Finding("overlooked", 1, words)
    if f.repeated < 1 - ODD:
        words = f"only {_percent(f.repeated)} of the objects are found again if a little noise is added"
        yield Finding("repeated", 1, words)
    if f.of_shapeless > WRONG:
        words = f"{len(f.shapeless)} of {f.in_use} prototypes in use have no solid shape"
        yield Finding("shapeless", 1, words)
    twins = {p for pair in f.alike for p in pair}
    alike = f"{len(twins)} of them are nearly the same as another" if twins else "no two of them are nearly the same"
    yield Finding(
        "prototypes",
        int(mostly_unused(f) or len(twins) > WRONG * f.in_use),
        f"{f.in_use} of {f.prototypes} prototypes are in use, and {alike}",
    )
    if f.fixtures:
        yield Finding("fixtures", 0, _fixtures(f))


def _fixtures(f: Figures) -> str:
    """Where nothing is looked for, in words."""
    places = [f"top {top}, left {left}, {height}x{width}" for top, left, height, width in f.fixtures]
    named = "; ".join(places[:MOST_NAMED])
    more = f"; and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    count = "1 place is" if len(places) == 1 else f"{len(places)} places are"
    return f"{count} left out as fixtures, such as counters: {named}{more}"


def mostly_unused(f: Figures) -> bool:
    """Whether prototypes are not needed; of a few objects, many prototypes would not be seen in any case."""
    return f.in_use < WRONG * f.prototypes and f.objects * f.images >= ENOUGH * f.prototypes


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
