"""Laws of the folder's routes: the strip, edits that are kept, counts that follow them, and results as files."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from benchmarks.serve import serving
from PIL import Image

from pcdnet.data.strip import open_strip
from pcdnet.data.tetrominoes import generate
from pcdnet.edits import Edits
from pcdnet.run import RunFolder, load
from pcdnet.serve.workbench import Workbench
from tests.runs import true_run

COUNT = 9
BROKEN = 4


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of scenes, one of which is damaged."""
    folder = tmp_path_factory.mktemp("pictures")
    for number, image in enumerate(generate(COUNT, seed=5).images):
        Image.fromarray(image).save(folder / f"{number}.png")
    (folder / f"{BROKEN}.png").write_bytes(b"\x89PNG no more")
    return folder


@pytest.fixture
def bench(pictures: Path, tmp_path: Path) -> Workbench:
    """The workbench of a run of one's own, with those pictures."""
    run = true_run(tmp_path / "run").path
    return Workbench(folder=run, model=load(run), pictures=open_strip(pictures))


@pytest.fixture
def client(bench: Workbench) -> Iterator[httpx.Client]:
    """A client of its server."""
    with serving(bench) as site, httpx.Client(base_url=site, timeout=60) as made:
        yield made


def counted(client: httpx.Client) -> dict[str, Any]:
    """The counts when all is counted."""
    client.post("/api/counts").raise_for_status()
    while (counts := client.get("/api/counts").json())["state"] == "running":
        time.sleep(0.02)
    assert counts["state"] == "done", counts["message"]
    return dict(counts)


def totals(counts: dict[str, Any]) -> dict[str, int]:
    """Objects by kind, of those kinds that there are objects of."""
    return {kind["name"]: kind["objects"] for kind in counts["kinds"] if kind["objects"]}


def result(client: httpx.Client, kind: str) -> httpx.Response:
    """The file of results."""
    assert client.post("/api/results", json={"format": kind}).status_code == 202
    while (answer := client.get(f"/api/results/{kind}")).status_code == 202:
        time.sleep(0.02)
    return answer.raise_for_status()


def scene(found: dict[str, Any], *, without: int = 0) -> dict[str, Any]:
    """A scene to send back, of what was found but for the first objects."""
    things = [{key: thing[key] for key in ("prototype", "position", "colour")} for thing in found["scene"]["objects"]]
    return {"size": found["scene"]["size"], "objects": things[without:]}


def test_the_strip_lists_names_and_damage(client: httpx.Client) -> None:
    while None in [each["size"] or each["problem"] for each in client.get("/api/pictures").json()["pictures"]]:
        pass  # sizes are read a few at a time, as others are waiting
    listed = client.get("/api/pictures", params={"start": 2, "count": 4}).json()
    assert listed["count"] == COUNT
    assert [each["name"] for each in listed["pictures"]] == ["2.png", "3.png", "4.png", "5.png"]
    assert [each["size"] for each in listed["pictures"]] == [[35, 35], [35, 35], None, [35, 35]]
    assert [each["problem"] is None for each in listed["pictures"]] == [True, True, False, True]
    for path in (f"/api/pictures/{BROKEN}", f"/api/pictures/{BROKEN}/thumbnail"):
        assert client.get(path).status_code == 422
    assert client.get(f"/api/pictures/{COUNT}").status_code == 404
    assert client.get("/api/pictures", params={"count": 10_000}).status_code == 422


def test_small_pictures_are_small_and_browsers_may_keep_them(client: httpx.Client) -> None:
    assert client.get("/api/pictures/0/thumbnail").headers["cache-control"] == "no-store", "another run may come here"
    mark = client.get("/api/pictures", params={"count": 0}).json()["mark"]
    answer = client.get("/api/pictures/0/thumbnail", params={"mark": mark})
    assert "max-age" in answer.headers["cache-control"]
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(answer.content))), generate(1, seed=5).images[0])


def test_edits_are_kept_with_the_run_and_laid_over_what_is_found(client: httpx.Client, bench: Workbench) -> None:
    found = client.post("/api/decompose", json={"picture": 3}).json()
    assert "edits" not in found
    assert found["at_limit"] is True, "these scenes have as many objects as the model can find"
    assert client.put("/api/edits/3", json=scene(found, without=1)).status_code == 204
    again = client.post("/api/decompose", json={"picture": 3}).json()
    assert again["scene"] == found["scene"]
    assert [each["prototype"] for each in again["edits"]["objects"]] == [
        each["prototype"] for each in found["scene"]["objects"][1:]
    ]
    assert client.get("/api/edits").json()["edited"] == [3]
    assert [each.name for each in RunFolder.open(bench.folder).edits] == ["3.png"]
    assert client.delete("/api/edits/3").status_code == 204
    assert "edits" not in client.post("/api/decompose", json={"picture": 3}).json()
    assert client.get("/api/edits").json()["edited"] == []


def test_damaged_edits_are_reported_and_not_believed(client: httpx.Client, bench: Workbench) -> None:
    found = client.post("/api/decompose", json={"picture": 3}).json()
    client.put("/api/edits/3", json=scene(found)).raise_for_status()
    path = next(bench.edits.folder.glob("*.json"))
    path.write_bytes(path.read_bytes()[:-9])
    answer = client.post("/api/decompose", json={"picture": 3}).json()
    assert "edits" not in answer
    assert str(path) in answer["note"]
    assert len(client.get("/api/edits").json()["damaged"]) == 1


