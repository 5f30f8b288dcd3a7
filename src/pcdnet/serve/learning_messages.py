"""Learning messages: what goes over the wire about corrections and learning again."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from pcdnet.serve.messages import Array, Explained, Message

Side = Annotated[int, Field(ge=0, le=1 << 16)]
State = Literal["idle", "running", "done", "failed", "cancelled"]
BoxField = tuple[Side, Side, Side, Side]


class DrawnOn(Message):
    """A box drawn around a thing in a picture of the strip."""

    picture: Annotated[int, Field(ge=0)]
    box: BoxField
    """Top, left, height and width."""
    name: Annotated[str, Field(max_length=200)] = ""
    """What the thing is called."""


class DrawnIn(Message):
    """A box drawn in another picture."""

    image: Array
    box: BoxField
    name: Annotated[str, Field(max_length=200)] = ""


class Removal(Message):
    """A prototype that is no object."""

    remove: Annotated[int, Field(ge=0)]


CORRECTION: TypeAdapter[DrawnOn | DrawnIn | Removal] = TypeAdapter(DrawnOn | DrawnIn | Removal)
"""Reads any of them from JSON."""


class KeptBox(Message):
    """A drawn box that is kept."""

    id: int
    picture: int | None
    """The number of its picture in the strip, if it is there."""
    box: BoxField
    name: str


class Corrections(Message):
    """What learning again is to start from."""

    drawn: list[KeptBox]
    removed: list[int]


class Added(Message):
    """A correction that is kept from now on."""

    id: int | None
    """That of a box, to take it back by."""


class Minutes(Message):
    """How long to learn again."""

    minutes: Annotated[float, Field(ge=0.05, le=10)] = 1.0


class Figures(Message):
    """How well a model explains pictures that it did not learn from."""

    mse: float
    explained: float
    objects: float
    prototypes: int
    f1: float | None


class Learning(Message):
    """How learning again goes."""

    state: State
    step: int
    steps: int
    eta: float | None
    """Seconds left; None while the data are read and figures are measured."""
    seconds: float
    """Seconds since it began."""
    loss: float | None
    message: str
    before: Figures | None
    after: Figures | None
    reasons: list[str]
    """What was changed, in words."""
    former: int
    """How many models are kept that can come back."""


class SideBySide(Message):
    """A picture as the model explains it, and as the one does that learned again."""

    before: Explained
    after: Explained
