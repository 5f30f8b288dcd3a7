"""Layers: what was found, and what a model knows, in the form in which napari takes layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Integer

from pcdnet.colours import prototype_colours
from pcdnet.decomposition import POSE, BankArrays
from pcdnet.errors import PcdnetError
from pcdnet.output.record import Record
from pcdnet.output.rle import decode

LayerData: TypeAlias = tuple[Any, dict[str, Any], str]
"""The data of a layer, how it is made, and of which kind it is."""
MOST_PIXELS = 2**29
"""Pixels that the labels of all images have together at most."""
GAP = 2
"""Pixels between prototypes on a sheet."""


def found_layers(records: Sequence[Record]) -> list[LayerData]:
    """Records as labels and as boxes with the names of their kinds; of several images as stacks, the image first.

    Images of several sizes lie in the top left corner of the largest.
    """
    H, W = (max((record["size"][axis] for record in records), default=1) for axis in (0, 1))
    check_pixels(len(records) * H * W)
    most = max((len(record["objects"]) for record in records), default=0)
    labels = np.zeros((len(records), H, W), np.uint16 if most < 2**16 else np.int32)
    corners, about = list[Float[np.ndarray, "4 3"]](), list[dict[str, Any]]()
    for number, record in enumerate(records):
        height, width = record["size"]
        for thing in record["objects"]:
            mask = thing["mask"]
            if mask["size"] != record["size"]:
                raise ValueError(f"the mask of an object of {record['name']} is not as large as the image")
            labels[number, :height, :width][decode(mask["counts"], (height, width))] = thing["depth"] + 1
            if thing["box"] is not None:
                corners.append(_corners(number, thing["box"]))
                about.append(_about(record, thing))
    if len(records) == 1:
        return [(labels[0], {"name": "objects"}, "labels"), _boxes([each[:, 1:] for each in corners], about, 2)]
    return [(labels, {"name": "objects"}, "labels"), _boxes(corners, about, 3)]


def check_pixels(pixels: int) -> None:
    """Refuse more images than labels should take memory for."""
    if pixels > MOST_PIXELS:
        raise PcdnetError(
            f"the images have {pixels:,} pixels, and at most {MOST_PIXELS:,} are shown; give fewer images"
        )


def _corners(number: int, box: list[int]) -> Float[np.ndarray, "4 3"]:
    """A box as a rectangle around its pixels, which reach half a pixel around their places."""
    top, left, height, width = box
    rows, columns = (top - 0.5, top + height - 0.5), (left - 0.5, left + width - 0.5)
    return np.array([(number, rows[r], columns[c]) for r, c in ((0, 0), (0, 1), (1, 1), (1, 0))])


def _about(record: Record, thing: dict[str, Any]) -> dict[str, Any]:
    return {
        "image": record["name"],
        "kind": thing.get("name") or f"prototype {thing['prototype']}",
        "prototype": thing["prototype"],
        "label": thing["depth"] + 1,
        "error_reduction": thing["gain"],
        **{name: thing[name] for name in POSE if name in thing},
    }


def _boxes(corners: Sequence[Float[np.ndarray, "4 d"]], about: Sequence[dict[str, Any]], ndim: int) -> LayerData:
    options: dict[str, Any] = {"name": "boxes", "ndim": ndim, "face_color": "transparent", "edge_width": 0.5}
    if corners:
        colours = prototype_colours(np.array([each["prototype"] for each in about])) / 255
        options["shape_type"] = "rectangle"
        options["edge_color"] = np.concatenate([colours, np.ones((len(colours), 1))], axis=1)
        options["features"] = {key: [each.get(key) for each in about] for key in about[0]}
        options["text"] = {"string": "{kind}", "size": 8, "anchor": "upper_left", "color": "white"}
    return list(corners), options, "shapes"


def bank_layer(bank: BankArrays, beside: int = 0) -> LayerData:
    """The prototypes of a model, each within its mask, as one sheet; `beside` an image of so many columns."""
    shown = np.clip(bank.prototypes, 0, 1) * np.clip(bank.masks, 0, 1)
    columns = int(np.ceil(np.sqrt(len(shown))))
    _, h, w = shown.shape
    rows = -(-len(shown) // columns)
    sheet = np.zeros((rows * (h + GAP) - GAP, columns * (w + GAP) - GAP), np.float32)
    for number, one in enumerate(shown):
        top, left = (h + GAP) * (number // columns), (w + GAP) * (number % columns)
        sheet[top : top + h, left : left + w] = one
    place = (0.0, float(beside + 4 * GAP if beside else 0))
    return sheet, {"name": "prototypes", "translate": place, "contrast_limits": (0, 1), "rgb": False}, "image"


def placed(layer: LayerData, scale: Integer[np.ndarray, "d"] | Float[np.ndarray, "d"], start: Any) -> LayerData:
    """A layer in the place of another, whose scale and begin these are."""
    data, options, kind = layer
    ndim = np.ndim(data) if kind != "shapes" else options["ndim"]
    own = np.array(options.get("translate", np.zeros(ndim)))
    factors, begin = np.asarray(scale, float)[-ndim:], np.asarray(start, float)[-ndim:]
    return data, {**options, "scale": factors, "translate": begin + own * factors}, kind
