"""Laws of looking inside the search."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from
from torch import Tensor

from pcdnet.config import Background, ColourModule, ModelConfig
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.inspection import Inspection, Proposal, inspect, locate
from pcdnet.model.network import PCDNet
from pcdnet.model.peaks import top_peaks
from pcdnet.model.solidity import LEAST_FALL
from tests.model.models import on_canvas
from tests.model.poses.letters import letters
from tests.oracle.scenes import random_bank, random_scene, random_weights

SIZE, FRAME = (30, 26), (9, 8)
COLOURS: list[ColourModule] = ["least_squares", "none", "network"]
STRICT: dict[str, Any] = {"localization": "error_reduction", "min_visible": 0.6, "min_solid": 0.6}
"""How real scenes are searched."""


def setting(
    seed: int,
    colour: ColourModule = "least_squares",
    *,
    background: Background = "black",
    restarts: int = 0,
    depth_order: bool = False,
    **fields: Any,
) -> tuple[PCDNet, Tensor]:
    """A small model and an image of three objects, some of them overlapping."""
    rng = torch.Generator().manual_seed(seed)
    bank = random_bank(rng, 4, FRAME, (3, *SIZE) if background != "black" else None, torch.float32)
    config = ModelConfig(
        num_prototypes=4,
        prototype_size=FRAME,
        max_objects=4,
        peaks_per_prototype=3,
        colour=colour,
        background=background,
        min_error_reduction=0.1,
        restarts=restarts,
        depth_order=depth_order,
        **fields,
    )
    model, image = PCDNet.from_bank(bank, config), random_scene(rng, bank, SIZE, 3, 3, 0.02)
    if model.colour is not None:
        random_weights(rng, model.colour)
    return model, image


def street(seed: int) -> tuple[PCDNet, Tensor]:
    """A model of a street as a camera sees it, larger than all else here, and an image of twenty objects."""
    rng, size, frame = torch.Generator().manual_seed(seed), (98, 194), (14, 22)
    bank = random_bank(rng, 6, frame, (3, *size), torch.float32)
    config = ModelConfig(
        num_prototypes=6,
        prototype_size=frame,
        max_objects=20,
        peaks_per_prototype=8,
        background="still",
        min_error_reduction=1.0,
        restarts=0,
        depth_order=False,
        **STRICT,
    )
    return PCDNet.from_bank(bank, config), random_scene(rng, bank, size, 3, 20, 0.01)


def assert_steps_are_the_networks(model: PCDNet, image: Tensor) -> Inspection:
    """What inspection says was chosen, where, in which colour and why, is what the network chose."""
    with torch.inference_mode():
        layers = model(image[None])
    where = layers.placement
    seen = inspect(model, image)
    chosen = [step.chosen for step in seen.steps if step.chosen is not None]
    n = int(where.exists.sum())
    assert [thing.prototype for thing in chosen] == where.prototype[0, :n].tolist()
    assert [thing.position for thing in chosen] == list(
        zip(where.row[0, :n].tolist(), where.column[0, :n].tolist(), strict=True)
    )
    assert [thing.error_reduction for thing in chosen] == pytest.approx(
        where.error_reduction[0, :n].tolist(), rel=1e-3, abs=1e-3
    )
    for thing, c in zip(chosen, where.colour[0].tolist(), strict=False):
        assert thing.colour == pytest.approx(c, abs=1e-3)
    assert seen.steps[-1].chosen is None
    assert not seen.refined
    assert seen.error == pytest.approx(float((layers.reconstruction[0] - image).square().sum()), rel=1e-3, abs=1e-2)
    return seen


@given(seed=integers(0, 99), colour=sampled_from(COLOURS), background=sampled_from(["still", "black"]))
@settings(deadline=None, max_examples=12)
def test_the_steps_are_those_of_the_network(seed: int, colour: ColourModule, background: Background) -> None:
    assert_steps_are_the_networks(*setting(seed, colour, background=background))


@given(seed=integers(0, 99), colour=sampled_from(COLOURS), background=sampled_from(["still", "black"]))
@settings(deadline=None, max_examples=12)
def test_the_steps_are_those_of_a_strict_network_too(seed: int, colour: ColourModule, background: Background) -> None:
    assert_steps_are_the_networks(*setting(seed, colour, background=background, **STRICT))


def test_what_the_border_cuts_off_is_a_step_but_no_part_of_the_end() -> None:
    left_out = 0
    for seed in range(12):
        model, image = setting(seed, overhang=0.8, min_inside=0.9)
        with torch.inference_mode():
            layers = model(image[None])
        seen = inspect(model, image)
        left_out += len(seen.steps) - 1 - int(layers.placement.exists.sum())
        assert not seen.refined
        assert seen.error == pytest.approx(float((layers.reconstruction[0] - image).square().sum()), rel=1e-3, abs=1e-2)
    assert left_out > 3


def test_twenty_objects_in_a_street_are_reported_in_their_order() -> None:
    model, image = street(0)
    seen = assert_steps_are_the_networks(model, image)
    assert len(seen.steps) > 12
    assert_candidates_are_the_solid_peaks(model, image, seen.proposals)


def least_seen(model: PCDNet, image: Tensor) -> float:
    """Of all rivals at all steps, the least share of a mask that what was chosen before leaves to be seen."""
    least = 1.0
    through = torch.ones(image.shape[1:])
    for step in inspect(model, image).steps:
        for rival in step.rivals:
            M = on_canvas(model.bank().masks[rival.prototype], *rival.position, SIZE)
            least = min(least, float((through.square() * M).sum() / M.sum()))
        if step.chosen is not None:
            through *= 1 - on_canvas(model.bank().masks[step.chosen.prototype], *step.chosen.position, SIZE)
    return least


def test_what_is_hidden_too_much_is_no_rival() -> None:
    for seed in range(4):
        free, strict = (
            least_seen(*setting(seed, localization="error_reduction", min_visible=share)) for share in (0.0, 0.6)
        )
        assert free < 0.5
        assert strict >= 0.599


@given(seed=integers(0, 99), background=sampled_from(["still", "black"]))
@settings(deadline=None, max_examples=8)
def test_errors_fall_by_the_error_reductions_and_end_at_the_error_of_the_picture(
    seed: int, background: Background
) -> None:
    model, image = setting(seed, background=background)
    seen = inspect(model, image)
    for step, following in pairwise(seen.steps):
        assert step.chosen is not None
        assert following.error == pytest.approx(step.error - step.chosen.error_reduction, rel=1e-4, abs=1e-3)
    assert seen.steps[-1].error == pytest.approx(seen.error, rel=1e-3, abs=1e-2)


def is_solid(model: PCDNet, image: Tensor, prototype: int, position: tuple[int, int]) -> bool:
    """Whether a candidate, painted on the whole canvas in its best colour, lowers the error in enough pixels."""
    bank, (C, H, W) = model.bank(), image.shape
    M, T = (on_canvas(values[prototype], *position, (H, W)) for values in (bank.masks, bank.prototypes))
    behind = torch.zeros_like(image) if bank.background is None else bank.background.detach()
    colour = ((image - (1 - M) * behind) * M * T).sum(dim=(1, 2)) / (M * T).square().sum()
    painted = M * T * colour.clamp(0, model.config.max_colour)[:, None, None] + (1 - M) * behind
    fall = ((image - behind).square() - (image - painted).square()).sum(dim=0)
    return bool(M[fall > LEAST_FALL * C].sum() >= model.config.min_solid * M.sum())


def assert_candidates_are_the_solid_peaks(model: PCDNet, image: Tensor, proposals: tuple[Proposal, ...]) -> int:
    """The candidates of every prototype are the peaks of its map, minus those that are not solid; how many those are.

    Where nothing would be gained a map is flat but for rounding, so what is that low is left out.
    """
    flimsy, reach = 0, model.plan((image.shape[1], image.shape[2])).localizer.reach
    for p in range(model.config.num_prototypes):
        shown = locate(model, image, p)
        height, row, column = (x.tolist() for x in top_peaks(shown.heat, model.config.peaks_per_prototype, reach))
        places = [(shown.origin[0] + r, shown.origin[1] + c) for r, c in zip(row, column, strict=True)]
        peaks = [(high, place) for high, place in zip(height, places, strict=True) if high > 0.01]
        solid = [(high, place) for high, place in peaks if is_solid(model, image, p, place)]
        mine = [proposal for proposal in proposals if proposal.prototype == p and proposal.height > 0.01]
        assert [proposal.position for proposal in mine] == [place for _, place in solid]
        assert [proposal.height for proposal in mine] == pytest.approx([high for high, _ in solid], rel=1e-3, abs=1e-3)
        flimsy += len(peaks) - len(solid)
    return flimsy


def test_the_candidates_of_a_strict_search_are_the_solid_peaks_of_the_map_that_is_shown() -> None:
    flimsy = 0
    for seed in range(4):
        model, image = setting(seed, background="still", **STRICT)
        flimsy += assert_candidates_are_the_solid_peaks(model, image, inspect(model, image).proposals)
    assert flimsy > 0


@given(seed=integers(0, 99), background=sampled_from(["still", "black"]))
@settings(deadline=None, max_examples=8)
def test_the_candidates_are_the_peaks_of_the_map_that_is_shown(seed: int, background: Background) -> None:
    model, image = setting(seed, background=background)
    proposals = inspect(model, image).proposals
    for p in range(4):
        shown = locate(model, image, p)
        height, row, column = top_peaks(shown.heat, model.config.peaks_per_prototype)
        top, left = shown.origin
        expected = [(top + r, left + c) for r, c in zip(row.tolist(), column.tolist(), strict=True)]
        mine = [proposal for proposal in proposals if proposal.prototype == p]
        assert [proposal.position for proposal in mine] == expected[: len(mine)]
        assert [proposal.height for proposal in mine] == pytest.approx(height.tolist()[: len(mine)], abs=1e-5)


def test_rivals_are_sorted_and_of_different_prototypes() -> None:
    model, image = setting(3)
    for step in inspect(model, image).steps:
        reductions = [rival.error_reduction for rival in step.rivals]
        assert reductions == sorted(reductions, reverse=True)
        kinds = [rival.prototype for rival in step.rivals]
        assert len(kinds) == len(set(kinds))
        if step.chosen is not None:
            assert all(rival.error_reduction <= step.chosen.error_reduction + 1e-4 for rival in step.rivals)


@pytest.mark.parametrize(("restarts", "depth_order"), [(6, False), (0, True)])
def test_refinement_and_depth_order_are_reported_where_they_changed_something(restarts: int, depth_order: bool) -> None:
    reported = 0
    for seed in range(6 if restarts else 30):
        model, image = setting(seed, restarts=restarts, depth_order=depth_order)
        seen = inspect(model, image)
        if seen.refined:
            assert seen.error < seen.steps[-1].error
        else:
            assert seen.error == pytest.approx(seen.steps[-1].error, rel=1e-3, abs=1e-2)
        reported += seen.refined
    assert 0 < reported < seed + 1


def posed_setting(factor: int = 1, angles: tuple[float, float] = (90, 270), **fields: Any) -> tuple[PCDNet, Tensor]:
    """A model of an L and an F in poses, and an image of both that are turned apart from each other."""
    masks, size = letters(factor), [48 * factor, 56 * factor]
    poses: dict[str, Any] = {"rotations": 8, "scales": 2, "scale_range": (0.8, 1.0), "mirror": True, **fields}
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=(15 * factor, 15 * factor),
        max_objects=3,
        peaks_per_prototype=3,
        channels=3,
        localization="error_reduction",
        min_error_reduction=2.0,
        restarts=0,
        depth_order=False,
        **poses,
    )
    model = PCDNet.from_bank(PrototypeBank(torch.ones_like(masks), masks), config)
    things = [
        {"prototype": 0, "position": [6 * factor, 8 * factor], "colour": [0.9, 0.3, 0.2], "angle": angles[0]},
        {"prototype": 1, "position": [22 * factor, 31 * factor], "colour": [0.2, 0.7, 0.9], "angle": angles[1]},
    ]
    image = model.render(Decomposition.from_dict({"size": size, "name": "", "objects": things}, 3))
    return model, torch.from_numpy(image).permute(2, 0, 1).contiguous()


def assert_steps_end_at_what_is_found(model: PCDNet, image: Tensor) -> Inspection:
    """Prototypes, places and poses of the steps are those of the network, and errors fall to its error."""
    seen, found = inspect(model, image), model.decompose(image.permute(1, 2, 0).numpy())
    chosen = sorted((step.chosen for step in seen.steps if step.chosen), key=lambda thing: thing.position)
    assert len(chosen) == len(found) == 2
    for thing, n in zip(chosen, found.positions[:, 0].argsort(), strict=True):
        assert thing.pose is not None
        assert thing.prototype == found.prototype_ids[n]
        assert thing.position == pytest.approx(found.positions[n].tolist(), abs=0.1)
        assert (thing.pose.angle - float(found.angles[n]) + 180) % 360 - 180 == pytest.approx(0, abs=1)
        assert (thing.pose.scale, thing.pose.mirrored) == (pytest.approx(float(found.scales[n]), abs=0.02), False)
    for step, following in pairwise(seen.steps):
        assert step.chosen is not None
        assert following.error == pytest.approx(step.error - step.chosen.error_reduction, abs=1e-2)
    assert seen.error == pytest.approx(found.error, abs=1e-2)
    return seen


def test_steps_among_variants_are_the_networks() -> None:
    seen = assert_steps_end_at_what_is_found(*posed_setting(fine_poses=False))
    assert not seen.fitted
    assert not seen.refined
    assert {proposal.pose.mirrored for proposal in seen.proposals if proposal.pose} == {False, True}


def test_steps_among_fitted_poses_say_what_was_proposed() -> None:
    seen = assert_steps_end_at_what_is_found(*posed_setting(angles=(97, 262), subpixel=True))
    assert seen.fitted
    for step in seen.steps[:-1]:
        assert step.chosen is not None
        assert step.chosen.height is None
        proposed = step.chosen.proposed
        assert proposed is not None
        assert proposed.angle in (90, 270)
        assert (step.chosen.prototype, proposed) in [(each.prototype, each.pose) for each in seen.proposals]


@pytest.mark.parametrize(("factor", "fine"), [(1, False), (1, True), (3, True)])
def test_proposals_in_poses_are_as_high_as_the_maps_that_are_shown(factor: int, fine: bool) -> None:
    model, image = posed_setting(factor, rotations=4, fine_poses=fine)
    proposals, shown = inspect(model, image).proposals, locate(model, image, 1)
    assert shown.step == (2 if factor == 3 else 1)
    assert len(shown.poses) == model.config.poses
    heights = [tried.height for tried in shown.poses]
    assert shown.pose == heights.index(max(heights))
    best = shown.poses[shown.pose].pose
    assert (best.angle, best.scale, best.mirrored) == (270, 1, False)
    for number, tried in enumerate(shown.poses):
        one = locate(model, image, 1, number)
        assert float(one.heat.max()) == tried.height
        for each in proposals:
            if each.prototype != 1 or each.pose != tried.pose:
                continue
            row, column = ((at - start) // one.step for at, start in zip(each.position, one.origin, strict=True))
            assert each.height == pytest.approx(float(one.heat[int(row), int(column)]), abs=1e-3)
    highest = max((each for each in proposals if each.prototype == 1), key=lambda each: each.height or 0)
    assert highest.pose == best
    assert highest.height == max(heights)
    assert highest.position == pytest.approx((22 * factor, 31 * factor), abs=shown.step)
    middle = shown.origin[0] + shown.step * divmod(int(shown.heat.argmax()), shown.heat.shape[1])[0] + shown.middle[0]
    assert middle == pytest.approx((22 + 7.5) * factor, abs=2 * factor)


def test_a_pose_that_there_is_not_is_refused() -> None:
    with pytest.raises(PcdnetError, match="there is no pose 32; give a number of 0 to 31"):
        locate(*posed_setting(), 0, 32)


def test_where_nothing_is_nothing_is_proposed_in_any_pose() -> None:
    model, image = posed_setting()
    seen = inspect(model, torch.zeros_like(image))
    assert seen.proposals == ()
    assert [step.chosen for step in seen.steps] == [None]
