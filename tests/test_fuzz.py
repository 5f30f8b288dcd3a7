"""Laws of the fuzzers: every target reads what it should, and a mistake that is planted is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.fuzz.engine import fuzz
from benchmarks.fuzz.law import peak_memory, present_memory
from benchmarks.fuzz.registry import TARGETS
from benchmarks.fuzz.target import Reader, Target

from pcdnet.errors import PcdnetError


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_a_sentence_leaves_for_a_moment_of_mutations(name: str, tmp_path: Path) -> None:
    tally = fuzz(TARGETS[name], tmp_path / "work", tmp_path / "found", seconds=0.3, seed=0)
    assert tally.inputs >= len(TARGETS[name].seeds())
    assert not tally.found, [path.read_text() for path in (tmp_path / "found").glob("*.txt")]


def planted(read: Reader) -> Target:
    """A target with that reader, whose inputs are digits."""
    return Target(
        name="planted",
        seeds=lambda: [b"0000"],
        mutate=lambda content, rng: bytes([*content[:-1], rng.randrange(48, 58)][-4:]) + bytes([rng.randrange(48, 58)]),
        prepare=lambda _: read,
        megabytes=50,
        seconds=0.1 if read is slow else 30,
    )


def raising(content: bytes) -> None:
    if b"7" in content:
        raise KeyError(content)


def unkind(content: bytes) -> None:
    raise PcdnetError("it is wrong" if b"7" in content else "it is wrong; mend it")


def slow(content: bytes) -> None:
    while b"7" in content:
        pass


def greedy(content: bytes) -> None:
    if b"7" in content:
        len(b"1" * (peak_memory() - present_memory() + 2**27))  # above what any test before took


@pytest.mark.parametrize("read", [raising, unkind, slow, greedy])
def test_a_planted_mistake_is_found_and_its_input_kept(read: Reader, tmp_path: Path) -> None:
    tally = fuzz(planted(read), tmp_path / "work", tmp_path / "found", seconds=0.5, seed=0)
    ((kind, _),) = tally.found
    assert kind == {"raising": "exception", "greedy": "memory"}.get(read.__name__, read.__name__)
    (kept,) = [path for path in (tmp_path / "found").iterdir() if not path.suffix]
    assert b"7" in kept.read_bytes()


def test_inputs_that_reach_new_lines_are_kept_to_go_on_from(tmp_path: Path) -> None:
    tally = fuzz(TARGETS["tfrecord"], tmp_path / "work", tmp_path / "found", seconds=1, seed=1)
    assert tally.kept > len(TARGETS["tfrecord"].seeds())
    assert tally.lines > 50
