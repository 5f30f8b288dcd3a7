"""Laws of the API: what it answers, and what it refuses."""

from __future__ import annotations

import io
import json
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from benchmarks.serve import serving
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import integers, lists, tuples
from PIL import Image

from pcdnet.kinds import Kinds
from pcdnet.model.inspection import inspect
from pcdnet.model.plan import SearchPlan
from pcdnet.names import Names
from pcdnet.serve import messages
from pcdnet.serve.limits import MOST_BYTES
from pcdnet.serve.messages import Array
from pcdnet.serve.workbench import Workbench

Client = httpx.Client


def file_of(picture: np.ndarray, kind: str = "png") -> bytes:
    """The bytes of a picture file."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format=kind)
    return buffer.getvalue()


def upload(client: Client, content: bytes, name: str = "scene.png", **fields: str) -> httpx.Response:
    """Send a file as a browser's form does."""
    return client.post("/api/decompose", files={"image": (name, content)}, data=fields)


def values(array: dict[str, Any]) -> np.ndarray:
    """The numbers of an array in an answer."""
    return Array(**array).values()


def complaint(answer: httpx.Response, status: int) -> str:
    """The sentence of an answer that must be a refusal."""
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "fit"}
    sentence: str = answer.json()["error"]
    assert "Traceback" not in sentence
    assert "; " in sentence
    return sentence


def scene_of(answer: httpx.Response) -> dict[str, Any]:
    """What was found, as a scene to send back."""
    found = answer.json()
    things = [{key: thing[key] for key in ("prototype", "position", "colour")} for thing in found["scene"]["objects"]]
    return {"size": found["scene"]["size"], "objects": things, "image": found["image"]}


def test_an_upload_is_decomposed_like_in_python(client: Client, workbench: Workbench) -> None:
    picture = workbench.browsing.pixels(2)
    found = upload(client, file_of(picture)).json()
    expected = workbench.model.decompose(picture, name="scene.png")
    assert found["scene"] == expected.to_dict()
    assert np.array_equal(values(found["instances"]), expected.instances)
    assert np.array_equal(values(found["image"]), picture)


def test_files_numbers_and_samples_give_the_same(client: Client, workbench: Workbench) -> None:
    picture = workbench.browsing.pixels(3)
    ways = [
        client.post("/api/decompose", json={"picture": 3}),
        client.post("/api/decompose", json={"image": Array.from_numpy(picture).model_dump()}),
        *(upload(client, file_of(picture, kind)) for kind in ("png", "bmp", "tiff")),
        upload(client, client.get("/api/pictures/3").content),
    ]
    objects = [way.json()["scene"]["objects"] for way in ways]
    assert len(objects[0]) > 0
    assert all(one == objects[0] for one in objects)


def test_painting_what_was_found_gives_the_same_back(client: Client) -> None:
    answer = client.post("/api/decompose", json={"picture": 0})
    again = client.post("/api/render", json=scene_of(answer)).json()
    found = answer.json()
    assert again["instances"] == found["instances"]
    assert np.abs(values(again["reconstruction"]).astype(int) - values(found["reconstruction"])).max() <= 1
    for one, other in zip(again["scene"]["objects"], found["scene"]["objects"], strict=True):
        assert one["gain"] == pytest.approx(other["gain"], rel=1e-3, abs=1e-2)
        assert one["box"] == other["box"]


@given(things=lists(tuples(integers(0, 18), integers(-24, 34), integers(-24, 34)), max_size=6))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_scene_that_touches_the_picture_is_painted(client: Client, things: list[tuple[int, int, int]]) -> None:
    objects = [{"prototype": p, "position": [r, c], "colour": [0.5, 1, 0]} for p, r, c in things]
    found = client.post("/api/render", json={"size": [35, 35], "objects": objects}).json()
    assert len(found["scene"]["objects"]) == len(things)
    painted, instances = values(found["reconstruction"]), values(found["instances"])
    assert painted[instances == 0].sum() == 0
    assert found["image"] is None


