"""Help: what is shown to whoever asks for nothing, for help, or for a command that there is not."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_type_hints

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
ESSENTIAL = frozenset(
    {
        *("out", "data", "preset", "seed", "minutes", "resume", "force", "device", "json", "resize", "tiles"),
        *("model.num_prototypes", "model.prototype_size", "model.max_objects", "train.steps"),
    }
)
"""The options of training that people use; `--help-all` shows the others, too."""
ALL = "--help-all"
"""Asks for the help of all options."""
HIDDEN: Any = tyro.conf.Suppress


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
            lines += [f"  {name:<13}{purpose}", f"  {'':<13}  {example}"]
    lines += ["", "`pcdnet COMMAND --help` shows the options of one; `pcdnet --version` the version."]
    return "\n".join(lines)


def unknown_command(word: str, commands: Collection[str]) -> str | None:
    """What to say of a first word that is no command; nothing if it is one, or an option."""
    if word in commands or word.startswith("-"):
        return None
    near = difflib.get_close_matches(word, commands, n=1)
    cure = f"did you mean {near[0]}" if near else f"use one of {', '.join(commands)}"
    return f"there is no command {word!r:.60}; {cure}{'?' if near else ''} (`pcdnet --help` shows what each does)"


def wants_the_essentials(arguments: Sequence[str]) -> bool:
    """Whether the help of a command is asked for, and not all of it."""
    return ALL not in arguments and bool({"--help", "-h"} & set(arguments))


def as_plain_help(arguments: Sequence[str]) -> list[str]:
    """The arguments with the plain request for help instead of the one for all of it."""
    return ["--help" if word == ALL else word for word in arguments]


def essentials(command: type, *, within: str = "") -> type:
    """The command with none but the essential options, to show the help of."""
    hints, hidden = get_type_hints(command, include_extras=True), []
    for field in dataclasses.fields(command):
        path = within + field.name
        if any(name.startswith(f"{path}.") for name in ESSENTIAL):
            part: Any = essentials(hints[field.name], within=f"{path}.")
            given = field.default if field.default is not dataclasses.MISSING else hints[field.name]()
            hidden.append((field.name, part, dataclasses.field(default=part(**_values(given)))))
        elif path not in ESSENTIAL:
            hidden.append((field.name, HIDDEN[hints[field.name]], _optional(field)))
    made = dataclasses.make_dataclass(command.__name__, hidden, bases=(command,), frozen=True, kw_only=True)
    made.__doc__ = command.__doc__ if within else f"{command.__doc__}\n\nThese are the usual options; {ALL} shows all."
    return made


def _values(given: Any) -> dict[str, Any]:
    return {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}


def _optional(field: dataclasses.Field[Any]) -> Any:
    """The field anew, as a subclass has it."""
    if field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=field.default_factory)
    return dataclasses.field(default=field.default)
