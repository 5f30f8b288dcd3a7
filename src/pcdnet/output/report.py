"""Report: one HTML page about a run that needs nothing else, neither network nor scripts."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Integer, Shaped, UInt8
from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.output.curves import Points, curve
from pcdnet.output.events import listed, told
from pcdnet.output.figures import as_rgb, panels, prototype_colours
from pcdnet.output.files import whole_file

LAYERS = 6
"""Objects of a scene that are shown one by one at most."""
IDLE = 0.25
"""A prototype chosen less often than this share of its fair share is marked as idle."""
ALIKE = 0.95
"""Two prototypes more alike than this are marked."""

_TILES = (  # key, name, how it is written, in which unit, what it means
    ("fg_ari", "FG-ARI", ".2f", "%", "agreement with the true objects, on their pixels"),
    ("perfect", "perfect scenes", ".2f", "%", "scenes whose objects are all right to the pixel"),
    ("count_accuracy", "count accuracy", ".2f", "%", "scenes with the right number of objects"),
    ("miou", "mIoU", ".2f", "%", "overlap of true and found objects"),
    ("ari", "ARI", ".2f", "%", "agreement on all pixels, background included"),
    ("mse", "MSE", ".2g", "", "squared error per pixel and channel"),
    ("objects", "objects", ".2f", "", "found per image, on average"),
    ("images_per_second", "images/s", ",.0f", "", "taken apart, on this machine"),
    ("parameters", "parameters", ",.0f", "", "numbers that were learned"),
)


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

    @property
    def idle(self) -> Bool[np.ndarray, "P"]:
        """Which are hardly ever chosen."""
        idle: Bool[np.ndarray, "P"] = self.usage < IDLE / len(self.usage)
        return idle

    def nearest(self, p: int) -> int | None:
        """The other prototype that is most alike, if there is another."""
        others = self.likeness[p].copy()
        others[p] = -np.inf
        return int(others.argmax()) if len(others) > 1 else None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Report:
    """Everything that the page shows."""

    name: str
    """What the run is called."""
    data: str
    """What the scores were measured on, in words."""
    scores: Mapping[str, float | int | None]
    """Scores by the names of `eval --json`; those that are None or missing are left out."""
    prototypes: Float[np.ndarray, "P h w"]
    masks: Float[np.ndarray, "P h w"]
    background: Float[np.ndarray, "H W C"] | None = None
    health: BankHealth
    metrics: Sequence[Mapping[str, Any]]
    """The lines of the run's metrics file."""
    images: Float[np.ndarray, "n H W C"]
    """Scenes to show taken apart."""
    decompositions: Sequence[Decomposition]
    """Their decompositions."""
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
        np.add.at(used, found.prototypes, 1)
        np.add.at(left, found.prototypes, under)
    return used / max(used.sum(), 1), np.divide(left, used, out=np.full(prototypes, np.nan), where=used > 0)