def test_the_steps_of_the_selection_lead_to_what_is_found(client: Client, workbench: Workbench) -> None:
    image = Array.from_numpy(workbench.browsing.pixels(2)).model_dump()
    seen = client.post("/api/inspect", json={"image": image, "prototype": 4}).json()
    found = client.post("/api/decompose", json={"picture": 2}).json()["scene"]
    assert not seen["refined"]
    assert [step["chosen"]["position"] for step in seen["steps"][:-1]] == [o["position"] for o in found["objects"]]
    heat, (top, left) = values(seen["map"]["heat"]), seen["map"]["origin"]
    best = next(candidate for candidate in seen["candidates"] if candidate["prototype"] == 4)
    row, column = best["position"]
    assert heat[row - top, column - left] == pytest.approx(heat.max())
    assert best["height"] == pytest.approx(float(heat.max()), abs=1e-5)
    assert client.post("/api/inspect", json={"image": image}).json()["map"] is None


def test_pictures_of_one_size_are_searched_by_one_plan(
    client: Client, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived = Mock(side_effect=SearchPlan.derive)
    monkeypatch.setattr(SearchPlan, "derive", derived)
    size = (41, 47)  # that no other test asks for
    for shade in (0, 255):
        picture = np.full((*size, 3), shade, np.uint8)
        assert upload(client, file_of(picture)).status_code == 200
        image = Array.from_numpy(picture).model_dump()
        assert client.post("/api/inspect", json={"image": image, "prototype": 0}).status_code == 200
    assert [call.args[1] for call in derived.call_args_list] == [size]
    assert workbench.model.plan(size) is workbench.model.plan(size)


def test_another_map_of_the_same_picture_needs_no_other_search(
    client: Client, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = Mock(side_effect=inspect)
    monkeypatch.setattr("pcdnet.serve.workbench.inspect", searched)
    pictures = [Array.from_numpy(workbench.browsing.pixels(n)).model_dump() for n in (5, 5, 4)]
    seen = [client.post("/api/inspect", json={"image": picture, "prototype": 7}).json() for picture in pictures]
    assert searched.call_count == 2
    assert seen[0] == seen[1]
    assert seen[0]["steps"] != seen[2]["steps"]


def test_the_model_is_described_with_all_that_is_needed_to_paint(client: Client, workbench: Workbench) -> None:
    model = client.get("/api/model").json()
    bank = workbench.model.bank()
    assert np.array_equal(values(model["masks"]), bank.masks.detach().numpy())
    assert model["size"] == [35, 35]
    assert len(model["names"]) == len(model["colours"]) == len(model["use"]) == 19
    assert sum(model["use"]) == pytest.approx(1)


def test_exports_hold_the_edited_scene(client: Client) -> None:
    scene = scene_of(client.post("/api/decompose", json={"picture": 0}))
    scene["objects"] = scene["objects"][:1]
    scene["objects"][0]["position"] = [3, 4]
    painted = client.post("/api/render", json=scene).json()
    png = client.post("/api/export", json={"scene": scene, "format": "png"})
    assert png.headers["content-type"] == "image/png"
    assert "attachment" in png.headers["content-disposition"]
    assert np.array_equal(np.array(Image.open(io.BytesIO(png.content))), values(painted["reconstruction"]))
    words = client.post("/api/export", json={"scene": scene, "format": "json"}).json()
    assert [thing["position"] for thing in words["objects"]] == [[3, 4]]
    assert words["objects"][0]["name"]
    coco = client.post("/api/export", json={"scene": scene, "format": "coco"}).json()
    top, left, height, width = words["objects"][0]["box"]
    assert [note["bbox"] for note in coco["annotations"]] == [[left, top, width, height]]
    assert len(coco["categories"]) == 19


@pytest.mark.parametrize("format", ["json", "coco", "png", "csv", "parquet"])
def test_a_scene_is_exported_in_every_format_however_it_is_spelled(format: str, client: Client) -> None:
    scene = scene_of(client.post("/api/decompose", json={"picture": 0}))
    plain, odd = (
        client.post("/api/export", json={"scene": scene, "format": f}) for f in (format, f" {format.upper()}\n")
    )
    assert plain.status_code == odd.status_code == 200
    assert plain.content == odd.content
    assert plain.headers["content-type"] == odd.headers["content-type"]
    name = re.search(rf'attachment; filename="{format}-scene\.(\w+)"$', odd.headers["content-disposition"])
    assert name is not None
    assert name[1] == {"coco": "json"}.get(format, format)


@pytest.mark.parametrize("view", ["image", "reconstruction", "residual", "instances", "semantics"])
def test_every_view_can_be_downloaded(client: Client, view: str) -> None:
    scene = scene_of(client.post("/api/decompose", json={"picture": 0}))
    content = client.post("/api/export", json={"scene": scene, "format": "png", "view": view}).content
    picture = np.array(Image.open(io.BytesIO(content)))
    assert picture.shape == (35, 35, 3)
    assert (picture.max() > 0) == (view != "residual")


def test_renaming_is_kept_in_the_run(client: Client, run: Path) -> None:
    markup = "<b onclick=alert(1)>L & Co</b>"
    assert client.put("/api/names/4", json={"name": markup}).json()["names"][4] == markup
    assert Names.read(run, 19)[4] == markup
    assert client.get("/api/model").json()["names"][4] == markup
    assert client.put("/api/names/4", json={"name": ""}).json()["names"][4] == "prototype 4"
    complaint(client.put("/api/names/19", json={"name": "x"}), 404)
    complaint(client.put("/api/names/0", json={"name": "two\nlines"}), 422)
    complaint(client.put("/api/names/0", json={"name": "x" * 100}), 422)


def test_prototypes_that_are_named_alike_are_one_kind(client: Client, run: Path) -> None:
    before = client.get("/api/model").json()["colours"]
    assert len(set(before)) == 19
    client.put("/api/names/4", json={"name": "spade"})
    answer = client.put("/api/names/7", json={"name": "spade"}).json()
    assert answer["names"][4] == answer["names"][7] == "spade"
    assert answer["colours"] == [*before[:7], before[4], *before[8:]]
    assert client.get("/api/model").json()["colours"] == client.get("/api/names").json()["colours"] == answer["colours"]
    assert len(Kinds(Names.read(run, 19))) == 18
    things = [{"prototype": p, "position": [5, 5], "colour": [1, 1, 1]} for p in (4, 7)]
    scene = {"size": [35, 35], "objects": things}
    line = client.post("/api/export", json={"scene": scene, "format": "json"}).json()
    assert [(thing["kind"], thing["name"]) for thing in line["objects"]] == [(4, "spade")] * 2
    for p in (4, 7):
        client.put(f"/api/names/{p}", json={"name": ""})
    assert client.get("/api/model").json()["colours"] == before


def test_who_serves_to_others_lets_nobody_rename(workbench: Workbench, run: Path) -> None:
    with serving(workbench, local=False) as site, httpx.Client(base_url=site) as client:
        assert not client.get("/api/model").json()["renaming"]
        complaint(client.put("/api/names/0", json={"name": "mine"}), 403)
        assert Names.read(run, 19)[0] == "prototype 0"


def test_what_is_no_picture_is_refused(client: Client) -> None:
    complaint(upload(client, b"GET / HTTP/1.1"), 415)
    complaint(upload(client, b""), 415)
    complaint(upload(client, file_of(np.zeros((35, 35, 3), np.uint8))[:60]), 422)
    complaint(client.post("/api/decompose", content=b"hello", headers={"Content-Type": "text/plain"}), 415)
    complaint(client.post("/api/decompose", files={"other": b"x"}), 422)
    complaint(client.post("/api/decompose", json={"picture": 99}), 404)
    complaint(client.post("/api/decompose", json={"neither": 1}), 422)
    complaint(client.post("/api/decompose", content=b"{", headers={"Content-Type": "application/json"}), 422)


def test_a_picture_that_claims_to_be_huge_is_refused_before_it_is_decoded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = Mock()
    monkeypatch.setattr("pcdnet.serve.pictures.read_picture", decoder)
    small = bytearray(file_of(np.zeros((8, 8), np.uint8)))
    for side in ((30_000).to_bytes(4, "big"), (6_000).to_bytes(4, "big")):
        small[16:20], small[20:24] = side, side
        header = bytes(small[12:29])
        small[29:33] = zlib.crc32(header).to_bytes(4, "big")
        assert upload(client, bytes(small)).status_code in (413, 422)
    decoder.assert_not_called()


def test_a_size_that_cannot_be_taken_is_refused_with_an_offer_that_works(client: Client) -> None:
    tiny = file_of(np.zeros((9, 9, 3), np.uint8))
    answer = upload(client, tiny)
    assert "25x25" in complaint(answer, 422)
    assert answer.json()["fit"]
    assert upload(client, tiny, fit="true").json()["scene"]["size"] == [35, 35]
    vast = file_of(np.zeros((4000, 5000, 3), np.uint8))
    assert "4000x5000" in complaint(upload(client, vast), 413)


def test_a_large_picture_is_taken_whole_and_comes_back_smaller(client: Client) -> None:
    large = file_of(np.zeros((800, 900, 3), np.uint8))
    answer = upload(client, large).json()
    assert (answer["scene"]["size"], answer["shrunk"]) == ([800, 900], 2)
    assert answer["image"]["shape"] == [400, 450, 3]
    resized = upload(client, large, fit="true").json()
    assert resized["scene"]["size"] == [35, 35]
    assert "shrunk" not in resized


def test_a_background_has_one_size_and_the_sentence_says_which(grey_site: str) -> None:
    with httpx.Client(base_url=grey_site, timeout=30) as client:
        model = client.get("/api/model").json()
        assert model["fixed"]
        assert model["size"] == [40, 56]
        picture = file_of(np.zeros((56, 40, 3), np.uint8))
        answer = upload(client, picture)
        assert "40x56" in complaint(answer, 422)
        assert answer.json()["fit"]
        assert upload(client, picture, fit="true").json()["image"]["shape"] == [40, 56, 1]
        complaint(client.post("/api/render", json={"size": [35, 35], "objects": []}), 422)
        empty = client.post("/api/render", json={"size": [40, 56], "objects": []}).json()
        behind = values(model["background"]).clip(0, 1)
        assert np.abs(values(empty["reconstruction"]) - 255 * behind).max() <= 0.5 + 1e-3


def test_grey_and_transparent_pictures_are_taken(client: Client) -> None:
    assert upload(client, file_of(np.full((40, 50), 9, np.uint8))).json()["image"]["shape"] == [40, 50, 3]
    clear = np.zeros((35, 35, 4), np.uint8)
    clear[..., :3] = 255
    assert upload(client, file_of(clear)).json()["scene"]["objects"] == []


def test_too_many_bytes_are_refused_announced_or_not(client: Client) -> None:
    complaint(upload(client, bytes(MOST_BYTES + 1)), 413)

    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield bytes(1 << 20)

    for kind in ("application/json", "multipart/form-data; boundary=x"):
        try:
            answer = client.post("/api/decompose", content=endless(), headers={"Content-Type": kind})
        except httpx.TransportError:
            continue  # the server hung up in the middle of the sending, which is as good
        assert answer.status_code in (400, 413)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/render", {"size": [35, 35], "objects": [{"prototype": 19, "position": [0, 0], "colour": [1, 1, 1]}]}),
        ("/api/render", {"size": [35, 35], "objects": [{"prototype": 0, "position": [0, 35], "colour": [1, 1, 1]}]}),
        ("/api/render", {"size": [35, 35], "objects": [{"prototype": 0, "position": [0, 0], "colour": [1]}]}),
        ("/api/render", {"size": [35, 35], "objects": [{"prototype": 0, "position": [0, 0], "colour": [1e9, 1, 1]}]}),
        ("/api/render", {"size": [4000, 4000], "objects": []}),
        ("/api/render", {"size": [35, 35], "objects": [], "image": {"shape": [9, 9, 3], "dtype": "uint8", "data": ""}}),
        ("/api/render", {"size": [35, 35], "objects": [], "image": {"shape": [0], "dtype": "float32", "data": ""}}),
        ("/api/render", {"size": [35, 35], "objects": [], "extra": 1}),
        ("/api/inspect", {"image": {"shape": [35, 35, 3], "dtype": "uint8", "data": "%%%"}}),
        ("/api/export", {"scene": {"size": [35, 35], "objects": []}, "format": "exe"}),
        ("/api/export", {"scene": {"size": [35, 35], "objects": []}, "format": "png", "view": "residual"}),
    ],
)
def test_scenes_that_make_no_sense_are_refused_with_a_sentence(
    client: Client, path: str, message: dict[str, Any]
) -> None:
    complaint(client.post(path, json=message), 422)


