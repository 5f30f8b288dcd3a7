"""The maps of a file are those of the model."""

from __future__ import annotations

import pytest
import torch

from pcdnet.config import Background, Localization
from pcdnet.model.onnx.graph import FLOAT, Graph
from pcdnet.model.onnx.localization import error_reduction_maps, phase_maps
from tests.model.onnx.models import SIZE, evaluate, random_model


@pytest.mark.parametrize("background", ["still", "black"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("localization", ["phase", "error_reduction"])
def test_the_maps_are_those_of_the_model(localization: Localization, channels: int, background: Background) -> None:
    model, scenes = random_model(1, channels, background, localization=localization)
    images, plan, graph = torch.stack(scenes[1:4]), model.plan(SIZE), Graph()
    x = graph.value(FLOAT, "images")
    maps = phase_maps(x, plan) if localization == "phase" else error_reduction_maps(x, (3, channels), plan)
    (found,) = evaluate(graph, [maps], images=images.numpy())
    assert plan.localizer is not None
    expected = plan.localizer.maps(images)(slice(0, 3), slice(0, 4))
    torch.testing.assert_close(torch.from_numpy(found), expected, atol=2e-3, rtol=1e-3)
    assert expected.std() > 0.01


def test_maps_of_prototypes_without_masks_are_those_of_the_model() -> None:
    model, scenes = random_model(1, 3, "still", template="prototype")
    images, plan, graph = torch.stack(scenes[1:4]), model.plan(SIZE), Graph()
    (found,) = evaluate(graph, [phase_maps(graph.value(FLOAT, "images"), plan)], images=images.numpy())
    assert plan.localizer is not None
    expected = plan.localizer.maps(images)(slice(0, 3), slice(0, 4))
    torch.testing.assert_close(torch.from_numpy(found), expected, atol=2e-3, rtol=1e-3)
    by_masks = random_model(1, 3, "still")[0].plan(SIZE).localizer
    assert by_masks is not None
    painted = by_masks.maps(images)(slice(0, 3), slice(0, 4))
    assert (painted - expected).abs().max() > 0.05
