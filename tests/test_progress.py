"""Laws of progress: values pass through, and stdout stays clean."""

from __future__ import annotations

import pytest

from pcdnet.errors import PcdnetError
from pcdnet.progress import track

STEPS = [(2, "a"), (2, "b"), (1, "c")]


@pytest.mark.parametrize("terminal", [False, True])
def test_values_pass_in_order_and_stdout_stays_clean(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if terminal else "0")
    assert list(track(STEPS, 5, "images")) == ["a", "b", "c"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "images" in err
    assert "5/5" in err


def test_without_a_terminal_there_are_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.setattr("pcdnet.progress.SECONDS", 0.0)
    list(track(STEPS, 5, "images"))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["images 2/5", "images 4/5", "images 5/5"]
    assert "\x1b" not in "".join(lines)


def test_nothing_to_do_is_refused() -> None:
    with pytest.raises(PcdnetError, match="0 images"):
        list(track([], 0, "images"))