@pytest.mark.parametrize(
    "change",
    [{"size": [35, 34]}, {"objects": [{"prototype": 99, "position": [0, 0], "colour": [1, 1, 1]}]}],
)
def test_scenes_that_fit_no_picture_are_not_kept(change: dict[str, Any], client: httpx.Client) -> None:
    found = client.post("/api/decompose", json={"picture": 3}).json()
    assert client.put("/api/edits/3", json={**scene(found), **change}).status_code == 422
    assert client.get("/api/edits").json()["count"] == 0


def test_counts_are_those_of_all_pictures_and_follow_edits_names_and_hidden_kinds(
    client: httpx.Client, bench: Workbench
) -> None:
    counts = counted(client)
    assert (counts["done"], counts["total"], counts["damaged"]) == (COUNT, COUNT, 1)
    model = load(bench.folder)
    found = [model.decompose(bench.browsing.pixels(n)) for n in range(COUNT) if n != BROKEN]
    ids = np.concatenate([one.prototype_ids for one in found])
    assert totals(counts) == {f"prototype {p}": int((ids == p).sum()) for p in np.unique(ids).tolist()}
    first, second = np.unique(ids)[:2].tolist()
    client.put("/api/kinds", json={"prototypes": [first, second], "name": "both"}).raise_for_status()
    both = totals(client.get("/api/counts").json())["both"]
    assert both == int(((ids == first) | (ids == second)).sum())
    edited = client.post("/api/decompose", json={"picture": 3}).json()
    client.put("/api/edits/3", json={**scene(edited), "objects": []}).raise_for_status()
    assert sum(totals(client.get("/api/counts").json()).values()) == len(ids) - len(edited["scene"]["objects"])
    client.put("/api/kinds", json={"prototypes": [first, second], "hidden": True}).raise_for_status()
    hidden = [kind["name"] for kind in client.get("/api/counts").json()["kinds"] if kind["hidden"]]
    assert hidden == ["both"]
    assert RunFolder.open(bench.folder).names().hidden == {first, second}
    listed = client.get("/api/pictures").json()["pictures"]
    assert (listed[3]["objects"], listed[BROKEN]["objects"], listed[3]["edited"]) == (0, None, True)


def test_results_have_edits_and_names_and_no_hidden_kinds(client: httpx.Client) -> None:
    found = client.post("/api/decompose", json={"picture": 3}).json()
    client.put("/api/edits/3", json=scene(found, without=1)).raise_for_status()
    lines = [json.loads(line) for line in result(client, "json").text.splitlines()]
    assert [line["name"] for line in lines] == [f"{n}.png" for n in range(COUNT) if n != BROKEN]
    kept = next(line for line in lines if line["name"] == "3.png")
    assert len(kept["objects"]) == len(found["scene"]["objects"]) - 1
    gone = kept["objects"][0]["prototype"]
    client.put("/api/kinds", json={"prototypes": [gone], "hidden": True}).raise_for_status()
    lines = [json.loads(line) for line in result(client, "json").text.splitlines()]
    assert gone not in {thing["prototype"] for line in lines for thing in line["objects"]}


def test_results_of_many_files_are_one_archive(client: httpx.Client) -> None:
    for kind, inside in (("coco", "coco.json"), ("yolo", "yolo/data.yaml"), ("png", "000003-3.png.overlay.png")):
        archive = zipfile.ZipFile(io.BytesIO(result(client, kind).content))
        assert archive.testzip() is None
        assert inside in archive.namelist(), archive.namelist()


def test_results_that_nobody_asked_for_are_not_there(client: httpx.Client) -> None:
    assert client.get("/api/results/csv").status_code == 404
    assert client.post("/api/results", json={"format": "nothing"}).status_code == 422


def test_others_change_nothing(pictures: Path, tmp_path: Path) -> None:
    run = true_run(tmp_path / "run").path
    bench = Workbench(folder=run, model=load(run), pictures=open_strip(pictures))
    before = sorted(path.name for path in run.rglob("*"))
    asked = [
        ("PUT", "/api/edits/0", {"size": [35, 35], "objects": []}),
        ("DELETE", "/api/edits/0", None),
        ("DELETE", "/api/edits", None),
        ("POST", "/api/counts", None),
        ("PUT", "/api/kinds", {"prototypes": [0], "hidden": True}),
        ("POST", "/api/results", {"format": "json"}),
        ("POST", "/api/corrections", {"remove": 1}),
        ("DELETE", "/api/corrections/1", None),
        ("POST", "/api/learning", {"minutes": 1}),
        ("DELETE", "/api/learning", None),
        ("POST", "/api/learning/adopt", None),
        ("POST", "/api/learning/restore", None),
    ]
    with serving(bench, local=False) as site, httpx.Client(base_url=site, timeout=60) as client:
        for method, path, body in asked:
            assert client.request(method, path, json=body).status_code == 403, (method, path)
        assert client.get("/api/pictures").json()["count"] == COUNT
    assert sorted(path.name for path in run.rglob("*")) == before


def test_edits_follow_their_picture_to_another_place(bench: Workbench, pictures: Path, tmp_path: Path) -> None:
    with serving(bench) as site, httpx.Client(base_url=site, timeout=60) as client:
        found = client.post("/api/decompose", json={"picture": 3}).json()
        client.put("/api/edits/3", json=scene(found, without=2)).raise_for_status()
    other = tmp_path / "other"
    other.mkdir()
    (other / "3.png").write_bytes((pictures / "3.png").read_bytes())
    (other / "5.png").write_bytes((pictures / "0.png").read_bytes())
    moved = Workbench(folder=bench.folder, model=bench.model, pictures=open_strip(other))
    assert moved.browsing.edits_of(0) is not None
    assert moved.browsing.edits_of(1) is None
    assert isinstance(moved.edits, Edits)
