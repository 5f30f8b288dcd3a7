"""Laws of notes: what readers report is one sentence that names the file and the cure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.data.notes import LONGEST, printable, readable, some, to_stderr
from pcdnet.errors import PcdnetError


def test_a_note_goes_to_stderr_alone(capsys: pytest.CaptureFixture[str]) -> None:
    to_stderr("two images were skipped")
    assert capsys.readouterr() == ("", "note: two images were skipped\n")


@given(st.text(st.characters(), max_size=20))
def test_what_is_printed_neither_breaks_lines_nor_gives_commands_and_can_be_encoded(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()
    assert printable(shown) == shown
    assert not text.isprintable() or shown == text


def test_a_text_of_any_length_is_shown_with_its_beginning_and_its_end() -> None:
    for sign in ("x", "\x1b", "\U0001d173"):
        shown = printable(f"it is wrong: {10**6 * sign}; remove it")
        assert len(shown) <= LONGEST
        assert shown.startswith("it is wrong: ")
        assert shown.endswith("; remove it")
        assert printable(shown) == shown


@given(st.lists(st.sampled_from("abc")), st.integers(1, 5))
def test_of_many_names_the_first_are_listed_and_the_others_counted(names: list[str], most: int) -> None:
    listed, _, rest = some(names, most).partition(" and ")
    assert listed == ", ".join(names[:most])
    assert rest == (f"{len(names) - most} more" if len(names) > most else "")


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (FileNotFoundError(2, "No such file"), "a.x does not exist; give the path of an .x file"),
        (PermissionError(13, "Permission denied"), "a.x cannot be read (Permission denied); give an .x file that can"),
        (OSError("odd"), "a.x cannot be read (odd); give an .x file that can be read"),
        (EOFError("it ends"), "a.x is no sound .x file (it ends); save it again"),
        (BlockingIOError(11, "busy"), "a.x is no sound .x file (busy); save it again"),
        (PcdnetError("as it was"), "as it was"),
    ],
)
def test_what_goes_wrong_is_one_sentence(error: Exception, complaint: str) -> None:
    damage = (EOFError, BlockingIOError)
    with pytest.raises(PcdnetError) as caught, readable(Path("a.x"), "an .x file", damage, "save it again"):
        raise error
    assert str(caught.value).startswith(complaint)
    assert caught.value.__suppress_context__ or caught.value is error


def test_mistakes_of_ours_are_not_reported_as_the_files() -> None:
    with pytest.raises(KeyError), readable(Path("a.x"), "an .x file"):
        raise KeyError
