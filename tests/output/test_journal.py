"""Laws of the journal: what was noted is there again, whatever cut the work off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pcdnet.errors import PcdnetError
from pcdnet.output.journal import Entry, Journal, checked_folder
from tests.output.found import random_records, results

SETTINGS = {"run": ["a", "b"], "resize": False}


def lines(count: int, stamp: tuple[int, int] = (5, 7)) -> list[dict[str, Any]]:
    """Lines about so many images."""
    return [{"stamp": stamp, "drawn": "", "record": record} for record in random_records(count)[1]]


def test_what_was_noted_is_there_again_in_any_order(tmp_path: Path) -> None:
    noted = lines(5)
    with Journal(tmp_path, SETTINGS) as journal:
        journal.add(noted[:3])
        journal.add(noted[3:])
        journal.add([{"source": "a.npz", "stamp": [1, 2], "count": 9}])
        entries = dict(journal.entries)
    with Journal(tmp_path, SETTINGS) as journal:
        assert not journal.anew
        assert journal.entries == entries
        places = [entry.place for entry in entries.values()]
        assert journal.done("image-3", (5, 7)) == Entry((5, 7), places[3], "", 1)
        assert journal.done("image-3", (5, 8)) is None
        assert journal.done("image-9", (5, 7)) is None
        whole = journal.done("a.npz", (1, 2))
        assert whole is not None
        assert whole.count == 9
        assert journal.done("a.npz", (1, 3)) is None
        found = journal.records([places[n] for n in (4, 0, 4)])
        assert len(found) == 3
        for _ in range(2):  # they can be gone through again
            assert list(found) == [noted[n]["record"] for n in (4, 0, 4)]


@pytest.mark.parametrize("cut", [1, 2, 40, 300])
def test_a_line_that_was_cut_off_is_forgotten_and_the_work_goes_on_behind_the_last_whole_one(
    cut: int, tmp_path: Path
) -> None:
    noted = lines(4)
    with Journal(tmp_path, SETTINGS) as journal:
        journal.add(noted)
    whole = (tmp_path / "journal.jsonl").read_bytes()
    (tmp_path / "journal.jsonl").write_bytes(whole[:-cut])
    with Journal(tmp_path, SETTINGS) as journal:
        assert [n for n in range(4) if journal.done(f"image-{n}", (5, 7))] == [0, 1, 2]
        journal.add(noted[3:])
    assert (tmp_path / "journal.jsonl").read_bytes() == whole


@pytest.mark.parametrize(
    ("settings", "force"), [({"run": ["a", "c"], "resize": False}, False), (SETTINGS, True), ({}, False)]
)
def test_other_settings_or_force_begin_anew(settings: dict[str, Any], force: bool, tmp_path: Path) -> None:
    with Journal(tmp_path, SETTINGS) as journal:
        assert not journal.anew
        journal.add(lines(2))
    with Journal(tmp_path, settings, force=force) as journal:
        assert journal.anew
        assert not journal.entries
    with Journal(tmp_path, settings) as journal:
        assert not journal.anew


@pytest.mark.parametrize("content", [b"", b"{", b"[1]\n", b"\xff\xff"])
def test_a_journal_without_a_head_is_a_new_one(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(content)
    with Journal(tmp_path, SETTINGS) as journal:
        assert not journal.entries
        journal.add(lines(1))
        assert list(journal.records([journal.entries["image-0"].place])) == [lines(1)[0]["record"]]


def test_a_folder_of_other_things_is_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").touch()
    with pytest.raises(PcdnetError, match="holds other things than results; choose another out, or add force=True"):
        checked_folder(tmp_path, force=False)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
    with Journal(tmp_path, SETTINGS, force=True):
        pass
    assert checked_folder(tmp_path, force=False) == tmp_path
    assert (tmp_path / "precious.txt").exists()
    with pytest.raises(PcdnetError, match="cannot make the folder"):
        checked_folder(tmp_path / "precious.txt", force=True)


def test_two_processes_do_not_write_to_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with (
        Journal(tmp_path, SETTINGS),
        pytest.raises(PcdnetError, match="another process is writing to .*; wait for it"),
    ):
        Journal(tmp_path, SETTINGS)
    with Journal(tmp_path, SETTINGS) as journal:
        assert not journal.anew


@pytest.mark.parametrize("place", [0, 12, 40, 200, -2, -1])
def test_a_damaged_line_is_forgotten_and_the_others_are_not(place: int, tmp_path: Path) -> None:
    noted = lines(4)
    with Journal(tmp_path, SETTINGS) as journal:
        journal.add(noted)
    texts = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    damaged = bytearray(texts[2])
    damaged[place] ^= 1
    (tmp_path / "journal.jsonl").write_bytes(b"".join([*texts[:2], damaged, *texts[3:]]))
    left = [0, 3] if place == -1 else [0, 2, 3]  # without its end it is one with the next
    with Journal(tmp_path, SETTINGS) as journal:
        found = [n for n in range(4) if journal.done(f"image-{n}", (5, 7))]
        assert found == left
        journal.add([noted[n] for n in range(4) if n not in left])
        places = [journal.entries[f"image-{n}"].place for n in range(4)]
        assert list(journal.records(places)) == [line["record"] for line in noted]


def test_a_line_without_a_checksum_is_not_believed(tmp_path: Path) -> None:
    with Journal(tmp_path, SETTINGS) as journal:
        journal.add(lines(1))
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write(json.dumps({"stamp": [5, 7], "count": 9, "source": "a.npz"}) + "\n")
    with Journal(tmp_path, SETTINGS) as journal:
        assert journal.done("a.npz", (5, 7)) is None


def test_a_journal_that_changes_under_our_hands_is_reported(tmp_path: Path) -> None:
    with Journal(tmp_path, SETTINGS) as journal:
        journal.add(lines(1))
        place = journal.entries["image-0"].place
        with (tmp_path / "journal.jsonl").open("r+b") as file:
            file.seek(place + 40)
            file.write(b"~")
        with pytest.raises(PcdnetError, match="was changed meanwhile: .*; try again"):
            list(journal.records([place]))


FORGED: list[dict[str, Any]] = [
    {"size": [0, 12]},
    {"size": None},
    {"size": [9, 2**40]},
    {"error": "much"},
    {"error": float("nan")},
    {"objects": {}},
    {"objects": [{}]},
    {"name": 3},
]


@pytest.mark.parametrize("change", FORGED)
def test_a_line_that_lacks_what_formats_need_is_forgotten_even_if_its_checksum_fits(
    change: dict[str, Any], tmp_path: Path
) -> None:
    noted = lines(2)
    forged = {**noted[0], "record": {**noted[0]["record"], **change}}
    with Journal(tmp_path, SETTINGS) as journal:
        journal.add([forged, noted[1], {"source": "a.npz", "stamp": [1, 2], "count": 10**30}])
    with Journal(tmp_path, SETTINGS) as journal:
        assert list(journal.entries) == ["image-1"]


@pytest.mark.parametrize(
    "change", [{"prototype": -1}, {"prototype": 1.0}, {"position": [1]}, {"mask": 1}, {"gain": None}, {"box": [1, 2]}]
)
def test_an_object_that_is_none_makes_its_image_unknown(change: dict[str, Any], tmp_path: Path) -> None:
    noted = [line for line in lines(9) if line["record"]["objects"]][:1]
    noted[0]["record"]["objects"][0] |= change
    with Journal(tmp_path, SETTINGS) as journal:
        journal.add(noted)
    with Journal(tmp_path, SETTINGS) as journal:
        assert not journal.entries


def test_objects_of_another_model_are_refused() -> None:
    found = results([record for record in random_records(9)[1] if record["objects"]])
    next(iter(found.records))["objects"][0]["prototype"] = 4
    with pytest.raises(PcdnetError, match=r"prototype 4 .*which this model has not; do it again with force=True"):
        list(found.named())
