"""Damages: what disks, copies and strangers do to the files of a run; each is drawn by a generator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.torch import load_file, save_file

TEXTS = ("config.toml", "origin.json", "names.toml", "verdict.json", "metrics.jsonl")
TENSORS = ("weights.safetensors", "state.safetensors")
FILES = (*TEXTS, *TENSORS)
"""The files that are damaged."""
NEEDED = ("config.toml", "origin.json", *TENSORS)
"""Those that a run cannot do without; people may delete the others, and so those are never missed."""

Rng = np.random.Generator


def flipped(path: Path, rng: Rng) -> None:
    """One to three wrong bits."""
    content = bytearray(path.read_bytes())
    for place in rng.integers(0, len(content), rng.integers(1, 4)):
        content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def truncated(path: Path, rng: Rng) -> None:
    """The end is lost."""
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content))])


def overwritten(path: Path, rng: Rng) -> None:
    """Some bytes are random, or zeros."""
    content = bytearray(path.read_bytes())
    start = int(rng.integers(len(content)))
    stop = min(len(content), start + int(rng.integers(1, 512)))
    content[start:stop] = rng.bytes(stop - start) if rng.random() < 0.5 else bytes(stop - start)
    path.write_bytes(content)


def random(path: Path, rng: Rng) -> None:
    """Nothing is as it was."""
    path.write_bytes(rng.bytes(int(rng.integers(0, 2000))))


def repeated(path: Path, rng: Rng) -> None:
    """A part stands there twice."""
    content = path.read_bytes()
    start = int(rng.integers(len(content)))
    path.write_bytes(content[:start] + content[int(rng.integers(start + 1)) :])


def robbed(path: Path, rng: Rng) -> None:
    """A tensor, a value or a line is gone, and all else is as it should be."""
    if path.name in TENSORS:
        with safe_open(path, framework="pt") as file:
            words = file.metadata()
        tensors = load_file(path)
        del tensors[sorted(tensors)[rng.integers(len(tensors))]]
        save_file(tensors, path, words)
    elif path.suffix == ".json":
        values = json.loads(path.read_text(encoding="utf-8"))
        del values[sorted(values)[rng.integers(len(values))]]
        path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    else:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        # Without its first line a TOML file is one that people edited.
        del lines[rng.integers(1 if path.suffix == ".toml" else 0, len(lines))]
        path.write_text("".join(lines), encoding="utf-8")


def swapped(path: Path, rng: Rng) -> None:
    """It holds what another file of the run holds."""
    others = [name for name in FILES if name != path.name]
    path.write_bytes((path.parent / others[rng.integers(len(others))]).read_bytes())


def deleted(path: Path, rng: Rng) -> None:
    """It is gone."""
    path.with_name(NEEDED[rng.integers(len(NEEDED))] if path.name not in NEEDED else path.name).unlink()


KINDS: tuple[Callable[[Path, Rng], None], ...] = (
    *(flipped, truncated, overwritten, random, repeated, robbed, swapped, deleted),
)
"""Every kind of damage."""


def damage(folder: Path, number: int, seed: int) -> str:
    """Do the damage of that number to a run, and say what it was; all files and kinds have their turn."""
    rng = np.random.default_rng((seed, number))
    kind, name = KINDS[number % len(KINDS)], FILES[number // len(KINDS) % len(FILES)]
    path, before = folder / name, {each: each.read_bytes() for each in folder.iterdir()}
    while {each: each.read_bytes() for each in folder.iterdir()} == before:  # zeros over zeros are no damage
        kind(path, rng)
    return f"{name} {kind.__name__}"
