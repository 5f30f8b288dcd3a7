"""Names: what a person calls the prototypes, and the colours that they come in, kept in a run's folder as `names.toml`.

    hidden = [4]

    [names]
    "0" = "L"
    "7" = "square"

    [colours]
    "7" = [[0.9, 0.1, 0.1], [0.1, 0.8, 0.2]]

A name is plain text wherever it appears: markup in it is shown, never obeyed. Above that stands a checksum, in a
comment that people remove when they edit the file.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Int64

from pcdnet.errors import PcdnetError
from pcdnet.files import content_of, sealed_toml, text_of, unsealed_toml, whole_file

FILE = "names.toml"
"""The file of a run folder that holds the names."""
LONGEST = 60
"""Characters of a name at most."""
MOST_COLOURS, STRONGEST = 32, 100.0
"""Colours of a prototype at most, and how large their values may be, whatever their sign."""

Colour: TypeAlias = tuple[float, ...]
"""Factor per channel on the grey prototype: one value, or three."""
_LARGEST = 2**20  # bytes; no one names so many prototypes by hand


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """The names of a model's prototypes; those without one are called by their number."""

    count: int
    """How many prototypes there are."""
    given: Mapping[int, str] = field(default_factory=dict)
    """The names that a person gave, by prototype."""
    colours: Mapping[int, tuple[Colour, ...]] = field(default_factory=dict)
    """The few distinct colours that objects come in, of those prototypes whose objects do."""
    hidden: frozenset[int] = frozenset()
    """Prototypes whose objects are left out of results: what is found, but nobody wants to know of."""

    def __post_init__(self) -> None:
        for prototype, name in self.given.items():
            _check_number(prototype, self.count)
            if checked_name(name) != name or not name:
                raise PcdnetError(f"the name {name!r} of prototype {prototype} is blank or padded; strip it")
        for prototype, colours in self.colours.items():
            _check_number(prototype, self.count)
            checked_colours(colours)
        for prototype in self.hidden:
            _check_number(prototype, self.count)
        if len({len(colour) for colours in self.colours.values() for colour in colours}) > 1:
            raise PcdnetError("some colours have 1 value and some have 3; give all of them as many as images have")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, prototype: int) -> str:
        if not 0 <= prototype < self.count:
            raise IndexError(f"there is no prototype {prototype} of {self.count}")
        return self.given.get(prototype, f"prototype {prototype}")

    def __iter__(self) -> Iterator[str]:
        return (self[prototype] for prototype in range(self.count))

    @property
    def first(self) -> Int64[np.ndarray, "P"]:
        """For every prototype the first one of the same name, whose label and colour they share in pictures."""
        return first_of_each(self)

    def renamed(self, prototype: int, name: str) -> Names:
        """The same names but for one; an empty name takes the prototype's name away."""
        _check_number(prototype, self.count)
        name = checked_name(name)
        others = {p: other for p, other in self.given.items() if p != prototype}
        return replace(self, given={**others, prototype: name} if name else others)

    def merged(self, prototypes: Collection[int], name: str | None = None) -> Names:
        """The same names, but some prototypes have one: the given one, or the first that one of them has."""
        which = list(dict.fromkeys(prototypes))
        for prototype in which:
            _check_number(prototype, self.count)
        if len(which) < 2:
            given = " ".join(map(str, prototypes)) or "none"
            raise PcdnetError(f"it takes two prototypes to make one kind of them, and {given} was given; name more")
        name = next((self.given[p] for p in which if p in self.given), self[which[0]]) if name is None else name
        if not (name := checked_name(name)):
            raise PcdnetError("the name of several prototypes is blank; give letters, or leave it out")
        return replace(self, given={**self.given, **dict.fromkeys(which, name)})

    def hiding(self, prototypes: Collection[int], *, hidden: bool = True) -> Names:
        """The same names, but the objects of some prototypes are left out of results, or taken in again."""
        for prototype in prototypes:
            _check_number(prototype, self.count)
        changed = self.hidden | set(prototypes) if hidden else self.hidden - set(prototypes)
        return replace(self, hidden=frozenset(changed))

    def renumbered(self, numbers: Mapping[int, int], count: int) -> Names:
        """The names for a bank of `count` prototypes in which they have other numbers; those without one are lost."""
        return Names(
            count=count,
            given={numbers[p]: name for p, name in self.given.items() if p in numbers},
            colours={numbers[p]: colours for p, colours in self.colours.items() if p in numbers},
            hidden=frozenset(numbers[p] for p in self.hidden if p in numbers),
        )

    @staticmethod
    def read(folder: str | Path, count: int, channels: int | None = None) -> Names:
        """The names and colours in a run folder; none where it holds no such file.

        Colours with another number of channels than that are refused.
        """
        path = Path(folder) / FILE
        try:
            content = content_of(path, _LARGEST)
        except FileNotFoundError:
            return Names(count=count)
        except OSError as error:
            raise PcdnetError(f"{path} cannot be read ({error.strerror or error}); fix or remove it") from None
        try:
            text = text_of(content)
            tables = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise PcdnetError(f"{path} is not valid TOML: {error}; fix or remove it") from None
        try:
            unsealed_toml(text)
        except ValueError as error:
            raise PcdnetError(f"{path} cannot be used: {error}, otherwise remove the file") from None
        known, hidden = tables and tables.keys() <= {"hidden", "names", "colours"}, tables.pop("hidden", [])
        if not known or not all(isinstance(table, dict) for table in tables.values()):
            raise PcdnetError(f'{path} holds other things than names; write [names] and lines like "0" = "L" below it')
        return _from_tables(tables, _checked_hidden(hidden, count, path), count, channels, path)

    def write(self, folder: str | Path) -> None:
        """Keep the names and colours in a run folder, whole or not at all."""
        # JSON's strings and lists are TOML's too, as names have no control characters and colours no infinities.
        lines = [f"hidden = {sorted(self.hidden)}", ""] if self.hidden else []
        lines += ["[names]", *(f'"{p}" = {json.dumps(self.given[p], ensure_ascii=False)}' for p in sorted(self.given))]
        if self.colours:
            lines += ["", "[colours]", *(f'"{p}" = {json.dumps(self.colours[p])}' for p in sorted(self.colours))]
        with whole_file(Path(folder) / FILE) as file:
            file.write(sealed_toml("".join(f"{line}\n" for line in lines)).encode())


