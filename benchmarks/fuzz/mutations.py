"""Mutations of bytes, of JSON and of TOML: blind ones, and ones that keep the form and change what it says."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from benchmarks.fuzz.target import Mutator

EDGES = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 2**31 - 1, 2**31, 2**32 - 1, 2**63)
"""Whole numbers at which something changes."""
ODD: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 255, 256, 10**6, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, -(2**63) - 1),
    *(0.0, -0.0, 0.5, 1e-300, 5e-324, 1e308, -1e308, float("inf"), float("-inf"), float("nan")),
    *(True, False, None, "", "x", "0", "1", "-1", "nan", "..", "../x", "/", "/etc/passwd", ".", "a/b", "\\"),
    *("\x00", "\x1b[31m", "\n", "\r", "\u202e", "\ud800", "\udfff", "\U0001f600", "e\u0301", "\ufeff", "a" * 5000),
    *([], {}, [[]], [None], {"": 0}, [0], [0, 0], [0, 0, 0], [0, 0, 0, 0], [1, 1], [-1, -1], ["a", "b"], {"a": {}}),
)
"""Values that programs stumble over."""


def blind(content: bytes, rng: Random, tokens: Sequence[bytes] = ()) -> bytes:
    """Change bytes anywhere: bits, numbers at the edges, parts cut out, doubled, moved, or words put in."""
    data = bytearray(content)
    for _ in range(1 + min(15, int(rng.expovariate(0.7)))):
        size = len(data)
        place = rng.randrange(size) if size else 0
        match rng.randrange(9 if tokens else 8):
            case 0 if size:
                data[place] ^= 1 << rng.randrange(8)
            case 1 if size:
                data[place] = rng.randrange(256)
            case 2:
                width = rng.choice("BHIQ")
                number = rng.choice(EDGES) & (2 ** (8 * struct.calcsize(width)) - 1)
                word = struct.pack(rng.choice("<>") + width, number)
                data[place : place + len(word)] = word
            case 3 if size:
                del data[place : place + min(size, 1 + int(rng.expovariate(0.02)))]
            case 4 if size:
                end = place + 1 + int(rng.expovariate(0.02))
                at = rng.randrange(size)
                data[at:at] = data[place:end]
            case 5 if size:
                del data[place:]
            case 6:
                data[place:place] = rng.randbytes(1 + int(rng.expovariate(0.2)))
            case 7 if size:
                end = place + 1 + int(rng.expovariate(0.05))
                data[place:end] = bytes(len(data[place:end]))
            case 8:
                token = rng.choice(tokens)
                data[place : place + rng.choice((0, len(token)))] = token
    return bytes(data[: 1 << 20])


def changed_value(whole: Any, rng: Random) -> Any:
    """What JSON or TOML says with one to four of its values changed, added, moved, doubled or gone."""
    whole = copy.deepcopy(whole)
    for _ in range(1 + min(3, int(rng.expovariate(1)))):
        places = list(_places(whole))
        if not places:
            return rng.choice(ODD)
        holder, key = rng.choice(places)
        match rng.randrange(10):
            case 0 | 1 | 2 | 3:
                holder[key] = copy.deepcopy(rng.choice(ODD))
            case 4:
                del holder[key]
            case 5:
                other, name = rng.choice(places)
                holder[key] = copy.deepcopy(other[name]) if name in _keys(other) else None
            case 6 if isinstance(holder, dict):
                holder[str(rng.choice(ODD))] = holder.pop(key)
            case 6:
                holder.insert(key, copy.deepcopy(holder[key]))
            case 7 if isinstance(holder[key], list) and holder[key]:
                holder[key] = holder[key] * rng.randrange(2, 40)
            case 8 if type(holder[key]) in (int, float):
                change = rng.choice((1, -1, 0.5, 1e3, -1e9))
                number = holder[key]
                holder[key] = -number if change == -1 else number + change
            case _:
                holder[key] = [holder[key]] if rng.random() < 0.5 else {"x": holder[key]}
    return whole


def _keys(holder: Any) -> Any:
    return range(len(holder)) if isinstance(holder, list) else holder


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value below another one, as what holds it and under which key."""
    if isinstance(value, dict | list):
        for key in list(_keys(value)):
            yield value, key
            yield from _places(value[key])


DEEP = ("[" * 100_000, '{"a":' * 50_000, "[" * 900 + "]" * 900, "9" * 5000, "1e999", "-", '"\\ud800"', '"\\u0000"')
"""Texts put in the place of a value."""


def json_mutator(seal: Callable[[Any, Random], bytes], parse: Callable[[bytes], Any] = json.loads) -> Mutator:
    """A mutator of what some bytes say in JSON; `seal` writes it down, with a checksum that fits if there is one."""

    def mutate(content: bytes, rng: Random) -> bytes:
        kind = rng.random()
        if kind < 0.12:
            return blind(content, rng, (b'"', b"[", b"{", b"NaN", b"-Infinity", b"\\ud800", b"1e999", b",", b":"))
        if kind < 0.17:
            at = rng.randrange(len(content) + 1)
            return content[:at] + rng.choice(DEEP).encode() + content[at:]
        return seal(changed_value(parse(content), rng), rng)

    return mutate


def toml_text(tables: Any) -> str:
    """TOML that says what nested dictionaries say; what TOML cannot say becomes a text."""
    lines = []
    for name, table in sorted(tables.items(), key=lambda item: isinstance(item[1], dict)):
        if isinstance(table, dict):
            lines.append(f"[{_key(name)}]")
            lines += [f"{_key(key)} = {_toml(value)}" for key, value in table.items()]
        else:
            lines.append(f"{_key(name)} = {_toml(table)}")
    return "\n".join(lines) + "\n"


def _key(name: object) -> str:
    return ".".join(json.dumps(part) for part in [str(name)])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)  # of floats inf and nan, as TOML writes them
    return json.dumps("" if value is None else value, ensure_ascii=False)


def as_text(text: str) -> bytes:
    """The bytes of a text, with lone surrogates as they come out of careless programs."""
    return text.encode("utf-8", "surrogatepass")
