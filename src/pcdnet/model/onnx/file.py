"""File: the whole model as an ONNX file, whose metadata say all that a reader of it must know."""

from __future__ import annotations

import dataclasses
import json
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from onnx import checker, helper

from pcdnet.config import ModelConfig
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.composition import changed
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import poses
from pcdnet.model.onnx.colour import network_colours
from pcdnet.model.onnx.graph import FLOAT, Graph, Value, where
from pcdnet.model.onnx.localization import as_array, error_reduction_maps, phase_maps
from pcdnet.model.onnx.peaks import propose
from pcdnet.model.onnx.selection import select
from pcdnet.model.onnx.solidity import solid
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.variants import in_coarse_poses
from pcdnet.model.selection import EMPTY

OPSET, IR = 17, 8
"""Versions of ONNX's operators and of its file format, both of 2022: older runtimes read the file too."""

LARGEST_SIDE = 2048
"""Pixels of an image's side at most: the matrices of the Fourier transform grow with its square."""
LARGEST_BATCH = 4096
"""Images of a call at most: the graph has constants for each of them."""

FOLLOWED = (
    *("num_prototypes", "prototype_size", "max_objects", "peaks_per_prototype", "channels"),
    *("min_error_reduction", "sparse_training", "restarts", "depth_order", "overhang", "max_colour"),
    *("min_visible", "min_solid", "min_inside"),
    *("rotations", "rotation_range", "scales", "scale_range", "mirror", "fine_poses", "subpixel"),
)
"""Fields of the configuration that the graph follows whatever their value; but for refinement, the depth order and
what lies between the coarse poses and pixels, which are left out of it, as the file says itself."""

CHOICES: dict[str, tuple[Any, ...]] = {
    "localization": ("phase", "error_reduction"),
    "template": ("painted", "prototype"),
    "labels": ("mask", "change"),
    "colour": ("least_squares", "network", "none"),
    "background": ("black", "still"),
    "rounds": (1,),
    "max_unexplained": (1.0,),
}
"""Fields of which it follows these values."""

MEANING = {
    "images": "batch x channels x height x width, values from 0 to 1",
    "reconstruction": "batch x channels x height x width: the image that the objects make",
    "prototype": f"batch x objects, front to back: which prototype, or {EMPTY} where there are no more objects",
    "position": "batch x objects x 2: row and column of the prototype's frame; negative where it hangs over the border",
    "colour": "batch x objects x channels: factor per channel on the grey prototype",
    "gain": "batch x objects: how much the squared error fell with the object",
    "instances": "batch x height x width: 0 is background, n + 1 the n-th object from the front",
}
"""What goes into every graph and what comes out of it, in this order."""


def meaning_of(config: ModelConfig) -> dict[str, str]:
    """What goes into the graph of a model and what comes out of it, in this order."""
    return {**MEANING, **poses.MEANING} if in_coarse_poses(config).posed else MEANING


