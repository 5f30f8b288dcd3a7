"""Laws of learning again in the browser: it changes nothing until it is adopted, and what was comes back."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from benchmarks.serve import serving
from PIL import Image

from pcdnet.run import RunFolder
from pcdnet.serve.workbench import Workbench
from tests.training.corrected import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that knows crosses and bars, and pictures with tall things, too."""
    return make_run(tmp_path_factory.mktemp("learning"))


@pytest.fixture
def client(run: RunFolder) -> Iterator[httpx.Client]:
    """A client of a server for it."""
    with serving(Workbench.for_run(run)) as site, httpx.Client(base_url=site, timeout=120) as made:
        yield made


def files(run: RunFolder) -> dict[str, bytes]:
    """What makes up the model."""
    names = ("config.toml", "weights.safetensors", "names.toml", "origin.json")
    return {name: (run.path / name).read_bytes() for name in names}


def learned(client: httpx.Client) -> dict[str, Any]:
    """Learning again, to its end."""
    assert client.post("/api/learning", json={"minutes": 0.2}).status_code == 202
    assert client.post("/api/learning", json={"minutes": 0.2}).status_code == 409
    while (told := client.get("/api/learning").json())["state"] == "running":
        time.sleep(0.1)
    return dict(told)


def draw(client: httpx.Client) -> int:
    """A box around the tall thing of the first picture, which the others are missing, too."""
    image = np.asarray(Image.open(io.BytesIO(client.get("/api/pictures/0").content)))
    rows, columns = np.nonzero(image[20:, :20].any(axis=-1))
    box = [int(rows.min()) + 19, max(0, int(columns.min()) - 1), 17, 7]
    answer = client.post("/api/corrections", json={"picture": 0, "box": box, "name": "tall"})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def test_a_drawn_box_is_learned_adopted_and_taken_back(client: httpx.Client, run: RunFolder) -> None:
    before = files(run)
    number = draw(client)
    kept = client.get("/api/corrections").json()["drawn"]
    assert [(each["id"], each["picture"], each["name"]) for each in kept] == [(number, 0, "tall")]
    told = learned(client)
    assert told["state"] == "done", told["message"]
    assert told["after"]["explained"] > told["before"]["explained"]
    assert (told["before"]["prototypes"], told["after"]["prototypes"]) == (2, 3)
    assert files(run) == before, "nothing is changed yet"
    pair = client.get("/api/learning/pictures/1").json()
    assert [len(pair[which]["scene"]["objects"]) for which in ("before", "after")] == [2, 3]
    assert client.post("/api/learning/adopt").json()["former"] == 1
    assert client.get("/api/model").json()["names"] == ["cross", "bar", "tall"]
    assert len(client.post("/api/decompose", json={"picture": 1}).json()["scene"]["objects"]) == 3
    assert client.get("/api/corrections").json() == {"drawn": [], "removed": []}
    client.post("/api/learning/restore").raise_for_status()
    assert files(run) == before
    assert client.get("/api/model").json()["names"] == ["cross", "bar"]


def test_what_is_cancelled_leaves_the_run_as_it_was(client: httpx.Client, run: RunFolder) -> None:
    before = files(run)
    client.post("/api/learning", json={"minutes": 5}).raise_for_status()
    assert client.delete("/api/learning").json()["state"] == "cancelled"
    assert files(run) == before
    assert not run.candidate.exists()
    assert client.post("/api/learning/adopt").status_code == 422


def test_what_makes_no_sense_is_refused(client: httpx.Client) -> None:
    for body in ({"remove": 99}, {"picture": 0, "box": [0, 0, 1, 1]}, {"picture": 999, "box": [0, 0, 9, 9]}, {}):
        assert client.post("/api/corrections", json=body).status_code in (404, 422), body
    assert client.delete("/api/corrections/77").status_code == 404
    assert client.post("/api/learning", json={"minutes": 1e9}).status_code == 422
    assert client.get("/api/learning/pictures/0").status_code == 404
