"""Laws of `pcdnet serve`: what it shows to begin with, and what it says where there is nothing to show."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from pcdnet.origin import Origin
from pcdnet.serve.server import bind
from pcdnet.serve.workbench import Workbench
from tests.cli.conftest import Complaint
from tests.runs import true_run

TOKEN = "a-secret-of-letters-0123"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Workbench]:
    """The workbenches that the command would serve; it ends at once, as by Ctrl-C."""
    made: list[Workbench] = []

    def interrupted(sockets: object) -> None:
        raise KeyboardInterrupt

    def noted(workbench: Workbench, **_: Any) -> Any:
        made.append(workbench)
        return SimpleNamespace(state=SimpleNamespace(desk=SimpleNamespace(idle=True), busy=lambda: False))

    monkeypatch.setattr("pcdnet.serve.app.create_app", noted)
    monkeypatch.setattr("pcdnet.serve.server.make_server", lambda _: SimpleNamespace(run=interrupted))
    return made


def test_it_begins_with_the_pictures_of_the_run(
    trained: Path, data: Path, served: list[Workbench], capsys: Capture
) -> None:
    assert main(["serve", str(trained), "--port", "0"]) == 0
    printed, said = capsys.readouterr()
    assert said == ""
    assert printed.startswith(f"serving {trained} at http://127.0.0.1:")
    assert printed.endswith("next: open it in a browser; Ctrl-C ends it\nended\n")
    images = np.load(data)["image"]
    assert len(served[0].browsing) == len(images)
    np.testing.assert_array_equal(served[0].browsing.pixels(70), images[70])


def test_it_begins_with_what_is_named(
    trained: Path, tmp_path: Path, served: list[Workbench], complaint: Complaint
) -> None:
    images = generate(3, seed=8).images
    np.savez(tmp_path / "other.npz", image=images)
    assert main(["serve", str(trained), "--port", "0", "--data", str(tmp_path / "other.npz")]) == 0
    assert len(served[0].browsing) == 3
    np.testing.assert_array_equal(served[0].browsing.pixels(2), images[2])
    assert "does not exist" in complaint("serve", trained, "--port", "0", "--data", tmp_path / "none.npz")


@pytest.mark.parametrize("origin", [Origin(), Origin(data="gone.npz")])
def test_where_there_is_nothing_to_begin_with_it_asks_for_data(
    origin: Origin, tmp_path: Path, served: list[Workbench], capsys: Capture
) -> None:
    run = true_run(tmp_path / "run", origin).path
    assert main(["serve", str(run), "--port", "0"]) == 0
    assert capsys.readouterr().err == f"note: {run} has no images to begin with; name some with --data\n"
    assert served[0].pictures is None


def test_answers_are_sent_at_once() -> None:
    with bind("127.0.0.1", 0) as bound, socket.create_connection(bound.getsockname()):
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_mistakes_name_their_cure(
    trained: Path, tmp_path: Path, complaint: Complaint, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is no run" in complaint("serve", tmp_path, "--port", "0")
    assert "--device cpu" in complaint("serve", trained, "--port", "0", "--device", "abacus")
    monkeypatch.setattr("pcdnet.cli.serve.NEEDED", ("no_such_package",))
    assert complaint("serve", trained).endswith("pip install 'pcdnet[serve]'\n")


@pytest.mark.parametrize(
    ("options", "variable", "warning"),
    [
        ([], None, "every machine that reaches this one can look and edit, and nothing is encrypted; give a --token"),
        (["--token", TOKEN], None, "every machine that has the token can look and edit, and nothing is encrypted\n"),
        ([], TOKEN, "every machine that has the token can look and edit, and nothing is encrypted\n"),
    ],
)
def test_who_lets_other_machines_in_is_warned(
    options: list[str],
    variable: str | None,
    warning: str,
    trained: Path,
    served: list[Workbench],
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if variable is not None:
        monkeypatch.setenv("PCDNET_TOKEN", variable)
    assert main(["serve", str(trained), "--port", "0", "--host", "0.0.0.0", *options]) == 0
    printed, said = capsys.readouterr()
    assert said.startswith(f"warning: serving on 0.0.0.0: {warning}")
    assert said.count("\n") == 1
    secret = variable or "".join(options[1:])
    assert f":{printed.split(':')[2].split('/')[0]}/{secret and f'?token={secret}'}   next:" in printed


def test_hosts_and_tokens_that_make_no_sense_are_refused(trained: Path, complaint: Complaint) -> None:
    port = ("serve", trained, "--port", "0")
    assert "use --allow-host lab.example.org" in complaint(*port, "--allow-host", "http://lab.example.org")
    assert "a token of 5 characters can be guessed" in complaint(*port, "--token", "guess")
