"""Laws of slow clients: whoever keeps the server waiting is cut off, and nobody else notices."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from h11 import NEED_DATA, PAUSED, RemoteProtocolError
from httpx import Client

from pcdnet.serve import patience
from pcdnet.serve.patience import PatientProtocol, TerseConnection

SHORT = 0.4
HEAD = (
    b"POST /api/render HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients have little time."""
    monkeypatch.setattr(PatientProtocol, "patience", SHORT)


@contextmanager
def connected(site: str) -> Iterator[socket.socket]:
    """A connection without any HTTP."""
    where = urlsplit(site)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=5) as made:
        yield made


def until_closed(connection: socket.socket) -> tuple[bytes, float]:
    """All that comes before the server hangs up, and how long that takes."""
    start, content = time.monotonic(), b""
    try:
        while part := connection.recv(1 << 16):
            content += part
    except ConnectionResetError:
        pass
    return content, time.monotonic() - start


@pytest.mark.parametrize("sent", [b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half:", HEAD, HEAD + b"x" * 99])
def test_half_a_request_is_not_waited_for(hasty: None, site: str, client: Client, sent: bytes) -> None:
    with connected(site) as connection:
        connection.sendall(sent)
        content, seconds = until_closed(connection)
    head, _, body = content.partition(b"\r\n\r\n")
    assert SHORT / 2 < seconds < SHORT + 4
    assert head.startswith(b"HTTP/1.1 408 ")
    assert "0.4 seconds; send it at once" in json.loads(body)["error"]
    assert client.get("/api/pictures").status_code == 200


def test_who_says_nothing_is_not_waited_for(hasty: None, site: str) -> None:
    with connected(site) as connection:
        content, seconds = until_closed(connection)
    assert content == b""
    assert seconds < SHORT + 4


@pytest.mark.parametrize("start", [b"GET /api/pictures HTTP/1.1\r\nHost: 127.0.0.1\r\n", HEAD])
def test_a_drip_of_bytes_buys_little_time(hasty: None, site: str, start: bytes) -> None:
    with connected(site) as connection:
        connection.sendall(start)
        begun = time.monotonic()
        with suppress(OSError):
            while time.monotonic() < begun + 5:
                connection.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() - begun < SHORT + 4


def test_a_body_that_comes_steadily_may_take_longer(hasty: None, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LEAST_RATE", 10_000)
    with connected(site) as connection:
        connection.sendall(HEAD)
        for _ in range(10):
            connection.sendall(b"x" * 10_000)
            time.sleep(SHORT / 5)
        assert connection.recv(12) == b"HTTP/1.1 422"


def test_an_answer_that_is_not_taken_is_thrown_away(hasty: None, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[float] = []
    kept = PatientProtocol.connection_lost

    def noted(self: PatientProtocol, error: Exception | None) -> None:
        lost.append(time.monotonic())
        kept(self, error)

    monkeypatch.setattr(PatientProtocol, "connection_lost", noted)
    body = json.dumps({"size": [512, 512], "objects": []}).encode()
    head = HEAD.replace(b"100000", str(len(body)).encode())
    with connected(site) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall((head + body) * 8)
        begun = time.monotonic()
        while not lost and time.monotonic() < begun + 8:
            time.sleep(0.05)
        assert lost


CHUNKED = HEAD.replace(b"Content-Length: 100000", b"Transfer-Encoding: chunked")
SMALL = b"GET /api/pictures HTTP/1.1\r\nHost: 127.0.0.1\r\n"
TOO_MUCH = {
    "lines of a head": SMALL + b"a:\r\n" * 101 + b"\r\n",
    "bytes of a head": SMALL + b"a: " + b"b" * (16 << 10) + b"\r\n\r\n",
    "a second head": SMALL + b"\r\n" + SMALL + b"a:\r\n" * 101 + b"\r\n",
    "digits": HEAD.replace(b"100000", b"9" * 5000),
    "chunks": CHUNKED + b"1\r\nx\r\n" * 20_000,
    "chunks of a body that nobody wants": CHUNKED.replace(b"/api/render", b"/nowhere") + b"1\r\nx\r\n" * 20_000,
    "lines after a body": CHUNKED + b"0\r\n" + b"a:\r\n" * 50_000 + b"\r\n",
    "two lengths": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + b"0\r\n\r\n",
    "no chunk": CHUNKED + b"zz\r\n",
    "no chunk of a body that nobody wants": CHUNKED.replace(b"/api/render", b"/nowhere"),
}


@pytest.mark.parametrize("sent", TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_who_sends_what_takes_long_to_read_is_cut_off(
    site: str, sent: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with connected(site) as connection:
        connection.sendall(sent)
        if sent is TOO_MUCH["no chunk of a body that nobody wants"]:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 404")
            connection.sendall(b"zz\r\n")
        content, seconds = until_closed(connection)
    assert seconds < 4
    if b"HTTP/1.1 " in content:
        last = content[content.rindex(b"HTTP/1.1 ") :]
        assert last[9:12] in (b"400", b"404")
        assert "; " in json.loads(last.partition(b"\r\n\r\n")[2])["error"]
    assert not caplog.records
    assert capfd.readouterr().err == ""


def read_by(connection: TerseConnection, sent: bytes) -> int:
    """How many parts of requests are read of what is sent, until that is too much."""
    connection.receive_data(sent)
    for count in itertools.count():
        try:
            if connection.next_event() in (NEED_DATA, PAUSED):
                return count
        except RemoteProtocolError:
            return count
    raise AssertionError


def test_a_chunk_must_be_worth_the_time_that_it_takes() -> None:
    crumbs = [b"1\r\nx\r\n" * 9999, b"7f\r\n%b\r\n" % bytes(127) * 9999]
    assert [read_by(TerseConnection(), CHUNKED + each) for each in crumbs] == [258, 509]
    for size in (256, 1000):
        chunk = b"%x\r\n%b\r\n" % (size, bytes(size))
        assert read_by(TerseConnection(), CHUNKED + 9999 * chunk) == 1 + 9999


def test_a_body_in_pieces_of_a_usual_size_is_read(client: Client) -> None:
    body = json.dumps({"picture": 0}).encode().ljust(1 << 20)
    pieces = iter([body[start : start + 512] for start in range(0, len(body), 512)])
    answer = client.post("/api/decompose", content=pieces, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200


def test_who_takes_no_answers_makes_room_for_others(site: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", 4)
    client.get("/api/pictures")
    where, body = urlsplit(site), json.dumps({"size": [512, 512], "objects": []}).encode()
    request = HEAD.replace(b"100000", str(len(body)).encode()) + body
    with ExitStack() as stack:
        for _ in range(4):
            greedy = stack.enter_context(socket.socket())
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.connect((where.hostname or "", where.port or 0))
            greedy.sendall(SMALL + b"\r\n")
            greedy.recv(1 << 16)
            greedy.sendall(request * 4)
        time.sleep(1)
        for _ in range(3):
            with Client(base_url=site) as other:
                assert other.get("/api/pictures").status_code == 200


def test_the_client_with_most_connections_makes_room(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", 8)
    where = urlsplit(site)
    place = where.hostname or "", where.port or 0
    with ExitStack() as stack:
        first = [stack.enter_context(socket.create_connection(place, 5, ("127.0.0.2", 0))) for _ in range(2)]
        first[0].sendall(b"GET / HT")
        greedy = [stack.enter_context(socket.create_connection(place, 5, ("127.0.0.3", 0))) for _ in range(20)]
        until_closed(greedy[12])
        for connection in first:
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)


def test_idle_connections_make_room_for_others(site: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MOST_CONNECTIONS", 8)
    client.get("/api/pictures")
    others = []
    for _ in range(20):
        where = urlsplit(site)
        others.append(socket.create_connection((where.hostname or "", where.port or 0), timeout=5))
        others[-1].sendall(b"GET / HT")
    assert client.get("/api/pictures").status_code == 200
    content, seconds = until_closed(others[0])
    assert seconds < 5
    assert content == b""
    for connection in others:
        connection.close()
