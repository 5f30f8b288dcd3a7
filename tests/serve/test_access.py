"""Laws of names and tokens: who is let in, and under which name of ours."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from benchmarks.serve import serving

from pcdnet.errors import PcdnetError
from pcdnet.serve.access import LOCAL_HOSTS, Token, client_at, hostname, is_known, is_local, known_hosts
from pcdnet.serve.workbench import Workbench

SECRET = "a-secret-of-letters-0123"


@pytest.fixture(scope="module")
def closed(workbench: Workbench) -> Iterator[str]:
    """The address of a server that has a token."""
    with serving(workbench, local=False, hosts=known_hosts("0.0.0.0", ["Lab.example"]), token=Token(SECRET)) as site:
        yield site


def asked(host: str, reached: str = "192.168.0.7") -> dict[str, Any]:
    """A request that names a host, and the address that it came to."""
    return {"type": "http", "headers": [(b"host", host.encode())], "server": (reached, 8350)}


def test_only_loopback_addresses_are_local() -> None:
    assert all(is_local(host) for host in ("localhost", "127.0.0.1", "127.3.2.1", "::1"))
    assert not any(is_local(host) for host in ("0.0.0.0", "::", "192.168.0.7", "example.org", ""))


def test_a_server_for_others_is_known_by_the_names_of_its_machine_and_by_those_that_are_given() -> None:
    hosts = known_hosts("0.0.0.0", ["Lab.Example", "[fe80::1]"])
    assert LOCAL_HOSTS | {socket.gethostname().lower(), "lab.example", "[fe80::1]"} <= hosts
    assert known_hosts("127.0.0.1") == LOCAL_HOSTS
    assert known_hosts("127.0.0.1", ["lab.example"]) == LOCAL_HOSTS | {"lab.example"}


@pytest.mark.parametrize("name", ["http://lab.example", "lab.example:80", "*", "", "a b", "lab.example/"])
def test_what_is_no_name_of_a_host_is_refused(name: str) -> None:
    with pytest.raises(PcdnetError, match="no name of a host.*use allow_host='lab.example.org'"):
        known_hosts("0.0.0.0", [name])


@pytest.mark.parametrize(
    ("host", "reached", "known"),
    [
        ("192.168.0.7:8350", "192.168.0.7", True),
        ("192.168.0.7", "::ffff:192.168.0.7", True),
        ("[fe80::1]:8350", "fe80::1%eth0", True),
        ("localhost:8350", "192.168.0.7", True),
        ("192.168.0.8:8350", "192.168.0.7", False),
        ("192.168.0.7.evil.example", "192.168.0.7", False),
        ("evil.example", "192.168.0.7", False),
        ("", "192.168.0.7", False),
        ("", "", False),
    ],
)
def test_an_address_is_ours_if_the_request_came_to_it(host: str, reached: str, known: bool) -> None:
    assert is_known(asked(host, reached), LOCAL_HOSTS) is known


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:8350", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8350", "[::1]"),
        ("[::1]", "[::1]"),
        ("a:b:c", "a:b:c"),
    ],
)
def test_ports_are_no_part_of_a_name(host: str, name: str) -> None:
    assert hostname(host) == name


@pytest.mark.parametrize("token", ["short", "fifteen-letters", "with a space in the middle", "täglich-ein-neues-wort"])
def test_a_token_that_is_easily_guessed_or_spoilt_is_refused_with_a_better_one(token: str) -> None:
    with pytest.raises(PcdnetError, match="token=") as refused:
        Token(token)
    Token(str(refused.value.settings[0].value))


@pytest.mark.parametrize("path", ["/", "/api/model", "/static/main.js", "/api/names", "/openapi.json", "/nowhere"])
def test_without_the_token_there_is_nothing_to_see(closed: str, path: str) -> None:
    wrong = {"Authorization": f"Bearer {SECRET[:-1]}"}
    for headers in ({}, wrong, {"Authorization": SECRET}, {"Cookie": f"pcdnet-{closed.rpartition(':')[2]}={SECRET}"}):
        answer = httpx.get(closed + path, headers=headers)
        assert answer.status_code == 401
        assert "Bearer TOKEN" in answer.json()["error"]
        assert "set-cookie" not in answer.headers
    assert httpx.get(f"{closed}{path}?token={SECRET[:-1]}").status_code == 401


def test_programs_send_the_token_with_every_request(closed: str) -> None:
    with httpx.Client(base_url=closed, headers={"Authorization": f"Bearer {SECRET}"}) as program:
        assert program.get("/api/pictures").json()["count"] == 6
        assert program.post("/api/decompose", json={"picture": 0}).status_code == 200
    assert httpx.post(f"{closed}/api/decompose?token={SECRET}", json={"picture": 0}).status_code == 401


def test_a_browser_that_opened_the_page_with_the_token_has_a_cookie_that_no_script_reads(closed: str) -> None:
    with httpx.Client(base_url=closed) as browser:
        page = browser.get(f"/?token={SECRET}")
        assert page.status_code == 200
        cookie = page.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/"))
        assert SECRET not in cookie
        assert browser.get("/api/pictures").json()["count"] == 6
        assert browser.get("/static/main.js").status_code == 200


def test_a_cookie_full_of_quotes_is_read_in_no_time() -> None:
    """Python's own reader takes seconds for this one, and nobody else is answered meanwhile."""
    begun = time.process_time()
    cookie = b'pcdnet-80="' + b'\\"' * 20_000 + b'"'
    scope: dict[str, Any] = {"type": "http", "method": "GET", "server": ("", 80), "headers": [(b"cookie", cookie)]}
    assert not Token(SECRET).fits(scope)
    assert time.process_time() - begun < 0.5
    scope["headers"] = [(b"cookie", b"a=b; ; =; " + Token(SECRET).cookie(scope).partition(";")[0].encode() + b" ;c")]
    assert Token(SECRET).fits(scope)


def test_who_serves_to_others_is_called_by_known_names_only(closed: str) -> None:
    with httpx.Client(base_url=closed, headers={"Authorization": f"Bearer {SECRET}"}) as client:
        for host in ("lab.example:80", "LAB.example", "localhost:8350", "127.0.0.1", socket.gethostname()):
            assert client.get("/api/pictures", headers={"Host": host}).status_code == 200
        for host in ("evil.example", "lab.example.evil.example", "10.0.0.1"):
            answer = client.get("/api/pictures", headers={"Host": host})
            assert answer.status_code == 421
            assert "--allow-host" in answer.json()["error"]


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9%eth0", "2001:db8:1:2::/64"),
        ("::1", "::1"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_a_client_is_told_by_what_addresses_it_can_choose(host: str, client: str) -> None:
    assert client_at(host) == client
