"""Laws of the pages on the command line: they say what the help prints."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from website.command_line import index, pages, printed, read

from pcdnet.cli import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_the_help_is_on_the_page_with_its_words(name: str) -> None:
    text = printed(name, width=100)
    flags = re.findall(r"^│ (--?[a-z][\w.-]*)", text, flags=re.MULTILINE)
    _, _, boxes = read(text)
    options = [option for box in boxes for option in box.options]
    assert [option.flag.split()[0].rstrip(",") for option in options if option.flag.startswith("-")] == flags
    page = pages()[f"command-line/{name}.md"]
    assert re.findall(r"^`(--?[a-z][\w.-]*)", page, flags=re.MULTILINE) == flags
    assert all(option.words for option in options)


def test_the_pages_are_those_of_the_help_whatever_its_width() -> None:
    def content(width: int) -> list[tuple[str, str, list[tuple[str, str]]]]:
        _, _, boxes = read(printed("train", width=width))
        return [
            (box.title, _words(box.about), [(_words(one.flag), _words(one.words)) for one in box.options])
            for box in boxes
        ]

    assert content(80) == content(100)


def _words(text: str) -> str:
    """Without spaces, as a long word may be broken."""
    return "".join(text.split())


def test_what_is_read_is_what_the_program_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pcdnet", "merge", "--help-all"], capture_output=True, text=True, check=True
    )
    assert _letters(done.stdout) == _letters(printed("merge"))


def _letters(text: str) -> str:
    return re.sub(r"[\s│╭╮╰╯─]", "", text)


def test_the_overview_links_to_every_command() -> None:
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", index())) == set(COMMANDS)


def test_what_a_command_that_is_new_prints_would_be_on_a_page_of_its_own() -> None:
    assert set(pages()) == {f"command-line/{name}.md" for name in (*COMMANDS, "index")}
