"""Laws of the file itself: what it says, what it depends on, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from importlib.metadata import version

import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest

from pcdnet.config import ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.model.onnx import to_onnx
from pcdnet.model.onnx.file import CHOICES, FOLLOWED, MEANING
from pcdnet.names import Names
from tests.model.onnx.models import SIZE, random_model


def test_the_file_says_what_it_is() -> None:
    model, _ = random_model(0, 1, max_objects=3)
    model.names = Names(count=4, given=dict(enumerate("abcd")))
    content = to_onnx(model, (40, 50), 2)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    shapes = {each.name: (each.type, each.shape) for each in (*session.get_inputs(), *session.get_outputs())}
    assert list(shapes) == list(MEANING)
    assert shapes["images"] == shapes["reconstruction"] == ("tensor(float)", [2, 1, 40, 50])
    assert shapes["prototype"] == ("tensor(int64)", [2, 3])
    assert shapes["position"] == ("tensor(int64)", [2, 3, 2])
    assert shapes["colour"] == ("tensor(float)", [2, 3, 1])
    assert shapes["gain"] == ("tensor(float)", [2, 3])
    assert shapes["instances"] == ("tensor(int64)", [2, 40, 50])
    words = session.get_modelmeta().custom_metadata_map
    assert words["pcdnet_version"] == version("pcdnet")
    assert json.loads(words["image_size"]) == [40, 50]
    assert json.loads(words["prototype_names"]) == ["a", "b", "c", "d"]
    assert words["preprocessing"].startswith("grey pixels of 0 to 255")


def test_backgrounds_of_each_image_and_further_rounds_are_refused() -> None:
    model, _ = random_model(0)
    given = model.config
    for field, value, instead in (
        ("background", "plain", "'black'"),
        ("background", "moving", "'black'"),
        ("rounds", 2, "1"),
    ):
        model.config = dataclasses.replace(given, **{field: value})  # type: ignore[arg-type]
        message = f"{field}={value!r} cannot be expressed in an ONNX file; train with {field}={instead}, or use"
        with pytest.raises(PcdnetError, match=message):
            to_onnx(model, SIZE)


def test_the_file_depends_on_the_model_alone() -> None:
    model, _ = random_model(0, colour="network")
    content = to_onnx(model, SIZE)
    assert to_onnx(model.train(), SIZE) == content
    model.config = dataclasses.replace(model.config, restarts=6)
    assert to_onnx(model, SIZE) == content
    assert model.training


def test_the_file_stays_small_for_large_batches() -> None:
    model, _ = random_model(0, background="still")
    assert len(to_onnx(model, SIZE, 64)) < len(to_onnx(model, SIZE)) + 20_000


def test_mistakes_are_reported_with_their_cure() -> None:
    model, _ = random_model(0)
    with pytest.raises(PcdnetError, match="images of 10x30 are smaller than the prototypes \\(11x9\\); give a larger"):
        to_onnx(model, (10, 30))
    with pytest.raises(PcdnetError, match="the batch is 0; give"):
        to_onnx(model, SIZE, 0)
    with pytest.raises(PcdnetError, match="the batch is 2147483648; give .* from 1 to 4096"):
        to_onnx(model, SIZE, 2**31)
    with pytest.raises(PcdnetError, match="images of 5000x30 are too large for an ONNX file; cut or shrink"):
        to_onnx(model, (5000, 30))
    model, _ = random_model(0, background="still")
    with pytest.raises(PcdnetError, match="images of 31x27 do not fit the model's background; use size=.30, 27."):
        to_onnx(model, (31, 27))


def test_every_field_of_the_configuration_is_followed_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {field.name for field in dataclasses.fields(ModelConfig)} == {*FOLLOWED, *CHOICES}
    model, _ = random_model(0, min_solid=0.3, localization="error_reduction")
    monkeypatch.setattr("pcdnet.model.onnx.file.FOLLOWED", tuple({*FOLLOWED} - {"min_solid"}))
    with pytest.raises(
        PcdnetError, match="min_solid=0.3 cannot be expressed in an ONNX file; train with min_solid=0.0"
    ):
        to_onnx(model, SIZE)
    model.config = dataclasses.replace(model.config, min_solid=0.0)
    assert to_onnx(model, SIZE)
    monkeypatch.setitem(CHOICES, "localization", ("phase",))
    with pytest.raises(PcdnetError, match="localization='error_reduction' cannot be expressed in an ONNX file"):
        to_onnx(model, SIZE)
