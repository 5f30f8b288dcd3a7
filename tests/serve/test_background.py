"""Laws of backgrounds that differ from picture to picture: scenes are painted over their own."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from benchmarks.serve import serving
from PIL import Image

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.serve import messages
from pcdnet.serve.messages import Array
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.workbench import Workbench
from tests.serve.conftest import make_own_workbench
from tests.serve.test_app import complaint, scene_of, values


@pytest.fixture(scope="module", params=["plain", "moving"])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """A workbench whose model makes a background for each picture."""
    return make_own_workbench(tmp_path_factory.mktemp("runs") / "own", request.param)


@pytest.fixture(scope="module")
def asked(own: Workbench) -> Iterator[httpx.Client]:
    """A client of its server."""
    with serving(own) as where, httpx.Client(base_url=where, timeout=60) as made:
        yield made


def levels(picture: np.ndarray) -> np.ndarray:
    """Values in [0, 1] as they are sent."""
    sent: np.ndarray = np.rint(255 * picture.clip(0, 1)).astype(np.uint8)
    return sent


def sample(asked: httpx.Client, number: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """A sample decomposed, as a scene to send back, and its background."""
    answer = asked.post("/api/decompose", json={"picture": number})
    background = answer.json()["background"]
    return {**scene_of(answer), "background": background}, values(background)


def test_every_answer_has_the_background_that_the_model_made(own: Workbench, asked: httpx.Client) -> None:
    known = asked.get("/api/model").json()
    assert not known["fixed"]
    assert known["background"] is None
    made = [sample(asked, n)[1] for n in range(3)]
    for n, background in enumerate(made):
        np.testing.assert_array_equal(background, own.model.decompose(own.browsing.pixels(n)).background)
    assert np.abs(made[0] - made[1]).max() > 0.02


def test_an_edited_scene_is_painted_over_its_own_background(own: Workbench, asked: httpx.Client) -> None:
    scene, background = sample(asked)
    scene["objects"] = scene["objects"][:1]
    scene["objects"][0]["position"] = [-3, 20]
    expected = own.model.render(dataclasses.replace(Decomposition.from_dict(scene), background=background))
    for picture in (scene["image"], None):
        painted = asked.post("/api/render", json={**scene, "image": picture}).json()
        assert np.array_equal(values(painted["reconstruction"]), levels(expected))
        assert np.array_equal(values(painted["background"]), background)
    assert (values(painted["instances"])[20:] == 0).all()
    assert np.array_equal(values(painted["reconstruction"])[20:], levels(background)[20:])
    png = asked.post("/api/export", json={"scene": scene, "format": "png"}).content
    with Image.open(io.BytesIO(png)) as file:
        assert np.abs(np.asarray(file)[..., :1] - levels(expected).astype(int)).max() <= 1


def test_without_its_background_a_scene_needs_the_picture(asked: httpx.Client) -> None:
    scene, background = sample(asked)
    scene = {**scene, "objects": [], "background": None}
    painted = asked.post("/api/render", json=scene).json()
    assert np.array_equal(values(painted["reconstruction"]), levels(values(painted["background"])))
    assert np.abs(values(painted["background"]) - background).max() < 0.1
    sentence = complaint(asked.post("/api/render", json={**scene, "image": None}), 422)
    assert "the background of this model follows from the image; give image" in sentence


@pytest.mark.parametrize("wrong", ["size", "type", "numbers"])
def test_a_background_that_is_none_is_refused(wrong: str, asked: httpx.Client) -> None:
    scene, background = sample(asked)
    other = {"size": background[1:], "type": levels(background), "numbers": background + np.float32(np.inf)}[wrong]
    message = {**scene, "background": Array.from_numpy(other).model_dump()}
    assert "send 40x56x1 finite numbers of float32" in complaint(asked.post("/api/render", json=message), 422)


def test_a_background_for_all_is_in_no_answer_and_no_scene(client: httpx.Client) -> None:
    answer = client.post("/api/decompose", json={"picture": 0})
    assert answer.json().keys() == {"scene", "image", "reconstruction", "instances", "at_limit"}
    scene = scene_of(answer)
    assert client.post("/api/render", json=scene).json().keys() == answer.json().keys() - {"at_limit"}
    behind = Array.from_numpy(np.zeros((35, 35, 3), np.float32)).model_dump()
    refused = client.post("/api/render", json={**scene, "background": behind})
    assert "one background for all pictures; leave out background" in complaint(refused, 422)


def test_a_picture_larger_than_a_moving_background_is_refused_with_an_offer_that_works(tmp_path: Path) -> None:
    own = make_own_workbench(tmp_path / "run", "moving")
    large = np.zeros((61, 56, 1), np.uint8)
    message = messages.Picture(image=Array.from_numpy(large))
    with pytest.raises(Refusal, match=r"61x56 pixels are more than the model's background shows \(60x80\)") as refused:
        own.decompose(message)
    assert refused.value.fit
    assert own.decompose(message.model_copy(update={"fit": True})).scene["size"] == [40, 56]
    with pytest.raises(PcdnetError, match="larger than the background, 60x80"):
        own.render(messages.Scene(size=(61, 56), objects=[], image=message.image))
