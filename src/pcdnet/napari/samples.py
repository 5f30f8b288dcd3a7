"""Samples: images to try the widget on."""

from __future__ import annotations

from pcdnet.data.tetrominoes import generate
from pcdnet.napari.layers import LayerData

COUNT, SEED = 20, 1
"""How many scenes there are, and which."""


def tetrominoes() -> list[LayerData]:
    """A stack of generated scenes, for the model `tetrominoes`."""
    return [(generate(COUNT, SEED).images, {"name": "tetrominoes", "rgb": True}, "image")]
