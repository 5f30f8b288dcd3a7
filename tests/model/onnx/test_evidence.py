"""The evidence of a file is that of the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pcdnet.config import Background
from pcdnet.model.evidence import Evidence, occluded
from pcdnet.model.onnx.evidence import EvidenceGraph, canvas, cells
from pcdnet.model.onnx.graph import FLOAT, Graph
from pcdnet.model.windows import Windows
from pcdnet.model.windows import canvas as torch_canvas
from tests.model.onnx.models import SIZE, evaluate, random_model


@pytest.mark.parametrize("background", ["still", "black"])
def test_coefficients_are_those_of_the_model_before_and_after_a_choice(
    background: Background, rng: torch.Generator
) -> None:
    model, scenes = random_model(2, background=background)
    images, plan, graph = torch.stack(scenes[2:4]), model.plan(SIZE), Graph()
    (rows, columns), (my, mx), (Y, X) = plan.geometry.positions, plan.geometry.padding, plan.geometry.canvas
    prototype, image = torch.arange(4).repeat_interleave(5), torch.arange(20) % 2
    row, column = torch.randint(rows, (20,), generator=rng), torch.randint(columns, (20,), generator=rng)
    corner = (image * Y * X + row * X + column).numpy()
    texture, mask = (plan.tight.prototypes[1] * 0.7)[None, ..., None], plan.tight.masks[1][None, ..., None]

    ours = EvidenceGraph(graph, plan, 2)
    planes = ours.opening(graph.value(FLOAT, "images"))
    window = cells(graph.constant(corner[:1]), plan.geometry)
    T, M = (graph.constant(x.flatten(1, 2).numpy()) for x in (texture.expand(-1, -1, -1, 3), mask))
    behind = ours.occlude(planes, window, M, T)
    which = graph.constant(corner), graph.constant(prototype.numpy())
    found = evaluate(graph, [ours.measure(x, *which) for x in (planes, behind)], images=images.numpy())

    evidence = Evidence.opening(images, plan.geometry, plan.behind)
    windows = Windows(plan.geometry, image, row - my, column - mx)
    expected = [plan.kernels.measure(evidence.planes, windows, prototype)]
    evidence.paste(windows[:1], *occluded(*evidence.cut(windows[:1]), mask, texture))
    expected.append(plan.kernels.measure(evidence.planes, windows, prototype))
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.from_numpy(x)[:, : y.shape[1]], y, atol=1e-4, rtol=1e-4)
        assert not np.any(x[:, y.shape[1] :]), "over black, k is 0"
    assert not torch.allclose(expected[0], expected[1])


def test_canvases_are_those_of_the_model_as_flat_cells() -> None:
    model, scenes = random_model(2)
    images, geometry, graph = torch.stack(scenes[2:4]), model.plan(SIZE).geometry, Graph()
    (found,) = evaluate(graph, [canvas(graph.value(FLOAT, "images"), 3, geometry)], images=images.numpy())
    assert np.array_equal(found, torch_canvas(images, geometry).flatten(0, 2))
