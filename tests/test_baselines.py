"""Laws of the baselines: slots share every pixel, training lowers the error, and what was planted is found."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.baselines import __main__ as command
from benchmarks.baselines import background_subtraction, learning, template_matching
from benchmarks.baselines.published import PUBLISHED
from benchmarks.baselines.slot_attention import SlotAttention, slot_attention
from benchmarks.baselines.slot_mlp import slot_mlp
from benchmarks.models import true_bank

from pcdnet.data import tetrominoes
from pcdnet.metrics import score, score_detections
from pcdnet.model.bank import PrototypeBank
from pcdnet.scene import Boxes, Scenes

MODELS = [slot_attention, slot_mlp]


@pytest.mark.parametrize("make", MODELS)
def test_the_shares_of_the_slots_sum_to_one_in_every_pixel(make: learning.Maker, rng: torch.Generator) -> None:
    images = torch.rand(2, 3, 20, 25, generator=rng)
    found = make((20, 25))(images, rng)
    assert found.reconstruction.shape == images.shape
    assert found.masks.shape == (2, 4, 20, 25)
    torch.testing.assert_close(found.masks.sum(dim=1), torch.ones(2, 20, 25))
    assert set(found.labels().unique().tolist()) <= {1, 2, 3, 4}


@pytest.mark.parametrize("make", MODELS)
def test_a_few_steps_lower_the_error(make: learning.Maker) -> None:
    images = 255 - tetrominoes.generate(16, seed=0).images[:, ::3, ::3]  # over white there is much to learn at once
    losses = learning.learn(make, images, seed=0, seconds=600, batch=8, steps=25).losses
    assert len(losses) == 25
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])


def test_learning_ends_when_its_processor_time_is_over() -> None:
    images = tetrominoes.generate(8, seed=0).images[:, ::5, ::5]
    learned = learning.learn(slot_mlp, images, seed=0, seconds=0.2, batch=2)
    assert learned.seconds >= 0.2
    assert learned.losses


def test_the_same_seed_learns_the_same() -> None:
    images = tetrominoes.generate(8, seed=0).images[:, ::5, ::5]
    one, two = (learning.learn(slot_attention, images, seed=3, seconds=600, batch=2, steps=3) for _ in range(2))
    assert one.losses == pytest.approx(two.losses, rel=1e-5)  # threads add up in any order


def test_the_learning_rate_warms_up_and_halves_five_times() -> None:
    assert learning.rate(0) < 0.02
    assert learning.rate(learning.WARM_UP) == pytest.approx(1, abs=0.1)
    assert learning.rate(1) == pytest.approx(0.5**5)


def test_slots_do_not_depend_on_the_order_of_the_pixels(rng: torch.Generator) -> None:
    attention, features = SlotAttention(), torch.randn(1, 4, 5, 32, generator=rng)
    turned = features.flip(1, 2)
    one, two = (attention(each, torch.Generator().manual_seed(1)) for each in (features, turned))
    torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)


def test_slot_attention_has_about_the_published_number_of_parameters() -> None:
    published = next(row["parameters"] for row in PUBLISHED if row["model"] == "Slot Attention")
    assert isinstance(published, int)
    ours = sum(parameter.numel() for parameter in slot_attention((35, 35)).parameters())
    assert abs(ours - published) < 0.01 * published


def test_template_matching_finds_planted_templates() -> None:
    scenes = tetrominoes.generate(20, seed=1)
    templates = template_matching.Template.of(true_bank())
    found = [template_matching.find(image, templates) for image in scenes.images]
    assert score(scenes.labels, [each.labels for each in found]).fg_ari > 0.97
    matches = [each.matches(true) for each, true in zip(found, scenes.labels, strict=True)]
    f1 = score_detections(matches).f1
    assert f1 is not None
    assert f1 > 0.95
    kinds = [set(each.templates.tolist()) for each in found]
    right = [kind == set(true) for kind, true in zip(kinds, scenes.shapes.tolist(), strict=True)]
    assert np.mean(right) > 0.9


def test_a_template_fits_its_object_in_any_brightness_and_contrast(rng: torch.Generator) -> None:
    pattern = torch.rand(1, 6, 6, generator=rng)
    (template,) = template_matching.Template.of(PrototypeBank(pattern, torch.ones(1, 6, 6)))
    image = torch.zeros(20, 20)
    image[5:11, 8:14] = 0.3 * pattern[0] + 0.2
    fits = template_matching.correlation(image, template)
    assert divmod(int(fits.argmax()), fits.shape[1]) == (5, 8)
    assert float(fits.max()) == pytest.approx(1, abs=1e-3)


def test_nothing_is_found_in_a_flat_image_and_empty_templates_are_none() -> None:
    bank = PrototypeBank(torch.rand(2, 4, 4), torch.stack([torch.zeros(4, 4), torch.ones(4, 4)]))
    templates = template_matching.Template.of(bank)
    assert len(templates) == 1
    found = template_matching.find(np.full((9, 9, 3), 80, np.uint8), templates)
    assert len(found.fits) == 0
    assert not found.labels.any()


def street() -> tuple[Scenes, np.ndarray]:
    """Squares that come by on a still ground, and the ground."""
    rng = np.random.default_rng(0)
    ground = rng.integers(60, 120, (50, 60, 3), dtype=np.uint8)
    images, boxes = [], []
    for number in range(9):
        image = ground.copy()
        places = [(3 + 4 * number, 2, 12, 12), (20, 3 + 4 * number + 15, 10, 11)]
        for top, left, height, width in places:
            image[top : top + height, left : left + width] = 230
        images.append(image)
        boxes.append(Boxes.from_rows([[*place, 0] for place in places]))
    return Scenes(images=np.stack(images), boxes=boxes, kinds=("square",)), ground


def test_background_subtraction_finds_squares_on_a_still_ground() -> None:
    scenes, ground = street()
    background = background_subtraction.median_background(scenes.images)
    np.testing.assert_array_equal(background, ground)
    assert background_subtraction.scored(scenes, background).f1 == 1
    assert len(background_subtraction.find(ground, background)) == 0


def test_cameras_that_are_missing_are_left_out_with_the_reason(tmp_path: Path) -> None:
    assert [row["left_out"] for row in command.traffic(tmp_path)] == ["its frames are not beside the project"] * 2


def test_the_command_ends_in_one_line_of_json_with_all_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["baselines", "--minutes", "0.01", "--scenes", "2", "--train-scenes", "64"]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(command, "VALID_SCENES", 2)
    monkeypatch.setattr(command, "traffic", lambda: [{"model": "x", "data": "us101-a", "left_out": "why"}])
    command.main()
    lines = capsys.readouterr().out.splitlines()
    line = json.loads(lines[-1])
    assert line["benchmark"] == "baselines"
    assert [row["model"] for row in line["rows"]] == ["pcdnet", "Slot Attention", "Slot MLP", "template matching"]
    ours, *slots, _ = line["rows"]
    assert all(row["core_minutes"] >= ours["core_minutes"] for row in slots)
    assert [row["model"] for row in line["published"]] == ["Slot MLP", "Slot Attention", "ULID", "IODINE", "PCDNet"]
    assert "x on us101-a is left out: why" in lines
    assert any("PCDNet, published" in text for text in lines)
