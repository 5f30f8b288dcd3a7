"""Laws of the limits: what would cost too much is refused with a sentence that says the limit, before it is done."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from pcdnet.serve import guard
from pcdnet.serve.limits import (
    HEAD_BYTES,
    HELD_BYTES,
    LEAST_RATE,
    MOST_BYTES,
    MOST_CONNECTIONS,
    MOST_DECODED,
    MOST_DEEP,
    MOST_HEADERS,
    MOST_OBJECTS,
    MOST_PAINTED,
    MOST_PIXELS,
    MOST_READS,
    MOST_SCANS,
    MOST_TAGGED,
    MOST_VALUES,
    MOST_WAITING,
    PATIENCE,
    PICTURE_BYTES,
    QUICK_BYTES,
    SCENE_BYTES,
    WORDS_BYTES,
    in_words,
    most_bytes,
    painted_pixels,
)
from pcdnet.serve.messages import Scene

JSON = {"Content-Type": "application/json"}


def refused(answer: httpx.Response, status: int) -> str:
    """The sentence of an answer that must be a refusal."""
    assert answer.status_code == status, answer.text
    sentence: str = answer.json()["error"]
    assert "; " in sentence
    return sentence


def scene(count: int, size: tuple[int, int] = (35, 35)) -> dict[str, Any]:
    """A scene of many objects."""
    return {"size": size, "objects": [{"prototype": 0, "position": [0, 0], "colour": [1, 1, 1]}] * count}


@pytest.fixture
def painter(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Whoever would do the work."""
    made = Mock()
    monkeypatch.setattr("pcdnet.serve.workbench.PCDNet.recompose", made)
    return made


def test_too_many_objects_are_refused_unpainted(client: httpx.Client, painter: Mock) -> None:
    assert f"{MOST_OBJECTS}" in refused(client.post("/api/render", json=scene(MOST_OBJECTS + 1)), 422)
    painter.assert_not_called()


def test_too_many_pixels_are_refused_unpainted(client: httpx.Client, painter: Mock) -> None:
    message = scene(1, (512, MOST_PIXELS // 512 + 1))
    assert f"{MOST_PIXELS:,}" in refused(client.post("/api/render", json=message), 422)
    painter.assert_not_called()


def test_too_many_pixels_of_objects_are_refused_unpainted(
    client: httpx.Client, painter: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcdnet.serve.workbench.MOST_PAINTED", 10 * 25 * 25)
    for path in ("/api/render", "/api/export"):
        message = scene(11) if path == "/api/render" else {"scene": scene(11), "format": "json"}
        sentence = refused(client.post(path, json=message), 422)
        assert sentence == "11 objects of 25x25 have more than 6,250 pixels; send 10 or fewer"
    painter.assert_not_called()


def test_objects_cost_what_of_them_is_in_the_picture() -> None:
    assert painted_pixels(3, (25, 20), (35, 35)) == 3 * 25 * 20
    assert painted_pixels(3, (600, 20), (35, 10)) == 3 * 35 * 10
    assert painted_pixels(MOST_OBJECTS, (64, 64), (512, 512)) < MOST_PAINTED


def test_as_many_objects_as_are_allowed_are_painted(client: httpx.Client) -> None:
    assert len(client.post("/api/render", json=scene(MOST_OBJECTS)).json()["scene"]["objects"]) == MOST_OBJECTS


@pytest.mark.parametrize("nested", [b"[", b'{"a":', b"1,", b"{},"])
def test_json_of_too_many_values_is_refused_unread(
    client: httpx.Client, nested: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Mock()
    monkeypatch.setattr(Scene, "model_validate_json", reader)
    answer = client.post("/api/render", content=nested * (MOST_VALUES + 1), headers=JSON)
    assert f"{MOST_VALUES:,} values" in refused(answer, 422)
    reader.assert_not_called()


def test_a_scene_of_the_largest_size_fits_in_its_limits() -> None:
    base64_of = len(base64.b64encode(bytes(3 * MOST_PIXELS))) + len(base64.b64encode(bytes(12 * MOST_PIXELS)))
    thing = '{"prototype": 1000, "position": [-10000, -10000], "colour": [0.1234567890123456, 0.1, 0.1]}, '
    assert base64_of + MOST_OBJECTS * len(thing) + 1000 < SCENE_BYTES
    assert MOST_OBJECTS * sum(map(thing.count, ",:[{")) + 100 < MOST_VALUES


@pytest.mark.parametrize(
    ("path", "kind", "most"),
    [
        ("/api/decompose", "multipart/form-data", MOST_BYTES),
        ("/api/decompose", "application/json", PICTURE_BYTES),
        ("/api/render", "application/json", SCENE_BYTES),
        ("/api/render", "multipart/form-data", SCENE_BYTES),
        ("/api/inspect", "application/json", SCENE_BYTES // 4),
        ("/api/names/0", "application/json", 4096),
        ("/nowhere", "", 4096),
    ],
)
def test_every_route_has_its_limit_of_bytes(client: httpx.Client, path: str, kind: str, most: int) -> None:
    assert most_bytes(path, kind) == most
    head = {"Content-Type": kind, "Content-Length": f"{most + 1}"}
    answer = client.post(path, content=iter([b"x" * (most + 1)]), headers=head)
    assert f"{most >> 20} MiB" in (said := refused(answer, 413)) or f"{most >> 10} KiB" in said or "1.5 MiB" in said


def test_the_limits_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    pixels = (MOST_PIXELS, MOST_PAINTED, MOST_DECODED, MOST_DEEP)
    numbers = (*pixels, MOST_OBJECTS, MOST_VALUES, MOST_WAITING, MOST_CONNECTIONS)
    others = (MOST_HEADERS, MOST_READS, MOST_SCANS, MOST_TAGGED)
    sizes = (
        HEAD_BYTES,
        QUICK_BYTES,
        MOST_BYTES,
        PICTURE_BYTES,
        SCENE_BYTES,
        SCENE_BYTES // 4,
        WORDS_BYTES,
        HELD_BYTES,
        LEAST_RATE,
    )
    for limit in (*(f"{number:,}" for number in (*numbers, *others)), *map(in_words, sizes), f"| {PATIENCE:g} |"):
        assert limit in page


def test_a_body_that_is_longer_than_allowed_is_not_read_to_its_end(client: httpx.Client) -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        for read in range(100):  # noqa: B007  # it is looked at below
            yield bytes(1 << 20)

    try:
        answer = client.post("/api/render", content=endless(), headers=JSON)
    except httpx.TransportError:
        assert read < 99
    else:
        refused(answer, 413)


def test_large_requests_wait_for_memory_and_small_ones_do_not(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "HELD_BYTES", 0)
    answer = client.post("/api/render", content=b" " * (1 << 20), headers=JSON)
    assert answer.headers["retry-after"] == "2"
    assert "ask again in 2 seconds" in refused(answer, 503)
    assert client.post("/api/decompose", json={"picture": 0}).status_code == 200
    monkeypatch.undo()
    refused(client.post("/api/render", content=b" " * (1 << 20), headers=JSON), 422)