def first_of_each(names: Iterable[str]) -> Int64[np.ndarray, "P"]:
    """For every name the place where it stands first."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(name, place) for place, name in enumerate(names)], np.int64)


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


def checked_colours(colours: Any) -> tuple[Colour, ...]:
    """The colours, if they are a few lists of 1 or 3 finite numbers."""
    if not isinstance(colours, list | tuple) or not 1 <= len(colours) <= MOST_COLOURS:
        raise PcdnetError(f"the colours {colours!r:.40} are no list of 1 to {MOST_COLOURS}; write [[0.9, 0.1, 0.1]]")
    for colour in colours:
        numbers = isinstance(colour, list | tuple) and all(type(value) in (int, float) for value in colour)
        if not numbers or len(colour) not in (1, 3) or not all(-STRONGEST <= value <= STRONGEST for value in colour):
            raise PcdnetError(
                f"the colour {colour!r:.40} is not 1 or 3 finite numbers; write them like [0.9, 0.1, 0.1]"
            )
    return tuple(tuple(map(float, colour)) for colour in colours)


def _checked_hidden(hidden: Any, count: int, path: Path) -> frozenset[int]:
    """The hidden prototypes, if they are a list of numbers of prototypes."""
    if not isinstance(hidden, list) or not all(type(p) is int and 0 <= p < count for p in hidden):
        known = f"a list of numbers of 0 to {count - 1}"
        raise PcdnetError(f"{path} sets hidden = {hidden!r:.40}, which is not {known}; fix that line")
    return frozenset(hidden)


def _from_tables(
    tables: dict[str, dict[str, Any]], hidden: frozenset[int], count: int, channels: int | None, path: Path
) -> Names:
    given: dict[int, str] = {}
    for key, name in tables.get("names", {}).items():
        if not isinstance(name, str):
            raise PcdnetError(f"{path} names prototype {key} {name!r:.40}, which is no text; put it in quotes")
        given[_number(key, count, path)] = name
    colours = {_number(key, count, path): value for key, value in tables.get("colours", {}).items()}
    try:
        names = {p: name for p, text in given.items() if (name := checked_name(text))}
        checked = {p: checked_colours(value) for p, value in colours.items()}
        found = Names(count=count, given=names, colours=checked, hidden=hidden)
    except PcdnetError as error:
        raise PcdnetError(f"{path} cannot be used: {error}") from None
    for colour in (values[0] for values in found.colours.values() if channels is not None):
        if len(colour) != channels:
            raise PcdnetError(
                f"{path} has colours of {len(colour)} values for a model of {channels} channels; remove them"
            )
    return found


def _number(key: str, prototypes: int, path: Path) -> int:
    """The prototype that a key names."""
    if not key.isascii() or not key.isdecimal() or str(int(key[:9])) != key or int(key) >= prototypes:
        known = f"the model's are 0 to {prototypes - 1}"
        raise PcdnetError(f"{path} names a prototype {key[:20]!r}, but {known}; fix that line")
    return int(key)


def _check_number(prototype: int, prototypes: int) -> None:
    if not 0 <= prototype < prototypes:
        raise PcdnetError(f"there is no prototype {prototype}; give a number of 0 to {prototypes - 1}")
