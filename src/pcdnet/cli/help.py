"""Help: what is shown to whoever asks for nothing, for help, or for a command that there is not."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import shutil
import textwrap
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import tyro

TASKS: dict[str, dict[str, str]] = {
    "try it": {
        "models": "pcdnet models",
        "demo": "pcdnet demo",
    },
    "learn": {
        "train": "pcdnet train --data photos --out runs/mine",
        "learn-again": "pcdnet learn-again runs/mine --draw photos/3.png:40,52,18,20:cell --remove 4",
        "tune": "pcdnet tune --data photos --out studies/mine --minutes 2",
    },
    "find objects": {
        "decompose": "pcdnet decompose runs/mine new.png --out results --format coco",
        "gather": "pcdnet gather parts/0 parts/1 --out results",
        "export": "pcdnet export runs/mine --onnx mine.onnx",
        "push": "pcdnet push runs/mine me/coins",
    },
    "look": {
        "report": "pcdnet report runs/mine",
        "serve": "pcdnet serve runs/mine",
        "figure": "pcdnet figure runs/mine --kind prototypes --out figure.pdf",
        "merge": "pcdnet merge runs/mine 3 7 --name L",
        "hide": "pcdnet hide runs/mine 4",
    },
    "measure": {
        "eval": "pcdnet eval runs/mine",
        "runs": "pcdnet runs runs",
        "bench": "pcdnet bench runs/mine",
        "data": "pcdnet data tetrominoes --count 200 --out scenes.npz",
    },
}
"""Every command with an example, by what it is for."""
USUAL = (
    *("data", "out", "preset", "minutes", "seed", "resume", "force"),
    *("resize", "tiles", "device", "json"),
    *("model.num_prototypes", "model.prototype_size", "model.max_objects", "train.steps"),
)
"""The options of training that people use, in the order in which they are shown; `--help-all` shows the others, too."""
ALL = "--help-all"
"""Asks for the help of all options."""
ASKING = {"--help", "-h", ALL}
"""What asks for help."""
WIDEST, INDENT = 120, 15
"""Columns that help takes at most, and those before what a command does."""


def overview(commands: Mapping[str, type]) -> str:
    """All commands by task, each with what it does and an example."""
    lines = [
        "usage: pcdnet COMMAND [OPTIONS]",
        "",
        "Find the repeating objects in images without labels, and explain every image as a stack of them.",
    ]
    for task, examples in TASKS.items():
        lines += ["", f"{task}:"]
        for name, example in examples.items():
            purpose = " ".join((commands[name].__doc__ or "").partition("\n\n")[0].split())
            first, *others = textwrap.wrap(purpose, min(WIDEST, shutil.get_terminal_size().columns) - INDENT)
            lines += [f"  {name:<{INDENT - 2}}{first}", *(" " * INDENT + line for line in others)]
            lines += [" " * INDENT + f"  {example}"]
    lines += ["", "`pcdnet COMMAND --help` shows the options of one; `pcdnet --version` the version."]
    return "\n".join(lines)


def unknown_command(word: str, commands: Collection[str]) -> str | None:
    """What to say of a first word that is no command; nothing if it is one, or an option."""
    if word in commands or word.startswith("-"):
        return None
    near = difflib.get_close_matches(word, commands, n=1)
    cure = f"did you mean {near[0]}" if near else f"use one of {', '.join(commands)}"
    return f"there is no command {word!r:.60}; {cure}{'?' if near else ''} (`pcdnet --help` shows what each does)"


def wants_help(arguments: Sequence[str]) -> bool:
    """Whether the help of a command is asked for, all of it or the usual options."""
    return bool(ASKING & set(arguments))


def as_plain_help(arguments: Sequence[str]) -> list[str]:
    """The arguments with the plain request for help instead of the one for all of it."""
    return ["--help" if word == ALL else word for word in arguments]


def helped(name: str, command: type, arguments: Sequence[str]) -> type:
    """The command as its help shows it: the usual options first, or alone, and every sentence in one piece."""
    few = name == "train" and ALL not in arguments
    made = _shown(command, few=few)
    examples = [example for task in TASKS.values() for other, example in task.items() if other == name]
    usual = f"These are the usual options; {ALL} shows all." if few else ""
    paragraphs = [(command.__doc__ or "").strip(), *(f"Example: {example}" for example in examples), usual]
    made.__doc__ = "\n\n".join(filter(None, paragraphs))
    return made


def _shown(command: type, *, few: bool, within: str = "") -> type:
    hints, sentences = get_type_hints(command, include_extras=True), _sentences(command)
    places = {path: place for place, path in enumerate(USUAL)}
    shown: list[tuple[str, Any, Any]] = []
    for field in sorted(dataclasses.fields(command), key=lambda each: places.get(within + each.name, len(places))):
        path, hint = within + field.name, hints[field.name]
        if few and not any(name == path or name.startswith(f"{path}.") for name in USUAL):
            continue
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            part = _shown(hint, few=few, within=f"{path}.")
            given = field.default if field.default is not dataclasses.MISSING else hint()
            values = {each.name: getattr(given, each.name) for each in dataclasses.fields(part)}
            shown.append((field.name, part, dataclasses.field(default=part(**values))))
            continue
        if field.name in sentences:
            # A type that is made here is none that a checker could know.
            hint = Annotated[hint, tyro.conf.arg(help=sentences[field.name])]
        shown.append((field.name, hint, dataclasses.field(default=field.default)))
    made = dataclasses.make_dataclass(command.__name__, shown, frozen=True, kw_only=True)
    made.__doc__ = command.__doc__
    return made


def _sentences(command: type) -> dict[str, str]:
    """What the docstrings of the fields say, each in one line."""
    found: dict[str, str] = {}
    for owner in reversed(command.__mro__[:-1]):
        with suppress(OSError, TypeError):  # it was made, and has no source
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
            assert isinstance(tree, ast.ClassDef)
            for field, words in pairwise(tree.body):
                if isinstance(field, ast.AnnAssign) and isinstance(words, ast.Expr):
                    name, value = field.target, words.value
                    if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                        found[name.id] = " ".join(value.value.split())
    return found
