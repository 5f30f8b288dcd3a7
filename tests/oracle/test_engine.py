"""The engine finds what the literal equations find."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pcdnet.config import ColourModule, ModelConfig
from pcdnet.model.colour import ColourNetwork
from pcdnet.model.compiled import reference
from pcdnet.model.network import PCDNet
from tests.oracle.equations import Network, Oracle
from tests.oracle.scenes import random_bank, random_scene, random_weights

SIZE, FRAME = (30, 27), (11, 9)


def whole_frames(network: ColourNetwork, offset: Tensor) -> Network:
    """The network sees the frame of the bank, of which the oracle is given a tight cut."""

    def colour(masked: Tensor, p: int, row: int, column: int) -> Tensor:
        (h, w), (dy, dx) = FRAME, offset[p].tolist()
        wide = torch.nn.functional.pad(masked, (3 * w, 3 * w, 3 * h, 3 * h))
        top, left = row - dy + 3 * h, column - dx + 3 * w
        found: Tensor = network(wide[None, :, top : top + h, left : left + w])[0]
        return found

    return colour


def compare(seed: int, colour: ColourModule, dtype: torch.dtype, tolerance: float, **further: Any) -> bool:
    """Explain one random scene by compiled loops, by tensors and by the equations; whether refinement matters."""
    rng = torch.Generator().manual_seed(seed)
    channels, background = 1 if seed % 2 else 3, seed // 2 % 2 == 1
    bank = random_bank(rng, 4, FRAME, (channels, *SIZE) if background else None, dtype)
    image = random_scene(rng, bank, SIZE, channels, int(torch.randint(5, (), generator=rng)), noise=0.01)
    config = ModelConfig(
        num_prototypes=4,
        prototype_size=FRAME,
        max_objects=4,
        peaks_per_prototype=2,
        channels=channels,
        background="still" if background else "black",
        colour=colour,
        min_error_reduction=0.05,
        **further,
    )
    model = PCDNet.from_bank(bank, config)
    if model.colour is not None:
        random_weights(rng, model.colour)
    tight, offset = model.bank().tight()
    with torch.no_grad():
        explained = [model(image[None])]
        with reference():
            explained.append(model(image[None]))
        colours = None if model.colour is None else whole_frames(model.colour, offset)
        oracle = Oracle(image, tight.prototypes, tight.masks, tight.background, config, colours)
        expected, picture = oracle.explain()
    for layers in explained:
        where = layers.placement
        objects = zip(where.prototype[0].tolist(), where.row[0].tolist(), where.column[0].tolist(), strict=True)
        found = [(p, r + int(offset[p, 0]), c + int(offset[p, 1])) for p, r, c in objects if p >= 0]
        assert found == [thing[:3] for thing in expected], f"scene {seed}"
        torch.testing.assert_close(layers.reconstruction[0], picture, atol=tolerance, rtol=0)
    return [thing[:3] for thing in expected] != [thing[:3] for thing in oracle.unrefined]


def test_engine_agrees_with_the_literal_equations_in_double_precision() -> None:
    """200 scenes, grey and RGB, with and without background: the same objects in the same order."""
    refined = sum(compare(seed, "least_squares", torch.float64, 1e-8) for seed in range(200))
    assert refined > 20, "too few scenes reach refinement for this to mean anything"


def test_engine_agrees_with_the_literal_equations_in_single_precision() -> None:
    for seed in range(1000, 1100):
        compare(seed, "least_squares", torch.float32, 1e-4)


@pytest.mark.parametrize("colour", ["network", "none"])
def test_engine_agrees_with_the_literal_equations_for_other_colours(colour: ColourModule) -> None:
    for seed in range(60):
        compare(seed, colour, torch.float64, 1e-8)


def test_engine_agrees_with_the_literal_equations_where_prototypes_are_sought_without_masks() -> None:
    for seed in range(60):
        compare(seed, "least_squares", torch.float64, 1e-8, template="prototype")


def test_engine_agrees_with_the_literal_equations_where_objects_must_be_seen() -> None:
    for seed in range(40):
        compare(seed, "least_squares", torch.float64, 1e-8, min_visible=0.7, restarts=0)


def test_engine_agrees_with_the_literal_equations_where_the_border_cuts_objects_off() -> None:
    left_out = 0
    for seed in range(40):
        left_out += compare(seed, "least_squares", torch.float64, 1e-8, min_inside=0.9, overhang=0.7, restarts=0)
    assert left_out > 10, "too few scenes have objects at the border for this to mean anything"


def test_engine_agrees_with_the_literal_equations_as_set_for_real_scenes() -> None:
    """Places by gain, and only what is seen, solid and inside; the oracle paints every prototype at every place."""
    for seed in range(4):
        compare(
            seed,
            "least_squares",
            torch.float64,
            1e-8,
            localization="error_reduction",
            min_visible=0.5,
            min_solid=0.4,
            min_inside=0.5,
            restarts=0,
        )
