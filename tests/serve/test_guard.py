"""Laws of the guard: who may ask, and what every answer demands of browsers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from httpx import Client
from starlette.types import Message, Receive, Scope, Send

from pcdnet.serve.guard import HEADERS, Guard
from pcdnet.serve.limits import WORDS_BYTES

STRANGERS = ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "169.254.0.1"]


@pytest.mark.parametrize("path", ["/", "/api/model", "/static/main.js", "/nowhere", "/api/pictures/0"])
def test_every_answer_forbids_browsers_what_the_page_does_not_need(client: Client, path: str) -> None:
    answer = client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "access-control-allow-origin" not in answer.headers
    assert "server" not in answer.headers
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "*" not in policy


@pytest.mark.parametrize("host", STRANGERS)
def test_a_name_that_was_pointed_at_this_machine_gets_nothing(client: Client, host: str) -> None:
    for path in ("/", "/api/model", "/static/main.js"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code in (400, 421)
        assert "prototypes" not in answer.text
    assert "error" in client.get("/", headers={"Host": "evil.example"}).json()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_from_elsewhere_cannot_change_anything(client: Client, headers: dict[str, str]) -> None:
    for method, path, message in (
        ("PUT", "/api/names/0", {"name": "mine"}),
        ("POST", "/api/decompose", {"picture": 0}),
    ):
        answer = client.request(method, path, json=message, headers=headers)
        assert answer.status_code == 403
        assert "elsewhere" in answer.json()["error"]
    assert client.get("/api/names").json()["names"][0] == "prototype 0"


def test_our_own_page_and_programs_are_let_through(client: Client, site: str) -> None:
    port = site.rpartition(":")[2]
    for headers in (
        {},
        {"Origin": site, "Sec-Fetch-Site": "same-origin"},
        {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"},
        {"Host": "localhost", "Origin": "https://localhost", "Sec-Fetch-Site": "same-origin"},
    ):
        assert client.post("/api/decompose", json={"picture": 0}, headers=headers).status_code == 200


def test_nobody_is_told_that_other_origins_may_ask(client: Client) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "PUT"}
    answer = client.options("/api/names/0", headers=asked)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_body_that_nobody_asked_for_counts_as_gone_once_the_answer_has_begun() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.body", "body": b"whole"})

    async def receive() -> Message:
        return {"type": "http.request", "body": bytes(WORDS_BYTES + 1), "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Any] = []
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost")], "query_string": b""}
    asyncio.run(Guard(app)(scope, receive, send))
    assert sent[-1]["body"] == b"whole"


def test_a_body_of_a_request_that_needs_none_spoils_no_answer() -> None:
    """Whoever sends an answer piece by piece waits beside that for the client to go away."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        waiting = asyncio.ensure_future(receive())
        for _ in range(3):
            await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})
        assert not waiting.done()
        waiting.cancel()

    async def receive() -> Message:
        return {"type": "http.request", "body": bytes(WORDS_BYTES + 1), "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Any] = []
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")], "query_string": b""}
    asyncio.run(Guard(app)(scope, receive, send))
    assert sent[-1]["body"] == b"whole"


@pytest.mark.parametrize("part", ["bytes=0-10", "application/json", "bytes=5-2,-"])
def test_a_request_for_a_part_gets_the_whole(part: str, client: Client) -> None:
    whole, answer = client.get("/"), client.get("/", headers={"Range": part})
    assert (answer.status_code, answer.content) == (200, whole.content)


def test_a_form_that_is_none_is_refused_with_a_cure(client: Client) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = client.post("/api/decompose", content=b"--b\r\nnonsense\r\n", headers=kind)
    assert answer.status_code == 400
    assert "; send what /openapi.json describes" in answer.json()["error"]


def test_a_large_answer_leaves_others_their_turn() -> None:
    """Else it is written to its end, piece by piece, to a client who has hung up long ago."""
    seen: list[str] = []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        asyncio.get_running_loop().call_soon(seen.append, "another")
        await send({"type": "http.response.body", "body": bytes(1 << 20)})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        seen.append("piece" if message.get("body") else "start")

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")], "query_string": b""}
    asyncio.run(Guard(app)(scope, receive, send))
    assert seen.count("piece") == 16
    assert seen[:3] == ["start", "piece", "another"]