def test_numbers_that_are_none_are_refused(client: Client) -> None:
    thing = '{"prototype": 0, "position": [0, 0], "colour": [NaN, 1, Infinity]}'
    body = f'{{"size": [35, 35], "objects": [{thing}]}}'
    complaint(client.post("/api/render", content=body, headers={"Content-Type": "application/json"}), 422)
    deep = "[" * 100_000
    answer = client.post("/api/render", content=deep, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]


@pytest.mark.parametrize("path", ["/nowhere", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"])
def test_nothing_but_the_page_is_served(client: Client, path: str) -> None:
    complaint(client.get(path), 404)


def test_the_page_and_its_description_need_nothing_from_elsewhere(client: Client) -> None:
    static = Path(__file__).parents[2] / "src" / "pcdnet" / "serve" / "static"
    files = [path for path in static.iterdir() if path.suffix in (".html", ".js", ".css")]
    assert len(files) > 5
    for path in files:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        for forbidden in ("http", "url(", "@import", "innerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert forbidden not in text
        assert client.get(f"/static/{path.name}").status_code == 200
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/model", "/api/decompose", "/api/render", "/api/inspect", "/api/pictures", "/api/export"} <= set(paths)
    content = paths["/api/decompose"]["post"]["requestBody"]["content"]
    assert set(content) == {"multipart/form-data", "application/json"}
    assert client.get("/").headers["content-type"].startswith("text/html")
    assert client.head("/").status_code == 200
    assert client.get("/docs").status_code == 200


def test_many_who_ask_at_once_are_all_answered_rightly(client: Client, workbench: Workbench) -> None:
    files = [workbench.browsing.file(n) for n in range(6)]
    alone = [workbench.decompose_file(content, "x.png", fit=False).scene for content in files]

    def work(n: int) -> bool:  # each on a connection of its own, as all of them wait at once
        answer = upload(client, files[n % 6], "x.png").json()["scene"]
        return bool(answer == json.loads(json.dumps(alone[n % 6])))

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(work, range(32)))


class Busy:
    """A workbench that paints only when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = Mock(), threading.Event()
        render = Workbench.render

        def painted(bench: Workbench, scene: messages.Scene) -> messages.Explained:
            self.begun(scene.name)
            assert self.go.wait(10)
            return render(bench, scene)

        monkeypatch.setattr(Workbench, "render", painted)

    @property
    def names(self) -> list[str]:
        """What it has begun to paint."""
        return [call.args[0] for call in self.begun.call_args_list]


def send(site: str, name: str) -> socket.socket:
    """Ask for a scene, and do not wait for the answer."""
    body = json.dumps({"size": [35, 35], "objects": [], "name": name})
    head = "POST /api/render HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
    where = urlsplit(site)
    made = socket.create_connection((where.hostname or "", where.port or 0), timeout=10)
    made.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    return made


def settle(site: str) -> None:
    """Until the server has noticed all that happened: what it answers by itself comes after that."""
    for _ in range(3):
        assert httpx.get(f"{site}/api/names").status_code == 200


def test_what_nobody_waits_for_any_more_is_not_begun(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Busy(monkeypatch)
    with serving(workbench) as site:
        first = send(site, "first")
        while not busy.names:
            time.sleep(0.01)
        for n in range(20):
            send(site, f"gone {n}").close()
        last = send(site, "last")
        settle(site)
        busy.go.set()
        assert last.recv(12) == first.recv(12) == b"HTTP/1.1 200"
        first.close()
        last.close()
    assert busy.names == ["first", "last"]


def test_who_comes_when_too_many_wait_is_told_when_to_come_again(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Busy(monkeypatch)
    monkeypatch.setattr("pcdnet.serve.desk.MOST_WAITING", 3)
    with serving(workbench) as site:
        waiting = [send(site, "")]
        while not busy.names:
            time.sleep(0.01)
        waiting += [send(site, "") for _ in range(3)]
        settle(site)
        answer = httpx.post(f"{site}/api/render", json={"size": [35, 35], "objects": []})
        assert "ask again in 2 seconds" in complaint(answer, 503)
        assert answer.headers["retry-after"] == "2"
        busy.go.set()
        for one in waiting:
            assert one.recv(12) == b"HTTP/1.1 200"
            one.close()


def test_a_body_that_nobody_asked_for_is_refused_quietly(site: str, caplog: pytest.LogCaptureFixture) -> None:
    with httpx.Client(base_url=site) as client:
        answer = client.request("GET", "/api/pictures/0", content=iter([bytes(1 << 10)] * 64))
        assert answer.status_code in (200, 413)
    assert caplog.text == ""
