"""The colours of a file are those of the model's network."""

from __future__ import annotations

import pytest
import torch

from pcdnet.model.colour import NetworkColours
from pcdnet.model.onnx.colour import network_colours
from pcdnet.model.onnx.graph import FLOAT, INT, Graph
from pcdnet.model.onnx.peaks import Places
from pcdnet.model.peaks import Candidates
from tests.model.onnx.models import SIZE, evaluate, random_model


@pytest.mark.parametrize("channels", [1, 3])
@torch.no_grad()
def test_all_candidates_have_the_colours_that_the_network_gives_them(channels: int, rng: torch.Generator) -> None:
    model, scenes = random_model(3, channels, colour="network")
    assert model.colour is not None
    images, plan, graph = torch.stack(scenes[1:4]), model.plan(SIZE), Graph()
    (rows, columns), (my, mx) = plan.geometry.positions, plan.geometry.padding
    row, column = torch.randint(rows, (3, 8), generator=rng), torch.randint(columns, (3, 8), generator=rng)
    there = torch.ones(3, 8, dtype=torch.bool)
    candidates = Candidates(row - my, column - mx, there, 2)
    palette, image = NetworkColours(model.colour, images, plan, candidates), torch.arange(3).repeat_interleave(8)
    given = model.selection_input(images, plan, 2)
    expected = palette.colours(given.unmeasured(), image, torch.arange(8).repeat(3)).view(3, 8, channels)
    x, y, z = graph.value(FLOAT, "images"), graph.value(INT, "row"), graph.value(INT, "column")
    places = Places(y, z, graph.constant(there.numpy()), 2)
    ours = network_colours(x, (3, channels), model.colour, plan, places)
    (found,) = evaluate(graph, [ours], images=images.numpy(), row=row.numpy(), column=column.numpy())
    torch.testing.assert_close(torch.from_numpy(found), expected, atol=1e-5, rtol=1e-5)
