"""Widget: decompose the image of a layer with a run, a trained model or one of the Hub."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Num

from pcdnet.data.intake import fitted, in_eight_bits
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.napari.layers import LayerData, bank_layer, check_pixels, found_layers, placed
from pcdnet.output.record import Results, records
from pcdnet.run import load

if TYPE_CHECKING:
    from magicgui.widgets import FunctionGui

USUAL = "space-invaders"
"""The model that the widget begins with."""


def make_widget() -> FunctionGui[Any]:
    """The widget, as napari asks for it: an image, a run and a button; the work is done beside the window."""
    from magicgui import magicgui
    from napari.layers import Image
    from napari.qt.threading import FunctionWorker, thread_worker
    from napari.types import LayerDataTuple

    def decompose(image: Any, run: Any = USUAL) -> Any:
        """Find the objects of a model in an image."""
        worker = thread_worker(decomposed, progress=True)
        return worker(image.data, run, rgb=image.rgb, name=image.name, scale=image.scale, start=image.translate)

    # As magicgui reads annotations: texts would be looked up where these names are not.
    decompose.__annotations__ = {"image": Image, "run": str, "return": FunctionWorker[list[LayerDataTuple]]}
    about = {"label": "model", "tooltip": "Folder of a run, name of a trained model, or hf:owner/name"}
    return magicgui(decompose, call_button="Decompose", run=about)


def decomposed(
    pixels: Num[np.ndarray, "*shape"],
    run: str,
    *,
    rgb: bool,
    name: str = "image",
    scale: Any = None,
    start: Any = None,
) -> list[LayerData]:
    """The objects of an image, or of a stack of images, as labels and boxes in its place, and the prototypes beside it.

    `scale` and `start` are how large its pixels are, and where it begins.
    """
    images = as_stack(np.asarray(pixels), rgb)
    check_pixels(images.shape[0] * images.shape[1] * images.shape[2])
    model = load(run)
    names = [name] if len(images) == 1 else [f"{name}#{number}" for number in range(len(images))]
    found = [model.decompose(image, name=title) for image, title in zip(_taken(model, images), names, strict=True)]
    made = [record for one, title in zip(found, names, strict=True) for record in records([one], [title])]
    named = list(Results(made, model.kinds, model.config.channels).named())
    bank = bank_layer(model.weights().clamped().to_numpy(), beside=images.shape[2])
    layers = [*found_layers(named), bank]
    return layers if scale is None else [placed(layer, scale, start) for layer in layers]


def as_stack(pixels: Num[np.ndarray, "*shape"], rgb: bool) -> Num[np.ndarray, "N H W C"]:
    """The images of a layer: one, or those along its first axis."""
    shape = pixels.shape
    images = pixels[..., :3] if rgb else pixels[..., None]
    if images.ndim == 3:
        images = images[None]
    if images.ndim != 4 or 0 in images.shape:
        raise PcdnetError(f"a layer of shape {shape} is neither an image nor a stack of images; choose a slice of it")
    return images


def _taken(model: PCDNet, images: Num[np.ndarray, "N H W C"]) -> Iterator[np.ndarray]:
    """The images as the model takes them."""
    for image in images:
        picture = in_eight_bits(image, model.values, "the layer")
        yield fitted(picture, channels=model.config.channels, size=model.image_size, cure=("choose another model",))
