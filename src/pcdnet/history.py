"""History: how a training went, as the lines of its metrics file; what was damaged is left out and counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from pcdnet.errors import PcdnetError
from pcdnet.files import content_of, sealed_json, unsealed_json

MOST = 2**53
"""Whole numbers from this on are none that training has written."""
LONGEST = 2**30
"""Bytes that no training writes."""


def written(values: Mapping[str, Any]) -> str:
    """A line that `read` reads, with its checksum."""
    return sealed_json(json.dumps(values)) + "\n"


def count(path: Path) -> int:
    """How many lines there are, whole or not; none if there is no such file."""
    return _content(path).count(b"\n")


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The lines of a file, none if there is no such file, and how many more there are that are damaged.

    A last line that was cut off is neither: it is what a killed process leaves.
    """
    texts = _content(path).split(b"\n")
    if _line(texts[-1]) is None:
        texts.pop()
    lines = [_line(text) for text in texts]
    return [line for line in lines if line is not None], lines.count(None)


def _content(path: Path) -> bytes:
    try:
        return content_of(path, LONGEST)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise PcdnetError(f"cannot read {path}: {error.strerror or error}; delete it") from None


def _line(text: bytes) -> dict[str, Any] | None:
    """What a line says, if it is as it was written; one of version 0.1 has no checksum, so its types are looked at."""
    try:
        line = json.loads(unsealed_json(text.decode()))
    except (ValueError, RecursionError):
        return None
    # The step always comes first; where something else does, the name of the checksum was hit.
    if (
        not isinstance(line, dict)
        or next(iter(line), "") != "step"
        or type(line["step"]) is not int
        or not 0 <= line["step"] < MOST
    ):
        return None
    measured = {name: line.get(name, 0) for name in ("loss", "learning_rate", "images_per_second", "seconds")}
    counted = {name: line.get(name) for name in ("prototype", "source")} if "event" in line else {}
    scores = line.get("validation", {})
    if (
        not isinstance(scores, dict)
        or not isinstance(line.get("event", ""), str)
        or not all(is_number(value) for value in measured.values())
        or any(type(value) is not int or not 0 <= value < MOST for value in (line.get("in_use", 0), *counted.values()))
        or not all(scores.get(name) is None or is_number(scores[name]) for name in ("fg_ari", "f1", "mse"))
    ):
        return None
    return line


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a number that can be drawn, of those that JSON has; whole ones know no end there."""
    return type(value) is float or (type(value) is int and abs(value) < MOST)
