"""Messages: what goes over the wire, checked on its way in and described to programs by OpenAPI."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from jaxtyping import Shaped
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pcdnet.config import FULL_TURN, MOST_SCALE
from pcdnet.errors import PcdnetError
from pcdnet.output.formats import FORMATS
from pcdnet.serve.limits import MOST_OBJECTS, MOST_VALUES
from pcdnet.serve.refusal import Refusal

T = TypeVar("T")
Number = Annotated[float, Field(allow_inf_nan=False, ge=-16, le=16)]
Whole = Annotated[int, Field(ge=-100_000, le=100_000)]
Place = Whole | Annotated[float, Field(allow_inf_nan=False, ge=-100_000, le=100_000)]


class Message(BaseModel):
    """A message that knows all its fields: one that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid", from_attributes=True)


class Array(Message):
    """Numbers in rows, as base64 of their little-endian bytes, the last axis running fastest."""

    shape: Annotated[list[Annotated[int, Field(ge=0, le=1 << 24)]], Field(max_length=4)]
    dtype: Literal["uint8", "uint16", "float32"]
    data: str

    @staticmethod
    def from_numpy(values: Shaped[np.ndarray, "*any"]) -> Array:
        """An array of one of the three types as a message."""
        little = values.astype(values.dtype.newbyteorder("<"), copy=False)
        kind: Any = values.dtype.name
        return Array(shape=list(values.shape), dtype=kind, data=base64.b64encode(little.tobytes()).decode())

    def values(self) -> Shaped[np.ndarray, "*any"]:
        """The numbers of a message; one whose bytes are not as many as its shape says is refused."""
        try:
            content = base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise PcdnetError("an array's data are no base64; encode its bytes with base64") from None
        kind = np.dtype(self.dtype).newbyteorder("<")
        wanted = kind.itemsize * math.prod(self.shape)
        if len(content) != wanted:
            raise PcdnetError(
                f"an array of shape {self.shape} and type {self.dtype} came with {len(content)} bytes, not {wanted}; "
                f"send all of its bytes"
            )
        return np.frombuffer(content, kind).astype(self.dtype).reshape(self.shape)


class Thing(Message):
    """An object as it is placed."""

    prototype: Annotated[int, Field(ge=0)]
    """Which prototype it is an instance of, from 0."""
    position: tuple[Place, Place]
    """Top row and left column of the prototype's frame, upright; negative where it hangs over the border."""
    colour: Annotated[list[Number], Field(min_length=1, max_length=3)]
    """Factor per channel on the grey prototype."""
    angle: Annotated[float, Field(allow_inf_nan=False, ge=-FULL_TURN, le=FULL_TURN)] = 0.0
    """By how many degrees it is turned counter-clockwise around the middle of its frame."""
    scale: Annotated[float, Field(allow_inf_nan=False, ge=1 / MOST_SCALE, le=MOST_SCALE)] = 1.0
    """How much larger it is than its prototype."""
    mirrored: bool = False
    """Whether it is a mirror image, left to right, before it is turned."""


class Scene(Message):
    """Objects to paint, front to back."""

    size: tuple[Annotated[int, Field(ge=1, le=4096)], Annotated[int, Field(ge=1, le=4096)]]
    """Height and width of the picture."""
    objects: Annotated[list[Thing], Field(max_length=MOST_OBJECTS)]
    image: Array | None = None
    """The picture that the objects explain, height x width x channels of uint8; without it errors are 0."""
    background: Array | None = None
    """What is behind the objects, height x width x channels of float32, where the model makes it for each picture: as
    the answer to `decompose` has it. Without it, it is made from the picture."""
    name: Annotated[str, Field(max_length=200)] = ""
    """Where the picture came from."""


class Numbered(Message):
    """A picture of the strip to decompose."""

    picture: Annotated[int, Field(ge=0)]
    """Its number, from 0."""
    fit: bool = False
    """Whether to resize a picture that the model cannot take as it is."""


class Picture(Message):
    """A picture to decompose, already as numbers."""

    image: Array
    """Height x width x channels, or height x width, of uint8."""
    name: Annotated[str, Field(max_length=200)] = ""
    fit: bool = False
    """Whether to resize a picture that the model cannot take as it is."""


class Question(Message):
    """A picture to look into."""

    image: Array
    prototype: Annotated[int, Field(ge=0)] | None = None
    """Whose localization map is wanted, if any."""
    pose: Annotated[int, Field(ge=0)] | None = None
    """In which of the coarse poses, by number, where the model has poses; by default in the one that fits best."""


class Name(Message):
    """What to call a prototype; an empty name gives its number back."""

    name: Annotated[str, Field(max_length=200)]


class Export(Message):
    """A scene to download."""

    scene: Scene
    format: Annotated[str, Field(json_schema_extra={"enum": [each.name for each in FORMATS]})]
    view: Literal["image", "reconstruction", "residual", "instances", "semantics"] = "reconstruction"
    """What a PNG shows."""


