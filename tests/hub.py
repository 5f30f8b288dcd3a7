"""A stand-in for the Hugging Face Hub: the part of its interface that its own client asks for, in memory."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_the_test"
"""Who shows this may write."""


@dataclass
class Repository:
    """A repository: its commits, the last of which is the branch main."""

    private: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, files: dict[str, bytes], message: str = "") -> str:
        """Add a commit that holds just these files; its name."""
        name = hashlib.sha1(repr((len(self.commits), sorted(files))).encode()).hexdigest()
        self.commits[name] = files
        self.messages.append(message)
        return name

    @property
    def main(self) -> str:
        """The last commit."""
        return list(self.commits)[-1]

    @property
    def files(self) -> dict[str, bytes]:
        """What the last commit holds."""
        return self.commits[self.main]


@dataclass
class Hub:
    """Repositories by name, and how the stand-in lies, if it does."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    """Contents of large files, by their SHA-256."""
    asked: list[str] = field(default_factory=list)
    """What was asked for, as `GET /path`."""
    sizes: dict[str, int] = field(default_factory=dict)
    """What is said of the sizes of files, where that is not true."""
    contents: dict[str, bytes] = field(default_factory=dict)
    """What is sent for files, where that is not what they hold."""
    commit: str | None = None
    """What is said of the commit, where that is not true."""
    url: str = ""

    def about(self, repository: Repository, commit: str) -> dict[str, Any]:
        """What the Hub says of a commit."""
        return {
            "id": "me/coins",
            "sha": self.commit or commit,
            "siblings": [self._about(name, content) for name, content in repository.commits[commit].items()],
        }

    def _about(self, name: str, content: bytes) -> dict[str, Any]:
        size = self.sizes.get(name, len(content))
        about: dict[str, Any] = {"rfilename": name, "size": size, "blobId": blob(content)}
        if is_large(name):
            about["lfs"] = {"size": size, "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 130}
        return about


def blob(content: bytes) -> str:
    """What git calls a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_large(name: str) -> bool:
    """Whether the Hub keeps a file apart from the repository."""
    return name.endswith((".safetensors", ".png"))


@contextmanager
def serving() -> Iterator[Hub]:
    """A stand-in at an address of this machine."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            answer(self, hub, b"")

        do_HEAD = do_GET

        def do_POST(self) -> None:
            answer(self, hub, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        do_PUT = do_POST

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(request: BaseHTTPRequestHandler, hub: Hub, body: bytes) -> None:
    """Answer a request as the Hub would."""
    path = unquote(urlsplit(request.path).path)
    hub.asked.append(f"{request.command} {path}")
    allowed = request.headers.get("Authorization") == f"Bearer {TOKEN}"
    if request.command == "POST" and not allowed:
        return send(request, 401, {"error": "no"}, {"X-Error-Code": "RepoNotFound"})
    if path == "/api/repos/create":
        return create(request, hub, json.loads(body))
    if path == "/api/validate-yaml":
        return send(request, 200, {"errors": [], "warnings": []})
    if path.startswith("/large/"):
        name = path.removeprefix("/large/")
        if request.command == "PUT":
            assert hashlib.sha256(body).hexdigest() == name
            hub.large[name] = body
            return send(request, 200, {})
        return send(request, 200, hub.large[name])
    owner, name, *rest = path.removeprefix("/api/models/").strip("/").split("/")
    known = hub.repositories.get(f"{owner}/{name.removesuffix('.git')}")
    if known is None or (known.private and not allowed):
        return send(request, 404, {"error": "no"}, {"X-Error-Code": "RepoNotFound"})
    if path.endswith("/info/lfs/objects/batch"):
        return send(request, 200, batch(hub, json.loads(body)))
    if rest[:1] == ["preupload"]:
        modes = [
            {"path": one["path"], "uploadMode": "lfs" if is_large(one["path"]) else "regular", "shouldIgnore": False}
            for one in json.loads(body)["files"]
        ]
        return send(request, 200, {"files": modes})
    if rest[:1] == ["commit"]:
        commit = committed(hub, known, [json.loads(line) for line in body.splitlines()])
        address = {"commitUrl": f"{hub.url}/{owner}/{name}/commit/{commit}", "commitOid": commit}
        return send(request, 200, {"success": True, **address})
    revision = rest[1] if len(rest) > 1 else "main"
    commit = known.main if revision == "main" else revision
    if commit not in known.commits:
        return send(request, 404, {"error": "no"}, {"X-Error-Code": "RevisionNotFound"})
    if rest[:1] == ["resolve"]:
        return resolve(request, hub, known.commits[commit], "/".join(rest[2:]))
    return send(request, 200, hub.about(known, commit))


def create(request: BaseHTTPRequestHandler, hub: Hub, asked: dict[str, Any]) -> None:
    """Make a repository, unless it is there."""
    name = f"{asked['organization']}/{asked['name']}"
    status = 409 if name in hub.repositories else 200
    private = bool(asked.get("private")) or asked.get("visibility") == "private"
    known = hub.repositories.setdefault(name, Repository(private=private))
    if not known.commits:
        known.commit({".gitattributes": b"*.safetensors filter=lfs\n"}, "initial commit")
    send(request, status, {"url": f"{hub.url}/{name}"})


def batch(hub: Hub, asked: dict[str, Any]) -> dict[str, Any]:
    """Where large files are to be sent."""
    objects = [
        {"oid": one["oid"], "size": one["size"], "actions": {"upload": {"href": f"{hub.url}/large/{one['oid']}"}}}
        for one in asked["objects"]
    ]
    return {"transfer": "basic", "objects": objects}


def committed(hub: Hub, repository: Repository, lines: list[dict[str, Any]]) -> str:
    """Take in a commit, a line a file."""
    files, message = dict(repository.files), ""
    for line in lines:
        value = line["value"]
        if line["key"] == "header":
            message = value["summary"]
        elif line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            files[value["path"]] = hub.large[value["oid"]]
        else:
            del files[value["path"]]
    return repository.commit(files, message)


def resolve(request: BaseHTTPRequestHandler, hub: Hub, files: dict[str, bytes], name: str) -> None:
    """Send a file, or where it is."""
    if name not in files:
        return send(request, 404, {"error": "no"}, {"X-Error-Code": "EntryNotFound"})
    content = hub.contents.get(name, files[name])
    if is_large(name) and name not in hub.contents:
        digest = hashlib.sha256(content).hexdigest()
        hub.large[digest] = content
        return send(request, 302, {}, {"Location": f"{hub.url}/large/{digest}"})
    return send(request, 200, content)


def send(
    request: BaseHTTPRequestHandler, status: int, body: bytes | dict[str, Any], headers: dict[str, str] | None = None
) -> None:
    """Send an answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/octet-stream" if isinstance(body, bytes) else "application/json")
    request.send_header("Content-Length", str(len(content)))
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(content)
