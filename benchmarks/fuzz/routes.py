"""Routes: every address of the server, asked through the app itself, with any method, headers, query and body."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import shutil
import weakref
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import numpy as np
from PIL import Image

from benchmarks.fuzz.law import Broken
from benchmarks.fuzz.mutations import DEEP, ODD, blind, changed_value
from benchmarks.fuzz.target import Reader, Target
from benchmarks.serve import true_workbench
from pcdnet.serve.app import create_app

HEADERS: tuple[str, ...] = (
    "host",
    "origin",
    "content-type",
    "content-length",
    "transfer-encoding",
    "cookie",
    "authorization",
    "range",
)
HEADERS += (
    "sec-fetch-site",
    "accept",
    "if-none-match",
    "if-modified-since",
    "expect",
    "connection",
    "content-encoding",
)
VALUES: tuple[str, ...] = (
    "",
    "localhost",
    "127.0.0.1:80",
    "[::1]",
    "evil",
    "application/json",
    "multipart/form-data; boundary=b",
    "text/x",
)
VALUES += ("application/json; charset=utf-16", "-1", "1e3", "99999999999999999999", "bytes=0-1,5-", "bytes=9-1", "null")
VALUES += (
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "application/x-www-form-urlencoded",
    "x" * 9000,
    "\xff",
)
VALUES += (
    'multipart/form-data; boundary="b',
    "multipart/form-data; charset=nope; boundary=b",
    "Bearer ",
    "a=b; =;\x7f",
)
PATHS: tuple[str, ...] = (
    "/",
    "/docs",
    "/favicon.ico",
    "/openapi.json",
    "/api/model",
    "/api/pictures",
    "/api/pictures/0",
    "/api/names",
)
PATHS += ("/api/names/0", "/api/decompose", "/api/render", "/api/inspect", "/api/export", "/static/page.js", "/nothing")
PATHS += (
    "/api/pictures/-1",
    "/api/pictures/x",
    "/api/pictures/9e9",
    "/api/pictures/1/thumbnail",
    "/api/edits",
    "/api/edits/1",
    "/api/counts",
    "/api/kinds",
    "/api/results/json",
    "/api/corrections",
    "/api/corrections/1",
    "/api/corrections/removed/1",
    "/api/learning/pictures/0",
    "/static/../app.py",
    "/static/%00",
    "/static/" + "a" * 300,
)
ELSEWHERE = ("/api/learning", "/api/learning/adopt", "/api/learning/restore", "/api/counts", "/api/results")
"""Routes that start processes and threads; tests try them."""
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "x")


def _array(values: np.ndarray) -> dict[str, Any]:
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return {
        "shape": list(values.shape),
        "dtype": values.dtype.name,
        "data": base64.b64encode(little.tobytes()).decode(),
    }


def _asked(method: str, path: str, body: Any = None, **headers: str) -> bytes:
    """A request as JSON; a body that is no text is JSON itself."""
    kind = {} if body is None or isinstance(body, str) else {"content-type": "application/json"}
    named = {"host": "localhost", **kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    words = {"method": method, "path": path, "query": "", "headers": [list(pair) for pair in named.items()]}
    return json.dumps({**words, "body": body, "pieces": 1, "leaves": False}).encode()


def seeds() -> Sequence[bytes]:
    """A sound request to every route, and forms."""
    image = np.zeros((35, 35, 3), np.uint8)
    image[5:15, 5:10] = 255
    thing = {"prototype": 3, "position": [4, -1], "colour": [1.0, 0.5, 0]}
    scene = {"size": [35, 35], "objects": [thing], "image": _array(image), "name": "x"}
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png")
    form = '--b\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    picture = buffer.getvalue().decode("latin1")
    whole = form.format("image", '; filename="a.png"\r\nContent-Type: image/png', picture) + form.format("fit", "", "1")
    multipart = "multipart/form-data; boundary=b"
    exports = [
        _asked("POST", "/api/export", {"scene": scene, "format": each}) for each in ("json", "coco", "csv", "png")
    ]
    return [
        *(_asked("GET", path) for path in PATHS),
        _asked("PUT", "/api/names/3", {"name": "L"}),
        _asked("POST", "/api/decompose", {"picture": 1}),
        _asked("POST", "/api/decompose", {"image": _array(image), "name": "x", "fit": True}),
        _asked("POST", "/api/decompose", whole + "--b--\r\n", content_type=multipart),
        _asked("PUT", "/api/edits/1", {key: scene[key] for key in ("size", "objects")}),
        _asked("DELETE", "/api/edits/1"),
        _asked("PUT", "/api/kinds", {"prototypes": [3, 4], "name": "L", "hidden": True}),
        _asked("POST", "/api/corrections", {"picture": 1, "box": [0, 0, 30, 30], "name": "L"}),
        _asked("POST", "/api/corrections", {"image": _array(image), "box": [4, 3, 14, 9]}),
        _asked("POST", "/api/corrections", {"remove": 2}),
        _asked("POST", "/api/render", scene),
        _asked("POST", "/api/inspect", {"image": _array(image), "prototype": 2}),
        *exports,
        _asked("POST", "/api/export", {"scene": scene, "format": "png", "view": "residual"}),
    ]


def mutate(content: bytes, rng: Random) -> bytes:
    """Change the body, most of the time, or anything else of a request."""
    asked = json.loads(content)
    for _ in range(rng.randrange(1, 4)):
        match rng.randrange(10):
            case 0:
                asked["method"] = rng.choice(METHODS)
            case 1:
                asked["path"] = rng.choice(
                    (rng.choice(PATHS), f"/api/names/{rng.choice(ODD)}", f"/api/pictures/{rng.choice(ODD)}")
                )
            case 2:
                asked["query"] = rng.choice(("token=", "token=x", "%ff=%00", "a" * 5000, "&&=;", "number=1"))
            case 3:
                asked["headers"].append([rng.choice(HEADERS), rng.choice(VALUES)])
            case 4 if asked["headers"]:
                del asked["headers"][rng.randrange(len(asked["headers"]))]
            case 5:
                asked["pieces"], asked["leaves"] = rng.choice((1, 2, 7)), rng.random() < 0.1
            case _ if isinstance(asked["body"], str):
                body = blind(
                    asked["body"].encode("latin1", "replace"), rng, (b"--b", b"\r\n", b'name="image"', b"filename*=")
                )
                asked["body"] = body.decode("latin1")
            case _ if asked["body"] is not None:
                asked["body"] = changed_value(asked["body"], rng)
            case _:
                asked["body"] = rng.choice((*DEEP[:3], "{}", "null", {"picture": 0}))
    return json.dumps(asked).encode()


def prepare(folder: Path) -> Reader:
    """Ask the app, and look at all that it answers."""
    workbench = true_workbench(folder)
    app = create_app(workbench)
    loop = asyncio.new_event_loop()
    weakref.finalize(app, loop.close)

    def read(content: bytes) -> None:
        try:
            asked = json.loads(content)
            scope, body, pieces = _scope(asked), _body(asked["body"]), max(1, int(asked["pieces"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return  # no request
        shutil.rmtree(folder / "names.toml", ignore_errors=True)
        if asked["path"] in ELSEWHERE:
            return
        loop.run_until_complete(asyncio.wait_for(_answered(app, scope, body, pieces, bool(asked["leaves"])), 600))

    return read


def _scope(asked: dict[str, Any]) -> dict[str, Any]:
    headers = [(str(name).lower().encode("latin1"), str(value).encode("latin1")) for name, value in asked["headers"]]
    path = str(asked["path"]).encode("utf-8", "replace").decode()
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": str(asked["method"]),
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": str(asked["query"]).encode("latin1", "replace"),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }


def _body(body: Any) -> bytes:
    if body is None:
        return b""
    return body.encode("latin1", "replace") if isinstance(body, str) else json.dumps(body).encode()


async def _answered(app: Any, scope: dict[str, Any], body: bytes, pieces: int, leaves: bool) -> None:
    """Send a request, in pieces, and refuse an answer that is none, or that says that something broke."""
    step = -(-len(body) // pieces) or 1
    left = [body[start : start + step] for start in range(0, len(body), step)] or [b""]
    sent: list[dict[str, Any]] = []
    over = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if left:
            piece = left.pop(0)
            if leaves and not left:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": bool(left)}
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    try:
        await app(scope, receive, send)
    finally:
        over.set()
    starts = [message for message in sent if message["type"] == "http.response.start"]
    if leaves and not starts:
        return
    if len(starts) != 1:
        raise Broken(f"{len(starts)} answers")
    status, answer = starts[0]["status"], b"".join(message.get("body", b"") for message in sent)
    if status >= 500 and status != 503:
        raise Broken(f"status {status}: {answer[:200]!r}")
    if status >= 400 and scope["method"] != "HEAD" and b"; " not in answer and status not in (408, 416):
        raise Broken(f"status {status} without a cure: {answer[:200]!r}")
    kinds = dict(starts[0].get("headers", ()))
    if kinds.get(b"content-type") == b"application/json" and answer and status != 304:
        json.loads(answer, parse_constant=_no_number)


def _no_number(text: str) -> None:
    raise Broken(f"{text} in JSON")


ROUTES = Target(name="routes", seeds=seeds, mutate=mutate, prepare=prepare, megabytes=700, seconds=30)
