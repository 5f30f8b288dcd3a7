"""Texts: what people and programs write in JSON and TOML, annotations, configurations, names and search spaces."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz.law import Broken
from benchmarks.fuzz.mutations import ODD, as_text, blind, changed_value, json_mutator, toml_text
from benchmarks.fuzz.target import Mutator, Reader, Target
from pcdnet.config import FIELDS, Config
from pcdnet.data import coco
from pcdnet.data.folder import natural_order
from pcdnet.data.notes import printable
from pcdnet.errors import PcdnetError
from pcdnet.files import sealed_toml, unsealed_toml
from pcdnet.names import FILE as NAMES_FILE
from pcdnet.names import Names
from pcdnet.training.tuning.space import DEFAULT, SearchSpace

WORDS = (
    b'"',
    b"[",
    b"]",
    b"=",
    b"\n",
    b"nan",
    b"inf",
    b"1e400",
    b"0x",
    b"[[model]]",
    b"1979-05-27",
    b"'''",
    b'"""',
    b"#",
)


def plain_json(whole: Any, _: Random) -> bytes:
    """JSON as programs write it, lone surrogates escaped."""
    return json.dumps(whole).encode()


def toml_mutator(parse: Callable[[str], dict[str, Any]] = tomllib.loads) -> Mutator:
    """A mutator of what TOML says; half of what it writes is sealed."""

    def mutate(content: bytes, rng: Random) -> bytes:
        if rng.random() < 0.2:
            return blind(content, rng, WORDS)
        if rng.random() < 0.05:
            return b"a = " + rng.choice(("[" * 50_000, "9" * 5000, "{a=" * 20_000)).encode()
        text = toml_text(changed_value(parse(content.decode()), rng))
        encoded = as_text(text)
        try:
            return sealed_toml(text).encode() if rng.random() < 0.5 else encoded
        except UnicodeEncodeError:
            return encoded

    return mutate


def coco_seeds() -> Sequence[bytes]:
    """Small annotation files as programs write them."""
    whole = {
        "info": {"description": "x"},
        "categories": [{"id": 1, "name": "car", "supercategory": ""}, {"id": "b", "name": "bus"}],
        "images": [
            {"id": 1, "file_name": "a/1.png", "height": 20, "width": 30},
            {"id": "two", "file_name": "b\\2.png"},
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4.5], "iscrowd": 0, "area": 12},
            {"id": 2, "image_id": "two", "category_id": "b", "bbox": [0, 0, 5, 5]},
            {"id": 3, "image_id": 9, "category_id": 1, "bbox": [0, 0, 5, 0]},
        ],
    }
    return [json.dumps(whole).encode(), b"\xef\xbb\xbf" + json.dumps(whole, indent=1).encode()]


def prepare_coco(folder: Path) -> Reader:
    """Read, then matched with the images of a folder, beside the file and in it."""
    path = folder / "annotations.json"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        found = coco.read(path)
        for within in (None, "a"):
            found.matched(["1.png", "a/1.png", "b/2.png", "x"], within)
        for entry in found.entries:
            natural_order(entry.name)
        if any(kind != printable(kind) for kind in found.kinds):
            raise Broken("a kind is not printable")

    return read


def prepare_config(folder: Path) -> Reader:
    """Read as a configuration of a person's and of a run's; what is read can be written, and read again."""
    path = folder / "config.toml"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        config = Config.load(path)
        if Config.from_toml(config.to_toml()) != config:
            raise Broken("written and read again, it is another")
        Config.load(path, ("model", "loss", "train"))

    return read


def prepare_space(folder: Path) -> Reader:
    """Read as a search space, and checked against the default configuration."""
    path = folder / "space.toml"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        space = SearchSpace.load(path)
        space.check(Config())
        if SearchSpace.from_tables(space.to_tables()) != space:
            raise Broken("written and read again, it is another")

    return read


def space_seeds() -> Sequence[bytes]:
    """The default, and one that uses all there is."""
    some = {name: {"choices": [1, 2]} for name in list(FIELDS)[:3]}
    tables: dict[str, Any] = {"train.batch": {"choices": [8, 16]}, "loss": {"tv": {"low": 0, "high": 1.5}}, **some}
    tables |= {"model": {"prototype_size": {"choices": [[9, 9], [25, 25]]}}}
    tables |= {"train": {"learning_rate": {"low": 1e-4, "high": 1e-1, "log": True}}}
    return [DEFAULT.read_bytes(), toml_text(tables).encode()]


def names_seeds() -> Sequence[bytes]:
    """Names and colours of prototypes."""
    tables = {"names": {"0": "L", "2": "square"}, "colours": {"2": [[0.9, 0.1, 0.1], [0, 1, 0]]}}
    return [toml_text(tables).encode(), sealed_toml(toml_text(tables)).encode(), b'[names]\n"1" = "\xc3\xa9"\n']


def prepare_names(folder: Path) -> Reader:
    """Read as the names of four prototypes; what is read can be written, and read again."""
    path = folder / NAMES_FILE

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for channels in (None, 3):
            names = Names.read(folder, 4, channels)
        names.write(folder)
        if Names.read(folder, 4, 3) != names:
            raise Broken("written and read again, they are others")
        if any(not name.isprintable() for name in names):
            raise Broken("a name is not printable")

    return read


def given_seeds() -> Sequence[bytes]:
    """Names as people give them, one by one, in JSON."""
    return [json.dumps([1, name]).encode() for name in ("L", " a b ", "e\u0301", "", "0", "prototype 1")]


def prepare_given(_: Path) -> Reader:
    """Given to a prototype, and to several as their kind."""

    def read(content: bytes) -> None:
        try:
            number, name = json.loads(content)
        except (ValueError, TypeError, RecursionError):
            return
        if type(number) is not int or not isinstance(name, str):
            return
        names = Names(count=4)
        refused: PcdnetError | None = None
        changes: tuple[Callable[[], Names], ...] = (
            *(lambda: names.renamed(number, name), lambda: names.merged([number, 0], name)),
        )
        for change in changes:
            try:
                changed = change()
            except PcdnetError as error:
                refused = error
            else:
                if not all(each.isprintable() for each in changed):
                    raise Broken("a name is not printable")
        if refused:
            raise refused

    return read


def _unsealed(text: str) -> dict[str, Any]:
    return tomllib.loads(unsealed_toml(text)[0])


def _mutate_given(content: bytes, rng: Random) -> bytes:
    number, name = json.loads(content)
    signs = [
        *str(name),
        *(str(value) for value in rng.sample(ODD, 2)),
        chr(rng.randrange(0x3000)),
        chr(rng.randrange(0x110000)),
    ]
    rng.shuffle(signs)
    return json.dumps([rng.choice((number, 0, 3, 4, -1, 10**20)), "".join(signs[: rng.randrange(1, 90)])]).encode()


COCO = Target(name="coco", seeds=coco_seeds, mutate=json_mutator(plain_json), prepare=prepare_coco)
CONFIG = Target(
    name="config",
    seeds=lambda: [Config().to_toml().encode(), sealed_toml(Config.preset("ngsim").to_toml()).encode()],
    mutate=toml_mutator(),
    prepare=prepare_config,
)
SPACE = Target(name="space", seeds=space_seeds, mutate=toml_mutator(), prepare=prepare_space)
NAMES = Target(name="names", seeds=names_seeds, mutate=toml_mutator(), prepare=prepare_names)
GIVEN = Target(name="given-names", seeds=given_seeds, mutate=_mutate_given, prepare=prepare_given)
