"""Page: the report as one HTML page that needs nothing else, neither network nor scripts."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int64, Integer, UInt8
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from matplotlib import colormaps
from PIL import Image, features

from pcdnet.colours import as_hex, as_rgb, prototype_colours
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.files import whole_file
from pcdnet.names import Names
from pcdnet.output.curves import learning_curves
from pcdnet.output.figures import LAYERS, SMALL, object_pictures, panels
from pcdnet.output.plots import plots, roses, size_sparks, sparks
from pcdnet.output.scores import known_scores
from pcdnet.training.events import in_words, listed

if TYPE_CHECKING:
    from pcdnet.output.census import Census, Counted
    from pcdnet.training.suggestions import Suggestion
    from pcdnet.training.verdict import Verdict

SHOWN_OBJECTS = 24
"""Objects of a scene that are shown one by one at most."""
LARGEST, HEAVY = 480, 24_000
"""Pixels of a picture's longer side at most; bytes beyond which it is packed with a small loss."""
BRIGHTER = 3
"""Errors are shown so many times brighter than they are."""
IDLE = 0.25
"""A prototype chosen less often than this share of its fair share is marked as idle."""
MOST_PAIRS = 8
"""So many pairs of prototypes that are one kind are named at most; more are counted."""
MOST_FACES = 3
"""Prototypes of a kind that are pictured at most."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BankHealth:
    """How every prototype fares."""

    usage: Float[np.ndarray, "P"]
    """Share of all objects that are this prototype's."""
    error: Float[np.ndarray, "P"]
    """Squared error left under one of its objects, on average; NaN where it has none."""
    likeness: Float[np.ndarray, "P P"]
    """How alike every two are: 1 is the same."""
    changed: Integer[np.ndarray, "P"]
    """The step at which it was last split; 0 is never."""
    twins: Sequence[tuple[int, int]] = ()
    """Pairs that stand for one kind of object."""

    @property
    def idle(self) -> Bool[np.ndarray, "P"]:
        """Which are hardly ever chosen."""
        return np.asarray(self.usage < IDLE / len(self.usage))

    @property
    def doubled(self) -> set[int]:
        """Which stand for the same as another."""
        return {p for pair in self.twins for p in pair}

    def nearest(self, p: int) -> int | None:
        """The other prototype that is most alike, if there is another."""
        others = np.where(np.arange(len(self.likeness)) == p, -np.inf, self.likeness[p])
        return int(others.argmax()) if len(others) > 1 else None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sightings:
    """What one prototype's objects looked like, and where they were."""

    colours: Sequence[tuple[UInt8[np.ndarray, "3"], float]] = ()
    """The usual colours of its objects with their shares, most frequent first."""
    places: Float[np.ndarray, "rows columns"] | None = None
    """How often its objects were where, on a coarse grid over the image; None where it has none."""

    @property
    def heat(self) -> Float[np.ndarray, "rows columns 3"] | None:
        """The places as a map, the most frequent one brightest."""
        if self.places is None:
            return None
        return np.asarray(colormaps["inferno"](np.sqrt(self.places / max(self.places.max(), 1e-12))))[..., :3]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Exhibit:
    """A scene to show decomposed."""

    title: str
    """Why it is shown: best, median or worst."""
    note: str
    """How well it went, in words."""
    image: Float[np.ndarray, "H W C"]
    found: Decomposition


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Page:
    """Everything that the page shows."""

    name: str
    """What the run is called."""
    data: str
    """What the scores were measured on, in words."""
    training: str = ""
    """How long training took, in words."""
    verdict: Verdict | None = None
    """Whether training worked, where that was judged."""
    suggestions: Sequence[Suggestion] = ()
    """What to do about it."""
    scores: Mapping[str, Any]
    """Scores by the names of `eval --json`; those that are None or missing are left out."""
    census: Census
    """What was found of every kind."""
    bank: BankArrays
    names: Mapping[int, str] = field(default_factory=dict)
    """What a person calls the prototypes, those that have a name."""
    health: BankHealth
    sightings: Sequence[Sightings]
    """One of each prototype."""
    metrics: Sequence[Mapping[str, Any]]
    """The lines of the run's metrics file."""
    trained: int | None = None
    """Prototypes that were trained, where superfluous ones went afterwards: the metrics number those."""
    gallery: Sequence[Exhibit]
    """Scenes to show decomposed, the best first."""
    ranking: str
    """What the best scenes are best by."""
    config: str
    """The configuration as TOML."""
    command: str
    """The command that repeats the training."""
    version: str
    """Of pcdnet."""


def bank_use(
    images: Float[np.ndarray, "n H W C"], decompositions: Sequence[Decomposition], prototypes: int
) -> tuple[Float[np.ndarray, "P"], Float[np.ndarray, "P"]]:
    """Return each prototype's share of all objects, and the squared error left under one of its objects, on average.

    Only visible pixels count; the error of a prototype without objects is NaN.
    """
    used, left = np.zeros(prototypes), np.zeros(prototypes)
    for image, found in zip(images, decompositions, strict=True):
        error = np.square(found.reconstruction - image).sum(axis=-1)
        under = np.bincount(found.instances.ravel(), weights=error.ravel(), minlength=len(found) + 1)[1:]
        np.add.at(used, found.prototype_ids, 1)
        np.add.at(left, found.prototype_ids, under)
    return used / max(used.sum(), 1), np.divide(left, used, out=np.full(prototypes, np.nan), where=used > 0)


