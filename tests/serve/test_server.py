"""Laws of addresses and ports, and of the command."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import pcdnet.cli.serve
from pcdnet.cli.serve import Serve
from pcdnet.errors import PcdnetError
from pcdnet.serve.access import is_local
from pcdnet.serve.server import address, bind


def test_a_taken_port_is_refused_with_one_that_is_free() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(PcdnetError, match=f"port {port} is in use; use port=") as refused:
            bind("127.0.0.1", port)
        found = re.search(r"port=(\d+), which is free", str(refused.value))
        assert found
        with bind("127.0.0.1", int(found.group(1))) as second:
            assert address(second) == f"http://127.0.0.1:{found.group(1)}/"


@pytest.mark.parametrize(("host", "port"), [("no.such.host.invalid", 0), ("203.0.113.7", 0), ("127.0.0.1", 70_000)])
def test_an_address_that_is_none_of_ours_is_refused_with_a_cure(host: str, port: int) -> None:
    with pytest.raises(PcdnetError, match="; use "):
        bind(host, port)


def test_only_loopback_addresses_are_local() -> None:
    assert all(is_local(host) for host in ("localhost", "127.0.0.1", "127.3.2.1", "::1"))
    assert not any(is_local(host) for host in ("0.0.0.0", "::", "192.168.0.7", "example.org", ""))


def test_what_is_not_installed_is_named_with_its_cure(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcdnet.cli.serve, "NEEDED", ("fastapi", "no_such_package"))
    with pytest.raises(PcdnetError, match=r"no_such_package.*pip install 'pcdnet\[serve\]'"):
        Serve(folder=run).run()


def test_the_command_prints_its_address_answers_there_and_ends_quietly(run: Path) -> None:
    code = (
        f"from pathlib import Path; from pcdnet.cli.serve import Serve; Serve(folder=Path({str(run)!r}), port=0).run()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, process.stderr.read()
        assert "next:" in line
        assert httpx.get(f"{found.group(0)}api/samples").json()["count"] > 0
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
