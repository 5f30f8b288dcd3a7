"""Trained: the models that come with the package, each a folder here that is a run, with a card and sample pictures.

    card.toml             what it finds, how it was made and scored, and where it ends
    samples/              pictures to try it on, which it did not learn from

Their names stand wherever a run's folder is asked for. `python -m benchmarks.trained` makes them.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcdnet.errors import PcdnetError

HOME = Path(__file__).parent
CARD, SAMPLES = "card.toml", "samples"
NAMES = ("tetrominoes", "space-invaders", "letters")
"""What they are called, which is also the name of the data that each learned from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """What there is to know of a trained model before it is used."""

    name: str
    """What it is called."""
    finds: str
    """What it finds, and in which images."""
    command: str
    """The command that trained it."""
    seed: int
    """The seed of everything random in that."""
    minutes: float
    """How long training took, in minutes of one core."""
    commit: str
    """The commit of the code that trained it."""
    naming: str
    """Where the names of its prototypes come from."""
    prototypes: int
    """How many it has."""
    size: tuple[int, int]
    """Height and width of the images that it learned from."""
    channels: int
    """1 for grey images, 3 for coloured ones."""
    limits: tuple[str, ...]
    """What it cannot do."""
    scenes: int
    """How many scenes, generated or recorded anew, it was scored on."""
    scores: Mapping[str, float]
    """Its scores on these, by the names that `eval --json` has for them."""
    checked: int
    """Of how many scenes the tests score it again."""
    expected: Mapping[str, float]
    """Its scores on these."""

    @property
    def folder(self) -> Path:
        """The run."""
        return HOME / self.name

    @property
    def samples(self) -> Path:
        """The folder of its sample pictures."""
        return self.folder / SAMPLES

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return dataclasses.asdict(self)

    def to_toml(self) -> str:
        """All of it as the text of its file, but for its name, which is that of its folder."""
        fields = {name: value for name, value in self.to_dict().items() if name != "name"}
        tables = {name: value for name, value in fields.items() if isinstance(value, Mapping)}
        lines = [f"{name} = {_as_toml(value)}" for name, value in fields.items() if name not in tables]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{key} = {_as_toml(value)}" for key, value in table.items())]
        return "".join(f"{line}\n" for line in lines)


def card(name: str) -> Card:
    """What there is to know of a trained model.

    Parameters
    ----------
    name
        One of NAMES.

    Examples
    --------
    >>> card("tetrominoes").prototypes
    19
    """
    found = tomllib.loads((HOME / name / CARD).read_text(encoding="utf-8"))
    return Card(**{**found, "name": name, "size": tuple(found["size"]), "limits": tuple(found["limits"])})


def models() -> dict[str, Card]:
    """The models that come with the package, by name; each name can be used wherever a run is asked for.

    Returns
    -------
    dict[str, Card]
        What each finds, how it was made and scored, and where it ends.

    Examples
    --------
    >>> import pcdnet
    >>> list(pcdnet.models())
    ['tetrominoes', 'space-invaders', 'letters']
    >>> pcdnet.load("tetrominoes")
    PCDNet(...)
    """
    return {name: card(name) for name in NAMES}


def is_trained(folder: Path) -> bool:
    """Whether a folder is one of these models, which stay as they are."""
    return folder.name in NAMES and folder.resolve().parent == HOME.resolve()


def check_own(folder: Path) -> None:
    """Refuse to write into one of these models."""
    if is_trained(folder):
        name = folder.name
        raise PcdnetError(
            f"{name} comes with pcdnet and stays as it is; copy it with `pcdnet models {name} --out FOLDER`, and "
            f"change the copy"
        )


def _as_toml(value: Any) -> str:
    """A value of a card; strings, numbers and lists are written in TOML as in JSON."""
    return json.dumps(value, ensure_ascii=False)
