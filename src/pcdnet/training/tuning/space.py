"""Search space: which fields of a configuration are tried with which values, read from TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcdnet.config import FIELDS, Config, checked_value, did_you_mean
from pcdnet.errors import PcdnetError

DEFAULT = Path(__file__).with_name("paper.toml")
"""The space that is searched where none is given."""
FIXED = {
    "train.seed": "the luckiest seed is no better a setting",
    "train.validate_every": "trials are compared at their validations",
}
"""Fields that cannot be searched, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Numbers from `low` to `high`."""

    low: float
    high: float
    log: bool = False
    """Whether factors matter rather than differences."""
    whole: bool = False
    """Whether only whole numbers are meant."""

    def nearest(self, value: Any) -> Any:
        """The one of them that is nearest to a value."""
        return min(max(value, self.low), self.high)

    def ends(self) -> tuple[Any, ...]:
        """Values such that, if they can be used, all can."""
        return self.low, self.high

    def table(self) -> dict[str, Any]:
        """The entry as TOML has it."""
        return {"low": self.low, "high": self.high, "log": self.log}


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """Some values, in no order."""

    values: tuple[Any, ...]

    def nearest(self, value: Any) -> Any:
        """The value, if it is one of them, or else the first."""
        return value if value in self.values else self.values[0]

    def ends(self) -> tuple[Any, ...]:
        """Values such that, if they can be used, all can."""
        return self.values

    def table(self) -> dict[str, Any]:
        """The entry as TOML has it."""
        return {"choices": list(self.values)}


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What is tried of every field that is searched.

    Examples
    --------
    >>> space = SearchSpace.from_tables({"train.batch": {"choices": [8, 16]}, "loss": {"tv": {"low": 0, "high": 1}}})
    >>> list(space.entries)
    ['train.batch', 'loss.tv']
    """

    entries: Mapping[str, Range | Choices]
    """By the names of the fields with their sections."""

    @staticmethod
    def load(path: str | Path) -> SearchSpace:
        """Read a TOML file."""
        try:
            tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise PcdnetError(f"cannot read the search space {path}: {error}; give a readable TOML file") from None
        except (ValueError, RecursionError) as error:  # ValueError: a number of thousands of digits, too
            raise PcdnetError(f"{path} is not valid TOML: {error}; fix that line") from None
        return SearchSpace.from_tables(tables, str(path))

    @staticmethod
    def from_tables(tables: Mapping[str, Any], source: str = "the search space") -> SearchSpace:
        """The space that TOML, or a mapping from Python, describes; fields are in sections, or named with theirs."""
        entries = {name: _entry(name, table, source) for name, table in _flat(tables, source)}
        if not entries:
            raise PcdnetError(f"{source} names nothing to search; name a field, such as [train.learning_rate]")
        return SearchSpace(entries)

    def check(self, config: Config) -> None:
        """Refuse values that no configuration like this one can have."""
        for name, entry in self.entries.items():
            for value in entry.ends():
                config.with_fields({name: value})

    def to_tables(self) -> dict[str, dict[str, Any]]:
        """The space as JSON can hold it, which `from_tables` reads."""
        tables: dict[str, dict[str, Any]] = json.loads(
            json.dumps({name: entry.table() for name, entry in self.entries.items()})
        )
        return tables


def _flat(tables: Mapping[str, Any], source: str) -> Iterator[tuple[str, Any]]:
    """Every field with its section, and what is said of it."""
    sections = dict.fromkeys(name.partition(".")[0] for name in FIELDS)
    for name, table in tables.items():
        if "." in name:
            yield name, table
        elif name not in sections:
            known = f"sections are {', '.join(sections)}"
            raise PcdnetError(f"{source} has an unknown section [{name}]{did_you_mean(name, sections)}; {known}")
        elif not isinstance(table, Mapping):
            raise PcdnetError(f"{source} sets {name} = {table!r}; write a table [{name}.FIELD] for every field")
        else:
            yield from ((f"{name}.{field}", entry) for field, entry in table.items())


def _entry(name: str, table: Any, source: str) -> Range | Choices:
    if name not in FIELDS:
        raise PcdnetError(f"{source} has an unknown field {name}{did_you_mean(name, FIELDS)}; leave it out")
    if name in FIXED:
        raise PcdnetError(f"{source} searches {name}, but {FIXED[name]}; leave it out")
    if not isinstance(table, Mapping):
        raise PcdnetError(f"{source} sets {name} = {table!r}; give it low and high, or choices")
    given, numbers = set(table), FIELDS[name] in (int, float)
    if given == {"choices"}:
        return _choices(name, table["choices"], source)
    if not {"low", "high"} <= given <= {"low", "high", "log"} or not numbers:
        cure = "give it low and high, and log if wanted, or choices" if numbers else "give it choices, a list of values"
        raise PcdnetError(f"{source} has {', '.join(table) or 'nothing'} for {name}; {cure}")
    return _range(name, table, source)


def _range(name: str, table: Mapping[str, Any], source: str) -> Range:
    kind, log = FIELDS[name], table.get("log", False)
    low, high = (checked_value(kind, f"{end} of {name}", table[end], source) for end in ("low", "high"))
    if type(log) is not bool:
        raise PcdnetError(f"{source} sets log of {name} = {log!r}; use true or false")
    if not low < high:
        raise PcdnetError(f"{source} searches {name} from {low} to {high}; make low less than high")
    if log and low <= 0:
        raise PcdnetError(f"{source} searches {name} from {low} by factors; make low more than 0, or log false")
    return Range(low=low, high=high, log=log, whole=kind is int)


def _choices(name: str, values: Any, source: str) -> Choices:
    if not isinstance(values, list | tuple) or len(values) < 2:
        raise PcdnetError(f"{source} sets choices of {name} = {values!r}; give a list of two or more values")
    plain = [list(value) if isinstance(value, tuple) else value for value in values]
    chosen = tuple(checked_value(FIELDS[name], f"a choice of {name}", value, source) for value in plain)
    if len(set(chosen)) < len(chosen):
        raise PcdnetError(f"{source} names a choice of {name} twice, in {plain}; name it once")
    return Choices(values=chosen)