def written(model: PCDNet, size: tuple[int, int], batch: int) -> bytes:
    """The ONNX file; see `pcdnet.model.onnx.to_onnx`."""
    _check_config(model.config)
    _check(model, size, batch)
    bank = model.weights().map(lambda values: values.detach().cpu().float()).clamped()
    config, N = in_coarse_poses(model.config), model.config.max_objects
    plan, graph = SearchPlan.derive(bank, size, config), Graph()
    posed, images = poses.searched(plan) if config.posed else None, graph.value(FLOAT, "images")
    found = _found(graph, images, model, plan if posed is None else posed.plan, batch)
    found = found if posed is None else poses.as_posed(graph, found, posed, config)
    meaning, (H, W), C = meaning_of(config), size, config.channels
    outputs = [graph.copy(value, name) for value, name in zip(found, list(meaning)[1:], strict=True)]
    shapes = [(batch, C, H, W), (batch, N), (batch, N, 2), (batch, N, C), (batch, N), (batch, H, W)]
    shapes += [(batch, N)] * (len(outputs) - len(shapes))
    content = graph.proto(
        "pcdnet",
        [helper.make_tensor_value_info("images", FLOAT, (batch, C, H, W), meaning["images"])],
        [
            helper.make_tensor_value_info(value.name, value.dtype, shape, meaning[value.name])
            for value, shape in zip(outputs, shapes, strict=True)
        ],
    )
    proto = helper.make_model(content, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    proto.producer_name, proto.producer_version = "pcdnet", version("pcdnet")
    proto.doc_string = "Finds the objects in images and explains every image as a stack of them."
    further = {} if posed is None else poses.words(config, posed)
    helper.set_model_props(proto, {**_metadata(model, size, batch), **further})
    checker.check_model(proto)
    return bytes(proto.SerializeToString())


def _check_config(config: ModelConfig) -> None:
    """Refuse what the graph would not follow; a field that is off, as by default, asks for nothing."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name not in FOLLOWED and value not in CHOICES.get(field.name, (field.default,)):
            raise PcdnetError(
                Setting(f"model.{field.name}", value),
                " cannot be expressed in an ONNX file; train with ",
                Setting(f"model.{field.name}", field.default),
                ", or use the model in Python",
            )


def _check(model: PCDNet, size: tuple[int, int], batch: int) -> None:
    (h, w), (H, W) = model.config.prototype_size, size
    if model.looks is not None:
        raise PcdnetError("a background of several looks cannot be expressed in an ONNX file; use the model in Python")
    if model.where_seen() is not None:
        raise PcdnetError("a field within the images cannot be expressed in an ONNX file; use the model in Python")
    if not 1 <= batch <= LARGEST_BATCH:
        raise PcdnetError(f"the batch is {batch}; give how many images a call is to take, from 1 to {LARGEST_BATCH}")
    if max(H, W) > LARGEST_SIDE:
        raise PcdnetError(
            f"images of {H}x{W} are too large for an ONNX file; cut or shrink them to {LARGEST_SIDE} pixels a side"
        )
    if h > H or w > W:
        raise PcdnetError(
            f"images of {H}x{W} are smaller than the prototypes ({h}x{w}); give a larger ", Setting("size")
        )
    if model.image_size not in (None, size):
        raise PcdnetError(
            f"images of {H}x{W} do not fit the model's background; use ", Setting("size", model.image_size)
        )


def _found(graph: Graph, images: Value, model: PCDNet, plan: SearchPlan, batch: int) -> list[Value]:
    """The whole way from images to the outputs, in the order of MEANING."""
    config, shape = plan.config, (batch, plan.config.channels)
    if model.ignored is not None and model.ignored.any() and plan.bank.background is not None:
        images = where(graph.constant(model.ignored.cpu().numpy()), as_array(plan.bank.background), images)
    maps = phase_maps(images, plan) if config.localization == "phase" else error_reduction_maps(images, shape, plan)
    places = propose(maps, batch, plan)
    if config.min_solid > 0:
        there = solid(images, shape, plan, places)
        places = dataclasses.replace(places, exists=places.exists & there)
    colours: Value | None = None
    if model.colour is not None:
        colours = network_colours(images, shape, model.colour, plan, places)
    elif config.colour == "none":
        colours = graph.constant(1.0).expand(batch, len(plan.boxes) * places.peaks, config.channels)
    chosen = select(images, batch, plan, places, colours)
    painted = chosen.painted
    if plan.bank.background is not None:
        painted = painted + chosen.clear * as_array(plan.bank.background)
    # From the tight frame on the canvas to the bank's own frame on the image.
    shift = graph.constant(plan.offset.numpy() + np.array(plan.geometry.padding))
    there = chosen.prototype >= 0
    position = where(there.unsqueeze(-1), chosen.corner - shift[where(there, chosen.prototype, 0)], 0)
    labels = chosen.labels
    if config.labels == "change":
        behind = as_array(plan.bank.behind(torch.zeros(config.channels, *plan.geometry.image)))
        labels = where(changed(painted, behind[None], 1), labels, 0)
    return [painted, chosen.prototype, position, chosen.colour, chosen.error_reduction, labels]


def _metadata(model: PCDNet, size: tuple[int, int], batch: int) -> dict[str, str]:
    """What the graph alone does not say, all as texts."""
    config, pixels = model.config, "RGB" if model.config.channels == 3 else "grey"
    *settings, last = ["restarts = 0", "depth_order = false", *poses.left_out(config)]
    return {
        "pcdnet_version": version("pcdnet"),
        "preprocessing": f"{pixels} pixels of 0 to 255 as float32, divided by 255, channels before height and width",
        "selection": f"greedy, as pcdnet chooses with {', '.join(settings)} and {last}",
        "image_size": json.dumps(size),
        "prototype_size": json.dumps(config.prototype_size),
        "batch": str(batch),
        "channels": str(config.channels),
        "prototypes": str(config.num_prototypes),
        "objects": str(config.max_objects),
        "min_error_reduction": str(config.min_error_reduction),
        "prototype_names": json.dumps(list(model.names)),
    }
