"""Names: what a person calls the prototypes, kept in a run's folder as `names.toml`.

    [names]
    "0" = "L"
    "7" = "square"

A name is plain text wherever it appears: markup in it is shown, never obeyed.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file

FILE = "names.toml"
"""The file of a run folder that holds the names."""
LONGEST = 60
"""Characters of a name at most."""

_LARGEST = 2**20  # bytes; no one names so many prototypes by hand


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """The names of a model's prototypes; those without one are called by their number."""

    count: int
    """How many prototypes there are."""
    given: Mapping[int, str] = field(default_factory=dict)
    """The names that a person gave, by prototype."""

    def __post_init__(self) -> None:
        for prototype, name in self.given.items():
            _check_number(prototype, self.count)
            if checked_name(name) != name or not name:
                raise PcdnetError(f"the name {name!r} of prototype {prototype} is blank or padded; strip it")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, prototype: int) -> str:
        if not 0 <= prototype < self.count:
            raise IndexError(f"there is no prototype {prototype} of {self.count}")
        return self.given.get(prototype, f"prototype {prototype}")

    def __iter__(self) -> Iterator[str]:
        return (self[prototype] for prototype in range(self.count))

    def renamed(self, prototype: int, name: str) -> Names:
        """The same names but for one; an empty name takes the prototype's name away."""
        _check_number(prototype, self.count)
        name = checked_name(name)
        others = {p: other for p, other in self.given.items() if p != prototype}
        return Names(count=self.count, given={**others, prototype: name} if name else others)

    @staticmethod
    def read(folder: str | Path, count: int) -> Names:
        """The names in a run folder; none where it holds no file of names."""
        path = Path(folder) / FILE
        try:
            with path.open("rb") as file:
                content = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return Names(count=count)
        except OSError as error:
            raise PcdnetError(f"{path} cannot be read ({error.strerror or error}); fix or remove it") from None
        if len(content) > _LARGEST:
            raise PcdnetError(f"{path} is larger than a mebibyte; keep nothing but names in it")
        try:
            tables = tomllib.loads(content.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PcdnetError(f"{path} is not valid TOML: {error}; fix or remove it") from None
        return Names(count=count, given=_given(tables, count, path))

    def write(self, folder: str | Path) -> None:
        """Keep the names in a run folder, whole or not at all."""
        # JSON's strings are TOML's too, as names have no control characters.
        lines = [f'"{p}" = {json.dumps(self.given[p], ensure_ascii=False)}\n' for p in sorted(self.given)]
        with whole_file(Path(folder) / FILE) as file:
            file.write("".join(["[names]\n", *lines]).encode())


def checked_name(name: str) -> str:
    """The name without blanks around it, if it can be shown on one line everywhere; markup is kept as it is."""
    name = name.strip(" ")
    if len(name) > LONGEST:
        raise PcdnetError(f"the name {name[:20]!r}... has {len(name)} characters; give at most {LONGEST}")
    # No line breaks, no terminal's commands, nothing invisible, and nothing that makes the rest run backwards.
    for sign in name:
        if sign != " " and unicodedata.category(sign)[0] in "CZ":
            raise PcdnetError(f"the name {name!r} holds {sign!r}, which cannot be shown; use letters, digits and signs")
    return name


def _given(tables: dict[str, Any], prototypes: int, path: Path) -> dict[int, str]:
    if set(tables) - {"names"} or not isinstance(tables.get("names", {}), dict):
        raise PcdnetError(f'{path} holds other things than names; write [names] and lines like "0" = "L" below it')
    given: dict[int, str] = {}
    for key, name in tables.get("names", {}).items():
        if not isinstance(name, str):
            raise PcdnetError(f"{path} names prototype {key} {name!r:.40}, which is no text; put it in quotes")
        if not key.isascii() or not key.isdecimal() or str(int(key[:9])) != key or int(key) >= prototypes:
            known = f"the model's are 0 to {prototypes - 1}"
            raise PcdnetError(f"{path} names a prototype {key[:20]!r}, but {known}; fix that line")
        try:
            name = checked_name(name)
        except PcdnetError as error:
            raise PcdnetError(f"{path} cannot be used: {error}") from None
        if name:
            given[int(key)] = name
    return given


def _check_number(prototype: int, prototypes: int) -> None:
    if not 0 <= prototype < prototypes:
        raise PcdnetError(f"there is no prototype {prototype}; give a number of 0 to {prototypes - 1}")
