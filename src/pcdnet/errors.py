"""PcdnetError: a mistake that the user can cure, and the fields and arguments that it is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """A configuration field (`model.prototype_size`) or an argument (`out`) that a message names.

    Messages speak Python, `prototype_size=(30, 30)`; the command line words the same setting as its flag.
    """

    name: str
    """The field with its section, or the argument alone."""
    value: object = None
    """What it is, or should be set to; None where only the name matters."""

    def __str__(self) -> str:
        name = self.name.rpartition(".")[2]
        return name if self.value is None else f"{name}={self.value!r}"


class PcdnetError(Exception):
    """Something the user gave cannot be used; the message says what, which value, and how to cure it.

    Parameters
    ----------
    parts
        The message in pieces: text, and a `Setting` wherever a field or an argument is named.

    Examples
    --------
    >>> error = PcdnetError("images have 1 channel; use ", Setting("model.channels", 1))
    >>> str(error)
    'images have 1 channel; use channels=1'
    >>> error.worded(lambda setting: f"--{setting.name}")
    'images have 1 channel; use --model.channels'
    """

    def __init__(self, *parts: str | Setting) -> None:
        super().__init__("".join(map(str, parts)))
        self.parts = parts

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The fields and arguments that the error is about."""
        return tuple(part for part in self.parts if isinstance(part, Setting))

    def worded(self, say: Callable[[Setting], str]) -> str:
        """The message with every setting in the words of whoever talks to the user."""
        return "".join(say(part) if isinstance(part, Setting) else part for part in self.parts)


class Unwritable(PcdnetError):
    """A file or folder cannot be written: no input is to blame, and going on with the next one is of no use."""


class Incomplete(PcdnetError):
    """Some of what a file holds cannot be read; readers raise it at the end, when all else has been used."""


class Interrupted(PcdnetError):
    """Training was asked to stop, and did so after the step it was in."""


class Elsewhere(PcdnetError):
    """Training in several processes ended in all of them; the first one says why, and the others need not."""