def write_page(page: Page, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    content = render(page)
    with whole_file(path) as file:
        file.write(content.encode(errors="backslashreplace"))  # names of files need not be text


def template(name: str) -> Template:
    """A page of the package, to be rendered with what it shows."""
    environment = Environment(
        loader=PackageLoader("pcdnet.output"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"picture": _picture, "hex": as_hex, "spread": _spread}
    return environment.get_template(name)


def render(page: Page) -> str:
    """The page as HTML text."""
    first = Names(count=len(page.bank.prototypes), given=page.names).first
    kinds = kind_colours(page.census)
    return template("report.html").render(
        page=page,
        scores=list(known_scores(page.scores)),
        summary=_summary(page.health),
        colours=prototype_colours(first),
        curves=learning_curves(page.metrics, page.trained or len(page.bank.prototypes)),
        events=in_words(line for line in page.metrics if "event" in line),
        gallery=list(_gallery(page, first)),
        kinds=[_kind(page.bank, *pair) for pair in zip(page.census.kinds, kinds, strict=True)],
        sparks=sparks(page.census),
        roses=roses(page.census),
        size_sparks=size_sparks(page.census),
        plots=list(plots(page.census, kinds)),
    )


def kind_colours(census: Census) -> UInt8[np.ndarray, "K 3"]:
    """The colour that every kind has in pictures: its own where it has one, else that of its first prototype."""
    colours = np.zeros((len(census.kinds), 3), np.uint8)
    for n, counted in enumerate(census.kinds):
        assert counted.kind is not None
        own = counted.kind.colour
        if own is None:
            colours[n] = prototype_colours(np.array(counted.kind.prototypes[0]))
        else:
            colours[n] = as_rgb(np.array(own)[None, None])[0, 0]
    return colours


def _kind(bank: BankArrays, counted: Counted, colour: UInt8[np.ndarray, "3"]) -> dict[str, Any]:
    """A row of the table of kinds."""
    kind, numbers = counted.kind, counted.to_dict()
    assert kind is not None
    paint = np.ones(1) if kind.colour is None else np.array(kind.colour)
    faces = [(p, bank.prototypes[p, ..., None] * bank.masks[p, ..., None] * paint) for p in kind.prototypes]
    return {"kind": kind, "colour": colour, "faces": faces[:MOST_FACES], **numbers}


def _summary(health: BankHealth) -> str:
    """The health of the bank in one sentence."""
    P, idle = len(health.usage), np.flatnonzero(health.idle)
    use = "all in use" if len(idle) == 0 else f"{P - len(idle)} in use, {listed(idle.tolist())} idle"
    pairs = [f"{a} and {b} are one kind" for a, b in health.twins]
    same = ", ".join(pairs) if pairs else "no two are one kind"
    if len(health.twins) > MOST_PAIRS:
        same = f"{len(health.doubled)} stand for the same as another"
    return f"{P} prototypes: {use}; {same}."


def _gallery(page: Page, first: Int64[np.ndarray, "P"]) -> Iterator[dict[str, Any]]:
    """The scenes with their whole pictures, and their objects alone: on canvases if these are small, else cut out."""
    few = max((len(exhibit.found) for exhibit in page.gallery), default=0) <= LAYERS
    names = ("image", "painted", f"left over, x{BRIGHTER}", "kinds", "objects")
    for exhibit in page.gallery:
        found, whole = exhibit.found, few and exhibit.image.shape[1] <= SMALL
        image, painted, semantics, instances = panels(exhibit.image, found, first).values()
        left = as_rgb(BRIGHTER * np.abs(exhibit.image - found.reconstruction))
        alone = object_pictures(found, page.bank, canvas=whole)[:SHOWN_OBJECTS]
        yield {
            "exhibit": exhibit,
            "pictures": zip(names, (image, painted, left, semantics, instances), strict=True),
            "objects": list(zip(alone, found.prototype_ids.tolist(), strict=False)),
            "more": len(found) - len(alone),
            "whole": whole,
        }


def _spread(numbers: Mapping[str, float] | None) -> str:
    """The middle of some numbers, with the range of most of them where they differ."""
    if numbers is None:
        return "none"
    low, high = (f"{numbers[name]:,.0f}" for name in ("p10", "p90"))
    return f"{numbers['median']:,.0f}" + (f" ({low} to {high})" if low != high else "")


def _picture(values: Float[np.ndarray, "H W *C"] | UInt8[np.ndarray, "H W 3"]) -> str:
    """A picture, of 8 bits or of values in [0, 1], as the text of a data address, small enough to be mailed."""
    pixels = values if values.dtype == np.uint8 else as_rgb(np.atleast_3d(values))
    grey = (pixels == pixels[..., :1]).all()
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))
    if max(picture.size) > LARGEST:
        picture.thumbnail((LARGEST, LARGEST))
    buffer, kind = io.BytesIO(), "png"
    picture.save(buffer, format=kind, optimize=True)
    if buffer.tell() > HEAVY and features.check("webp"):
        buffer, kind = io.BytesIO(), "webp"
        picture.convert("RGB").save(buffer, format=kind, quality=88)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
