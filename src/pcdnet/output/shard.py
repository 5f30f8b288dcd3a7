"""Shard: one of several parts of the images, for job arrays, and the seal of a part that is done.

Which images are whose follows from the order of the inputs alone: the n-th image of the p-th input belongs to shard
(p + n) modulo the number of shards. So no file of another shard need be opened, and nobody need know how many frames a
film has. A seal is written when a part is finished and removed when work on it begins again; `gather` takes only parts
that have one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from pcdnet.config import MOST_PROTOTYPES
from pcdnet.data.inputs import Input
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import content_of, whole_file
from pcdnet.names import Names
from pcdnet.output.journal import head_of

SEAL = "shard.json"
"""The file in the folder of a part that says that it is done, and of what."""
FORMAT = "pcdnet-shard-1"
"""Names the schema of the seal."""
LARGEST = 2**32
"""Bytes of a seal at most, which has a few tens for every image, and of a picture."""
_KINDS: dict[str, type] = {
    **{"shard": list, "settings": dict, "stride": int, "formats": list, "inputs": int, "digest": str},
    **{"names": dict, "channels": int, "failed": dict, "images": list, "journal": str},
}


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of the images.

    Examples
    --------
    >>> shard = Shard.parse("1/3")
    >>> [place for place in range(7) if shard.has(place, 0)]
    [1, 4]
    """

    index: int
    """Which part, from 0."""
    count: int
    """How many parts there are."""

    def __post_init__(self) -> None:
        if type(self.index) is not int or type(self.count) is not int or not 0 <= self.index < self.count:
            raise self._refused((self.index, self.count))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @staticmethod
    def parse(text: str) -> Shard:
        """Read a text such as 0/3."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip(), flags=re.ASCII)
        if found is None or not int(found[1]) < int(found[2]):
            raise Shard._refused(text)
        return Shard(int(found[1]), int(found[2]))

    def has(self, place: int, number: int) -> bool:
        """Whether an image belongs to it: by the place of its input among all, and its own place in the input."""
        return (place + number) % self.count == self.index

    def share(self, place: int, images: int) -> int:
        """How many of an input's images belong to it."""
        first = (self.index - place) % self.count
        return len(range(first, images, self.count))

    def is_over(self, place: int, number: int) -> bool:
        """Whether neither this image of an input nor any later one belongs to it: never, as it takes every n-th."""
        return False

    @staticmethod
    def _refused(given: object) -> PcdnetError:
        return PcdnetError(Setting("shard", given), " cannot be used; of 3 shards, give 0/3, 1/3 and 2/3")


