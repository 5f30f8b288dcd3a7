"""Laws of addresses and ports, and of the command."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

import pcdnet.cli.serve
from pcdnet.cli.serve import Serve
from pcdnet.errors import PcdnetError
from pcdnet.serve.messages import Array
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


def test_what_is_not_installed_is_named_with_its_cure(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcdnet.cli.serve, "NEEDED", ("fastapi", "no_such_package"))
    with pytest.raises(PcdnetError, match=r"no_such_package.*pip install 'pcdnet\[serve\]'"):
        Serve(folder=run).run()


@contextmanager
def command(run: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and the address that it prints."""
    serve = f"Serve(folder=Path({str(run)!r}), port=0).run()"
    code = f"from pathlib import Path; from pcdnet.cli.serve import Serve; {serve}"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert found, process.communicate()[1]
            assert "next:" in line
            yield process, found.group(0)
        finally:
            process.kill()


def test_the_command_prints_its_address_answers_there_and_ends_quietly(run: Path) -> None:
    with command(run) as (process, page):
        assert httpx.get(f"{page}api/pictures").json()["count"] > 0
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20) == ("ended\n", "")
        assert process.returncode == 0


def test_it_ends_soon_and_quietly_whoever_is_waiting(run: Path) -> None:
    things = [{"prototype": n % 19, "position": [n, n], "colour": [1, 1, 1]} for n in range(256)]
    scene = {
        "size": [512, 512],
        "objects": things,
        "image": Array.from_numpy(np.zeros((512, 512, 3), np.uint8)).model_dump(),
    }
    with command(run) as (process, page), ThreadPoolExecutor(30) as pool:
        sent = [pool.submit(httpx.post, f"{page}api/render", json=scene, timeout=30) for _ in range(30)]
        next(as_completed(sent)).result()
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=20) == ("ended\n", "")
        assert time.monotonic() - start < 5, "2 seconds on a machine that does nothing else"
        assert process.returncode == 0
        answers = [one.result().status_code for one in sent if one.exception() is None]
        assert set(answers) <= {200, 503}


def test_nothing_that_a_stranger_sends_is_logged(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert client.post("/api/decompose", content=b"{no form", headers=kind).status_code == 400
    assert not caplog.records
    assert capfd.readouterr().err == ""
