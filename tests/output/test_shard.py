"""Laws of shards: every image belongs to one of them, and a seal is whole, or none."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.errors import PcdnetError
from pcdnet.names import Names
from pcdnet.output.shard import SEAL, Seal, Sealed, Shard, unseal

COLOURED = Names(count=3, given={2: "été"}, colours={1: ((0.1, 0.2, 0.7), (0.9, 0.8, 1 / 3))})


def seal(**changes: object) -> Seal:
    """The seal of a part with two images."""
    images = [Sealed(1, 0, 120, "a"), Sealed(2, 17, 4000, "film/000017")]
    words = {
        "shard": Shard(1, 3),
        "settings": {"model": "abc", "values": None},
        "stride": 2,
        "formats": ("json", "png"),
    }
    words |= {"inputs": 3, "digest": "1f", "names": COLOURED, "channels": 3, "failed": {"b.png": "is none"}}
    return Seal(**{**words, "images": images, "journal": "2e", **changes})  # type: ignore[arg-type]


@given(st.integers(1, 9), st.integers(0, 50), st.integers(0, 40))
def test_every_image_of_an_input_belongs_to_one_shard(count: int, place: int, images: int) -> None:
    shards = [Shard(index, count) for index in range(count)]
    owners = [[shard for shard in shards if shard.has(place, number)] for number in range(images)]
    assert all(len(each) == 1 for each in owners)
    assert [shard.share(place, images) for shard in shards] == [owners.count([shard]) for shard in shards]
    assert max(map(owners.count, owners), default=0) <= -(-images // count)


@pytest.mark.parametrize("text", ["3/3", "-1/3", "1", "1/0", "0/0", "a/b", "1/3/5", "", "1.0/3"])
def test_what_is_no_shard_is_refused_in_its_own_words(text: str) -> None:
    with pytest.raises(PcdnetError, match="cannot be used; of 3 shards, give 0/3, 1/3 and 2/3") as refused:
        Shard.parse(text)
    assert refused.value.settings[0].value == text


def test_a_text_is_read_as_it_is_written() -> None:
    assert Shard.parse(" 2/30 ") == Shard(2, 30)
    assert str(Shard(2, 30)) == "2/30"
    with pytest.raises(PcdnetError, match=r"shard=\(3, 3\) cannot be used"):
        Shard(3, 3)


def test_a_seal_comes_back_as_it_was(tmp_path: Path) -> None:
    seal().write(tmp_path)
    assert Seal.read(tmp_path) == seal()
    unseal(tmp_path)
    unseal(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_seal_that_is_cut_off_or_changed_is_refused(cut: int, tmp_path: Path) -> None:
    seal().write(tmp_path)
    whole = (tmp_path / SEAL).read_bytes()
    for damaged in (whole[: -1 - cut], whole.replace(b"4000", b"4001"), b"[]", b"{}", b"\xff", b""):
        (tmp_path / SEAL).write_bytes(damaged)
        with pytest.raises(PcdnetError, match=r"shard.json is damaged; run the command of that shard again"):
            Seal.read(tmp_path)


def test_pictures_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    for title in ("../a", "a/../../b", "/a"):
        seal(images=[Sealed(0, 0, 0, title)]).write(tmp_path)
        with pytest.raises(PcdnetError, match="names pictures outside of its folder"):
            Seal.read(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"shard": 3},
        {"settings": []},
        {"formats": [{}]},
        {"channels": 2},
        {"failed": {"a": None}},
        {"images": [[0, 0, 0]]},
        {"images": [[0, -1, 0, ""]]},
        {"images": [[0, 0, 0, {}]]},
        {"images": [[0, 0, 0, "\ud800"]]},
        {"names": {"count": 10**30, "given": [], "colours": []}},
        {"names": {"count": 4, "given": [[0, {}]], "colours": []}},
        {"names": {"count": 4, "given": [], "colours": [[]]}},
        {"more": 1},
    ],
)
def test_a_seal_of_other_words_is_refused_even_if_its_digest_fits(change: dict[str, Any], tmp_path: Path) -> None:
    seal().write(tmp_path)
    words = json.loads((tmp_path / SEAL).read_bytes())
    del words["sha256"]
    words |= change
    digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()
    (tmp_path / SEAL).write_text(json.dumps({**words, "sha256": digest}))
    with pytest.raises(PcdnetError, match=r"shard.json is damaged; run the command of that shard again"):
        Seal.read(tmp_path)