class Sealed(NamedTuple):
    """An image of a part that is done."""

    place: int
    """The place of its input among all inputs."""
    number: int
    """Its number in the input."""
    line: int
    """Where its line in the journal of the part begins."""
    title: str
    """The name of its pictures; empty where none were asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """What a part that is done consists of, and what it must have in common with the others."""

    shard: Shard
    """Which part it is."""
    settings: Mapping[str, Any]
    """What results depend on besides the images, as the journal has it."""
    stride: int
    """Every how many frames of videos were used."""
    formats: tuple[str, ...]
    """What was asked for."""
    inputs: int
    """How many inputs there are, those of the other shards included."""
    digest: str
    """Tells these inputs from others."""
    names: Names
    """What the prototypes are called."""
    channels: int
    """Channels of the images."""
    failed: Mapping[str, str]
    """The inputs that could not be used, or not in full, with what is wrong with them."""
    images: Sequence[Sealed]
    """The images of the part, in the order of the inputs."""
    journal: str
    """The digest of the journal."""

    def write(self, folder: Path) -> None:
        """Seal the part, whole or not at all."""
        words = {field.name: getattr(self, field.name) for field in fields(self)}
        words |= {"shard": [self.shard.index, self.shard.count], "names": _names_as_words(self.names)}
        body = {"format": FORMAT, **words}
        with whole_file(folder / SEAL) as file:
            file.write(json.dumps({**body, "sha256": _digest(json.dumps(body))}).encode() + b"\n")

    @staticmethod
    def read(folder: Path) -> Seal:
        """The seal of a part; a folder without one, and one that is damaged, is refused."""
        path = folder / SEAL
        try:
            words = json.loads(content_of(path, LARGEST))
            if words.pop("sha256") != _digest(json.dumps(words)) or words.pop("format") != FORMAT:
                raise ValueError("it is not as it was written")
            seal = _seal_of(words)
        except FileNotFoundError:
            raise _unsealed(folder) from None
        except OSError as error:
            raise PcdnetError(f"{path} cannot be read ({error.strerror or error}); make it readable") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError, PcdnetError):
            cure = "run the command of that shard again, which goes on from there"
            raise PcdnetError(f"{path} is damaged; {cure}") from None
        if any(image.title.startswith("/") or ".." in image.title.split("/") for image in seal.images):
            raise PcdnetError(f"{path} names pictures outside of its folder; give parts that pcdnet made")
        return seal


def _seal_of(words: dict[str, Any]) -> Seal:
    """What the words of a seal say; whatever is wrong with them raises something, as digests alone can be made up."""
    if words.keys() != {field.name for field in fields(Seal)}:
        raise ValueError("it has other fields")
    for name, kind in _KINDS.items():
        if type(words[name]) is not kind:
            raise ValueError(f"its {name} is of another type")
    words |= {"shard": Shard(*words["shard"]), "names": _names_from_words(words["names"])}
    images = [Sealed(*image) for image in words["images"]]
    for image in images:
        if [type(each) for each in image] != [int, int, int, str] or min(image[:3]) < 0 or "\0" in image.title:
            raise ValueError("an image is none")
        os.fsencode(image.title)  # which fails for what no file can be called
    texts = [*words["formats"], *words["failed"].values()]
    if words["channels"] not in (1, 3) or not all(isinstance(text, str) for text in texts):
        raise ValueError("its channels are none, or its formats no texts")
    return Seal(**{**words, "images": images, "formats": tuple(words["formats"])})


def unseal(folder: Path) -> None:
    """Take the seal away, as work on the part begins again."""
    try:
        (folder / SEAL).unlink(missing_ok=True)
    except OSError as error:
        raise PcdnetError(f"cannot remove {folder / SEAL}: {error.strerror or error}; make it removable") from None


def digest_of_inputs(inputs: Sequence[Input]) -> str:
    """What tells these inputs from others: their names, sizes and times, in their order."""
    digest = hashlib.sha256()
    for one in inputs:
        digest.update(json.dumps([one.name, one.stamp, one.source.many]).encode())
    return digest.hexdigest()


def _unsealed(folder: Path) -> PcdnetError:
    """What is wrong with a folder that has no seal."""
    head = head_of(folder)
    if head is None:
        return PcdnetError(f"{folder} holds no results; give the folders of all shards")
    if "shard" not in head:
        return PcdnetError(f"{folder} holds results of all images, not of a shard; give the folders of all shards")
    return PcdnetError(
        f"shard {Shard(*head['shard'])} in {folder} is not finished; run its command again, which goes on from there"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _names_as_words(names: Names) -> dict[str, Any]:
    given, colours = (sorted(each.items()) for each in (names.given, names.colours))
    hidden = {"hidden": sorted(names.hidden)} if names.hidden else {}
    return {"count": names.count, "given": given, "colours": colours, **hidden}


def _names_from_words(words: Mapping[str, Any]) -> Names:
    count, given, hidden = words["count"], dict(words["given"]), words.get("hidden", [])
    if not isinstance(hidden, list) or not all(type(prototype) is int for prototype in hidden):
        raise ValueError("its hidden prototypes are none")
    if (
        type(count) is not int
        or not 1 <= count <= MOST_PROTOTYPES
        or not all(isinstance(name, str) for name in given.values())
    ):
        raise ValueError("its names are none")
    colours = {prototype: tuple(map(tuple, colours)) for prototype, colours in words["colours"]}
    if not all(type(prototype) is int for prototype in (*given, *colours)):
        raise ValueError("its prototypes are none")
    return Names(count=count, given=given, colours=colours, hidden=frozenset(hidden))
