"""Command line: a page for every command, from what its help prints."""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from html import escape
from unittest.mock import patch

from pcdnet.cli import COMMANDS, parse
from pcdnet.cli.help import ALL, TASKS, overview

WIDTH = 100
"""Letters in a line of the help that is read."""


@dataclass(slots=True)
class Option:
    """An option with the name of its value, and what it does."""

    flag: str
    words: str


@dataclass(slots=True)
class Box:
    """A group of options under a title."""

    title: str
    about: str = ""
    options: list[Option] = field(default_factory=list)


def pages() -> dict[str, str]:
    """The markdown of all pages, by path."""
    made = {f"command-line/{name}.md": page(name) for name in COMMANDS}
    return {"command-line/index.md": index(), **made}


def index() -> str:
    """All commands by task, each with an example."""
    lines = [
        "# The command line",
        "",
        "What `pcdnet COMMAND --help-all` prints, made anew with every build of these pages.",
        "",
    ]
    for task, examples in TASKS.items():
        lines += [f"## {task.capitalize()}", ""]
        for name, example in examples.items():
            lines += [f"[`pcdnet {name}`]({name}.md)", f":   {_prose(_purpose(name))}", "", f"        {example}", ""]
    return "\n".join([*lines, "## As it is printed", "", "```text", overview(COMMANDS), "```", ""])


def page(name: str) -> str:
    """A command: what it does, an example, and its options by group."""
    usage, about, boxes = read(printed(name))
    example = next((examples[name] for examples in TASKS.values() if name in examples), f"pcdnet {name} --help")
    lines = [f"# pcdnet {name}", "", *(f"{_prose(words)}\n" for words in about), "```sh", example, "```", ""]
    lines += ["```text", usage, "```", ""]
    for box in boxes:
        lines += [f"## {box.title.capitalize()}", "", _prose(box.about), ""]
        for option in box.options:
            lines += [f"`{option.flag}`", f":   {_prose(option.words)}", ""]
    return "\n".join(lines)


def printed(name: str, *, width: int = WIDTH) -> str:
    """What `pcdnet NAME --help-all` prints."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # as a terminal that has the signs for boxes
    with patch.dict(os.environ, {"COLUMNS": str(width), "NO_COLOR": "1"}), redirect_stdout(out):
        try:
            parse([name, ALL])
        except SystemExit as ended:
            if ended.code:
                raise
    out.flush()
    return out.buffer.getvalue().decode()


def read(text: str) -> tuple[str, list[str], list[Box]]:
    """A help's usage, what it says of the command, and its boxes."""
    head, *rest = re.split(r"^╭─ (.*?) ─*╮$", text, flags=re.MULTILINE)
    usage, *about = [" ".join(part.split()) for part in head.strip().split("\n\n")]
    boxes = [_box(title, body) for title, body in zip(rest[::2], rest[1::2], strict=True)]
    return usage, about, boxes


def _box(title: str, body: str) -> Box:
    box = Box(title)
    for line in re.findall(r"^│ (.*?) *│$", body, flags=re.MULTILINE):
        if line.startswith("─"):
            continue
        flag, _, words = re.sub(r"^(\S.*?)(?:  +|$)", "\\1\0", line).partition("\0")
        if not line.startswith(" ") and _names_an_option(flag, line, title):
            box.options.append(Option(flag.strip(), words.strip()))
        elif box.options:
            box.options[-1].words += " " + line.strip()
        else:
            box.about += " " + line.strip()
    return box


def _names_an_option(flag: str, line: str, title: str) -> bool:
    """Whether a line begins with an option, or with the name of an argument without a flag."""
    return flag.startswith("-") or title.startswith("positional") or bool(re.match(r"[A-Z\[{][^ ]*(  |$)", line))


def _purpose(name: str) -> str:
    return " ".join((COMMANDS[name].__doc__ or "").partition("\n\n")[0].split())


def _prose(words: str) -> str:
    """Plain text as markdown that shows it as it is, with flags as code."""
    parts = " ".join(words.split()).split("`")  # every other one is code already
    shown = "`".join(part if n % 2 else _plain(part) for n, part in enumerate(parts))
    return re.sub(r"\((default: .+|required)\)$", r"<small>(\1)</small>", shown.removesuffix(" (default: )"))


def _plain(words: str) -> str:
    """Words without code as markdown."""
    safe = re.sub(r"([\\*\[\]#|])", r"\\\1", escape(words, quote=False))
    return re.sub(r"(?<![\w-])(--[a-z][\w.-]*[a-z0-9])", r"`\1`", safe)
