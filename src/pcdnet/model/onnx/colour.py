"""Colour in ONNX: the colours of all candidates by the network of `pcdnet.model.colour`, or none."""

from __future__ import annotations

import numpy as np
from torch import nn

from pcdnet.model.colour import ColourNetwork
from pcdnet.model.onnx.evidence import canvas, cells
from pcdnet.model.onnx.graph import Value, node
from pcdnet.model.onnx.localization import as_array
from pcdnet.model.onnx.peaks import Places
from pcdnet.model.plan import SearchPlan


def network_colours(
    images: Value, shape: tuple[int, int], network: ColourNetwork, plan: SearchPlan, places: Places
) -> Value:
    """The network's colours of the candidates of images of `shape` (B, C): (B T C).

    The network sees the bank's own frames, in which the tight ones lie at the plan's offset.
    """
    (B, C), (h, w), (Y, X), K = shape, plan.bank.frame, plan.frames.canvas, places.peaks
    shift = np.repeat(np.array(plan.bank.frame) - plan.offset.cpu().numpy(), K, axis=0)
    corner = (places.row + shift[:, 0]) * X + places.column + shift[:, 1] + np.arange(B)[:, None] * (Y * X)
    windows = canvas(images, C, plan.frames)[cells(corner.reshape(-1), plan.frames)]
    masked = windows.reshape(B, -1, K, h * w, C) * as_array(plan.bank.masks).reshape(-1, 1, h * w, 1)
    x = masked.reshape(-1, h * w, C).permute(0, 2, 1).reshape(-1, C, h, w)
    for layer, norm in ((network.first, network.first_norm), (network.second, network.second_norm)):
        x = _normalise(node("Relu", _convolve(x, layer)), norm)
    means = node("ReduceMean", x, attributes={"axes": [2, 3], "keepdims": 0})
    return (means @ as_array(network.head.weight.T) + as_array(network.head.bias)).reshape(B, -1, C)


def _convolve(x: Value, layer: nn.Conv2d) -> Value:
    assert layer.bias is not None
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    return node("Conv", x, as_array(layer.weight), as_array(layer.bias), attributes=attributes)


def _normalise(x: Value, norm: nn.BatchNorm2d) -> Value:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    given = (as_array(each) for each in (norm.weight, norm.bias, norm.running_mean, norm.running_var))
    return node("BatchNormalization", x, *given, attributes={"epsilon": norm.eps})
