"""A file finds objects in the coarse poses of its model."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
import torch

from pcdnet.config import Background, ColourModule, Localization
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import poses, to_onnx
from pcdnet.model.onnx.file import MEANING
from pcdnet.model.onnx.parity import compare, run, sample
from pcdnet.model.poses.pose import CoarsePoses
from pcdnet.model.poses.variants import in_coarse_poses
from tests.model.onnx.models import SIZE, agree, posed_model, random_model

CASES: list[tuple[ColourModule, Localization, Background, dict[str, Any]]] = [
    ("least_squares", "phase", "black", {}),
    ("least_squares", "error_reduction", "still", {"min_inside": 0.7, "overhang": 0.7}),
    ("network", "phase", "still", {}),
    ("network", "error_reduction", "black", {"min_solid": 0.4}),
    ("none", "error_reduction", "still", {"min_visible": 0.5, "labels": "change"}),
]


@pytest.mark.parametrize(("colour", "localization", "background", "further"), CASES)
def test_the_file_finds_what_the_model_finds_in_coarse_poses(
    colour: ColourModule, localization: Localization, background: Background, further: dict[str, Any]
) -> None:
    objects = 0
    for seed, channels in ((1, 3), (2, 1)):
        model, scenes = posed_model(seed, channels, background, colour=colour, localization=localization, **further)
        objects += agree(model, torch.stack(scenes))
    assert objects > 10, "too few objects are found for this to mean anything"


@pytest.mark.parametrize(
    "turning",
    [
        {"rotations": 4, "rotation_range": (0.0, 360.0), "scales": 1, "scale_range": (1.0, 1.0), "mirror": False},
        {"rotations": 1, "rotation_range": (0.0, 360.0), "scales": 1, "scale_range": (1.0, 1.0), "mirror": True},
        {"rotations": 3, "rotation_range": (0.0, 360.0), "scales": 2, "scale_range": (0.6, 2.15), "mirror": False},
    ],
    ids=["quarters", "mirror images", "frames larger than the images"],
)
def test_any_poses_are_looked_up(turning: dict[str, Any]) -> None:
    model, scenes = posed_model(3, 1, **turning, localization="error_reduction")
    images = torch.stack(scenes)
    assert agree(model, images) > 5
    found = run(to_onnx(model, SIZE, len(images)), images)
    there = found["prototype"] >= 0
    known = CoarsePoses.of(model.config, images).values[:, :3]
    made = torch.stack([found[name].float() for name in poses.MEANING], dim=-1)
    assert ((made[there][:, None] == known).all(-1).any(-1)).all()
    assert len({tuple(pose) for pose in made[there].tolist()}) > 1
    assert not made[~there].any()
    assert found["mirrored"].dtype == torch.bool


def test_the_file_says_which_poses_it_knows() -> None:
    model, _ = posed_model(0, fine_poses=True, subpixel=True)
    content = to_onnx(model, SIZE, 2)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    shapes = {each.name: (each.type, each.shape) for each in (*session.get_inputs(), *session.get_outputs())}
    assert list(shapes) == [*MEANING, *poses.MEANING]
    assert shapes["position"] == ("tensor(int64)", [2, 4, 2])
    assert shapes["angle"] == shapes["scale"] == ("tensor(float)", [2, 4])
    assert shapes["mirrored"] == ("tensor(bool)", [2, 4])
    words = session.get_modelmeta().custom_metadata_map
    assert words["selection"].endswith("restarts = 0, depth_order = false, fine_poses = false and subpixel = false")
    assert (words["prototypes"], words["rotations"], json.loads(words["scale_range"])) == ("4", "2", [0.8, 1.2])
    known = CoarsePoses.of(model.config, torch.zeros(())).values[:, :3]
    torch.testing.assert_close(torch.tensor(json.loads(words["poses"])), known)


def test_what_lies_between_coarse_poses_is_left_out() -> None:
    """The file is that of the model without them, and is compared with it."""
    fine, _ = posed_model(5, fine_poses=True, subpixel=True)
    coarse = PCDNet.from_bank(fine.bank().map(torch.Tensor.detach), in_coarse_poses(fine.config))
    one, other = (onnx.load_from_string(to_onnx(model, SIZE, 4)) for model in (fine, coarse))
    assert one.graph == other.graph
    assert one.metadata_props != other.metadata_props
    parity = compare(one.SerializeToString(), fine, sample(fine, SIZE, 4))
    assert parity.as_good
    assert parity.objects == parity.shared > 4
    other_way, _ = posed_model(5, rotation_range=(-60.0, 80.0))
    assert not compare(to_onnx(other_way, SIZE, 4), fine, sample(fine, SIZE, 4)).as_good


def test_what_only_moves_by_fractions_of_a_pixel_has_the_file_of_whole_ones() -> None:
    moving, scenes = random_model(1, subpixel=True)
    still, _ = random_model(1)
    one, other = (onnx.load_from_string(to_onnx(model, SIZE, 2)) for model in (moving, still))
    assert one.graph == other.graph
    selection = {each.key: each.value for each in one.metadata_props}["selection"]
    assert selection.endswith("restarts = 0, depth_order = false and subpixel = false")
    parity = compare(one.SerializeToString(), moving, torch.stack(scenes[2:4]))
    assert parity.objects == parity.shared > 2


def test_images_drawn_for_a_comparison_have_objects_in_poses() -> None:
    model, _ = posed_model(0, localization="error_reduction")
    images = sample(model, SIZE, 4)
    upright = dataclasses.replace(model.config, mirror=False, rotations=1, rotation_range=(0.0, 360.0))
    drawn = [PCDNet.from_bank(model.bank(), config) for config in (model.config, upright)]
    with torch.inference_mode():
        errors = [float((each(images).reconstruction - images).square().mean()) for each in drawn]
    assert errors[0] < 0.7 * errors[1]


def test_a_bank_that_no_file_has_room_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = posed_model(0)
    monkeypatch.setattr(poses, "MOST_BYTES", 10_000)
    with pytest.raises(
        PcdnetError, match=r"4 prototypes in 8 poses of \d+x\d+ pixels are too large .*; train with fewer"
    ):
        to_onnx(model, SIZE)
