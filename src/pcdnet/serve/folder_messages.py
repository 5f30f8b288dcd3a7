"""Folder messages: what goes over the wire about the strip of pictures: edits, counts, kinds, results."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pcdnet.output.formats import FORMATS
from pcdnet.serve.messages import Message

State = Literal["idle", "running", "done", "failed"]
Prototype = Annotated[int, Field(ge=0, le=100_000)]


class Pictured(Message):
    """A picture of the strip."""

    number: int
    name: str
    size: tuple[int, int] | None
    """Height and width; None where it is not known yet, or never will be."""
    edited: bool
    """Whether edits of it are kept with the run."""
    objects: int | None
    """How many objects it has, edits and hidden kinds taken into account; None until it is counted."""
    problem: str | None
    """Why it cannot be read."""


class Pictures(Message):
    """Some of the strip."""

    source: str
    """Where the pictures come from."""
    count: int
    """How many there are in all."""
    mark: str
    """What tells this strip from others: small pictures that are asked for with `?mark=` it can be kept."""
    pictures: list[Pictured]


class EditedPictures(Message):
    """The pictures of which edits are kept."""

    edited: list[int]
    """Their numbers, at most 1,000 of them."""
    count: int
    """How many there are."""
    others: int
    """Edits of pictures that are not in this strip."""
    damaged: list[str]
    """What is wrong with edits that cannot be read."""


class KindCount(Message):
    """How often a kind was found in the folder."""

    name: str
    group: str
    """What its prototypes are called, whatever their colour."""
    prototypes: list[int]
    tint: list[float] | None
    """The colour factors that tell it from the other kinds of its prototypes; None where there is no other."""
    colour: str
    """Its colour in semantic views."""
    hidden: bool
    objects: int
    pictures: int
    """In how many pictures."""


class Counts(Message):
    """What was found in all pictures."""

    state: State
    done: int
    """Pictures that were counted."""
    total: int
    message: str
    """What is going on, or went wrong, in a sentence."""
    eta: float | None
    """Seconds left, about."""
    at_limit: list[int]
    """Pictures with as many objects as the model can find, at most 100 of them."""
    pictures_at_limit: int
    """How many there are."""
    damaged: int
    """Pictures that could not be used."""
    kinds: list[KindCount]


class KindChange(Message):
    """Prototypes to name, merge, hide or show."""

    prototypes: Annotated[list[Prototype], Field(min_length=1, max_length=1000)]
    name: Annotated[str, Field(max_length=200)] | None = None
    """What all of them are called from now on; empty gives each its number back."""
    hidden: bool | None = None
    """Whether their objects are left out of counts and downloads."""

    @model_validator(mode="after")
    def _says_something(self) -> KindChange:
        if self.name is None and self.hidden is None:
            raise ValueError("neither a name nor hidden is given")
        return self


class Order(Message):
    """A format in which the results of all pictures are wanted."""

    format: Annotated[str, Field(json_schema_extra={"enum": [each.name for each in FORMATS]})]


class Results(Message):
    """How far the file of results is."""

    format: str
    state: State
    done: int
    total: int
    message: str
    eta: float | None
    name: str | None
    """What the file is called, when it is there."""