def write_report(report: Report, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    if len(report.images) != len(report.decompositions):
        raise PcdnetError(
            f"{len(report.images)} images and {len(report.decompositions)} decompositions make no page; "
            f"give a decomposition for each image"
        )
    page = render(report)
    with whole_file(path) as file:
        file.write(page.encode())


def render(report: Report) -> str:
    """The page as HTML text."""
    environment = Environment(
        loader=PackageLoader("pcdnet.output"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scenes, headings = _scenes(report)
    return environment.get_template("report.html").render(
        report=report,
        tiles=_tiles(report.scores),
        summary=_summary(report.health),
        cards=_cards(report),
        background=None if report.background is None else _png(as_rgb(report.background)),
        curves=_curves(report.metrics, len(report.prototypes)),
        events=told(line for line in report.metrics if "event" in line),
        scenes=scenes,
        headings=headings,
    )


def _tiles(scores: Mapping[str, float | int | None]) -> list[dict[str, str]]:
    tiles = []
    for key, name, form, unit, meaning in _TILES:
        value = scores.get(key)
        if value is None:
            continue
        number = f"{100 * value if unit else value:{form}}"
        tiles.append({"name": name, "value": number, "unit": unit, "meaning": meaning})
    return tiles


def _summary(health: BankHealth) -> str:
    """The health of the bank in one sentence."""
    P, idle = len(health.usage), np.flatnonzero(health.idle)
    pairs = np.argwhere(np.triu(health.likeness > ALIKE, k=1)).tolist()
    use = "all in use" if len(idle) == 0 else f"{P - len(idle)} in use, {listed(idle.tolist())} idle"
    alike = "no two are alike" if not pairs else "alike are " + ", ".join(f"{a} and {b}" for a, b in pairs)
    return f"{P} prototypes: {use}; {alike}."


def _cards(report: Report) -> list[dict[str, Any]]:
    health = report.health
    cards = []
    for p, colour in enumerate(prototype_colours(np.arange(len(report.prototypes)))):
        near = health.nearest(p)
        twin = near is not None and bool(health.likeness[p, near] > ALIKE)
        cards.append(
            {
                "number": p,
                "colour": f"#{bytes(colour).hex()}",
                "prototype": _png(as_rgb(report.prototypes[p][..., None])),
                "mask": _png(as_rgb(report.masks[p][..., None])),
                "usage": f"{100 * health.usage[p]:.1f} %",
                "idle": bool(health.idle[p]),
                "error": "none" if np.isnan(health.error[p]) else f"{health.error[p]:.2g}",
                "alike": "none" if near is None else f"{near} ({health.likeness[p, near]:.2f})",
                "twin": twin,
                "split": f"step {health.changed[p]:,}" if health.changed[p] > 0 else "never",
            }
        )
    return cards


def _curves(metrics: Sequence[Mapping[str, Any]], prototypes: int) -> list[dict[str, Any]]:
    """Loss, quality and use over the steps; without the truth, quality is the error of the reconstruction."""
    validations = [{"step": line["step"], **line["validation"]} for line in metrics if "validation" in line]
    loss, fg_ari, mse = _series(metrics, "loss"), _series(validations, "fg_ari"), _series(validations, "mse")
    in_use = _series(metrics, "in_use")
    quality = ("FG-ARI", "in validation", ".4f", fg_ari, curve(fg_ari, high=1))
    if not fg_ari:
        quality = ("MSE", "in validation", ".2g", mse, curve(mse, log=True))
    drawn = [
        ("loss", "what training minimises", ".2g", loss, curve(loss, log=True)),
        quality,
        ("prototypes in use", f"of {prototypes}", ".0f", in_use, curve(in_use, low=0, high=prototypes)),
    ]
    return [
        {"name": name, "note": note, "last": format(points[-1][1], form), "svg": svg}
        for name, note, form, points, svg in drawn
        if svg
    ]


def _series(lines: Sequence[Mapping[str, Any]], key: str) -> Points:
    return [(line["step"], line[key]) for line in lines if line.get(key) is not None]


def _scenes(report: Report) -> tuple[list[list[str | None]], list[str]]:
    """The pictures of every scene, None where it has fewer objects, and what they show."""
    layers = min(LAYERS, max((len(found) for found in report.decompositions), default=0))
    headings = ["image", "painted", *(str(n + 1) for n in range(layers)), "kinds", "objects"]
    rows = [
        [None if picture is None else _png(picture) for picture in panels(image, found, layers)]
        for image, found in zip(report.images, report.decompositions, strict=True)
    ]
    return rows, headings


def _png(picture: UInt8[np.ndarray, "H W 3"]) -> str:
    """A picture as the text of a data address."""
    buffer = io.BytesIO()
    pixels: Shaped[np.ndarray, "H W 3"] = np.ascontiguousarray(picture)
    Image.fromarray(pixels).save(buffer, format="png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