class Explained(Message):
    """A picture decomposed, or a scene painted."""

    scene: dict[str, Any]
    """The objects in words and numbers, as `Decomposition.to_dict` has them."""
    image: Array | None
    """The picture as the model took it, height x width x channels."""
    reconstruction: Array
    """What the objects make, height x width x channels of uint8."""
    instances: Array
    """Who is seen at each pixel: 0 is background, n + 1 the n-th object from the front."""
    background: Array | None = None
    """What is behind the objects, height x width x channels of float32, where the model makes it for each picture; left
    out where it is the same for all."""
    shrunk: int | None = None
    """Of a large picture, by which factor the arrays here are smaller than it; objects are where they are in the
    picture. Then `background` is left out."""
    at_limit: bool = False
    """Whether there are as many objects as the model can find in a picture of this size: there may be more."""
    edits: Scene | None = None
    """Of a picture of the strip, what somebody made of it and kept with the run."""
    note: str | None = None
    """What was wrong with the edits that are kept, if they cannot be used."""


class Pose(Message):
    """How an object is turned, scaled and mirrored."""

    angle: float
    """Degrees counter-clockwise."""
    scale: float
    mirrored: bool


class Proposed(Message):
    """A candidate at some moment of the selection."""

    prototype: int
    position: tuple[Place, Place]
    height: float | None = None
    """Of the localization map at this place; left out of candidates that were fitted, and lie between its cells."""
    colour: list[float]
    gain: Annotated[float, Field(validation_alias="error_reduction")]
    """How much the squared error would fall at this moment."""
    pose: Pose | None = None
    """Left out where the model has no poses."""
    proposed: Pose | None = None
    """The coarse pose from which it was fitted, if it was."""


class Chosen(Message):
    """A moment of greedy selection."""

    error: float
    """The squared error before the choice."""
    chosen: Proposed | None
    rivals: list[Proposed]


class Tried(Message):
    """A coarse pose of a prototype."""

    pose: Pose
    height: float
    """The highest value of its localization map."""


class Heat(Message):
    """The localization map of one prototype, in one coarse pose where the model has poses."""

    prototype: int
    heat: Array
    origin: tuple[int, int]
    """The position of the prototype's frame that the first cell stands for."""
    middle: tuple[float, float]
    """Where the middle of the prototype lies in its frame."""
    step: int = 1
    """Pixels from cell to cell."""
    poses: list[Tried] = []
    """All coarse poses of the prototype; left out where the model has no poses."""
    pose: int | None = None
    """Which of them this map is of."""


class Inside(Message):
    """What the search did with a picture."""

    candidates: list[Proposed]
    steps: list[Chosen]
    error: float
    """The squared error in the end."""
    refined: bool
    """Whether refinement found something better than these steps."""
    fitted: bool = False
    """Whether the steps choose among poses that were fitted one by one, and not among the candidates proposed."""
    map: Heat | None


class Poses(Message):
    """In which ways the objects of a model differ from their prototypes."""

    angles: tuple[float, float] | None
    """The smallest and the largest angle in degrees, 360 more being all of them; None where objects do not turn."""
    scales: tuple[float, float] | None
    """The smallest and the largest scale; None where all objects are as large as their prototypes."""
    mirror: bool
    """Whether they may be mirror images."""
    subpixel: bool
    """Whether they lie at fractions of a pixel."""
    frame: tuple[int, int]
    """Height and width of the frames in which they are painted."""
    interpolated: bool
    """Whether they are interpolated linearly; otherwise they are shifted in the Fourier domain."""


class Model(Message):
    """What the server has to offer."""

    name: str
    version: str
    size: tuple[int, int] | None
    """The size that pictures should have; None where nothing is known of it."""
    fixed: bool
    """Whether pictures must have that size, because the model has a still background."""
    channels: int
    objects: int
    """Objects that the model finds in a picture at most."""
    min_gain: float
    """Smallest fall of the squared error that justifies an object."""
    prototypes: Array
    masks: Array
    background: Array | None
    """Height x width x channels, where it is the same for all pictures. None stands for black, or for one that is made
    for each picture: then every answer has its own."""
    names: list[str]
    use: list[float] | None
    """Each prototype's share of all objects in some of the pictures."""
    colours: list[str]
    """The colour of each prototype in semantic views."""
    hidden: list[int] = []
    """Prototypes whose objects are left out of counts and downloads."""
    instance_colours: list[str]
    """The colours of objects in instance views, from the front; after the last they come again."""
    poses: Poses | None = None
    """None where all objects are upright and at whole pixels."""
    renaming: bool
    """Whether what is kept with the run can be changed here: names, edits, corrections."""
    most_bytes: int
    most_pixels: int


class Names(Message):
    """What the prototypes are called."""

    names: list[str]
    colours: list[str]
    """The colour of each in semantic views; those of one name share theirs."""
    hidden: list[int] = []
    """Prototypes whose objects are left out of counts and downloads."""


class Complaint(Message):
    """What went wrong, in one sentence."""

    error: str
    fit: bool = False
    """Whether sending the picture again with fit=true would help."""


PICTURE_OR_NUMBER: TypeAdapter[Picture | Numbered] = TypeAdapter(Picture | Numbered)
"""Reads either of them from JSON."""


def read(body: bytes, parse: Callable[[bytes], T]) -> T:
    """A message in JSON; one of more values than any message has is refused before it is parsed.

    Parsing holds up all threads, and millions of brackets would do so for seconds. Numbers in base64 have none.
    """
    if sum(map(body.count, (b",", b":", b"[", b"{"))) > MOST_VALUES:
        raise Refusal(422, f"the message has more than {MOST_VALUES:,} values; send what /openapi.json describes")
    return parse(body)
