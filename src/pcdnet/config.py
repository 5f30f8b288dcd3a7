"""Configuration: frozen dataclasses, the presets, TOML in and out."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import at_most, text_of, unsealed_toml

ColourModule = Literal["least_squares", "network", "none"]
Localization = Literal["phase", "error_reduction"]
Template = Literal["painted", "prototype"]
Labels = Literal["mask", "change"]
Init = Literal["constant", "images", "shapes"]
Background = Literal["black", "still", "plain", "moving"]

MOST_PROTOTYPES, LONGEST, LARGEST_BANK = 2**12, 10_000, 2**28
"""Prototypes at most, in all poses that they are tried in, as ties between them are decided by numbers with room for so
many; pixels of a prototype's side; and pixels of all prototypes, or of all objects of an image: more would fill any
memory."""
MOST_OBJECTS, MOST_PEAKS, MOST_CANDIDATES = 2**14, 2**10, 2**16
"""Objects of an image, places per prototype, and places of all prototypes at most: all are held for every image."""
MOST_POSES = 2**10
"""Angles, sizes and mirror images that a prototype is tried in at most."""
MOST_ROUNDS, MOST_RESTARTS = 100, 2**8
"""How often an image is searched at most, and how many copies of it are searched side by side."""
MOST_STEPS, MOST_BATCH = 2**24, 2**16
"""Batches to learn from at most, as Adam counts them in numbers that are exact so far, and images of a batch."""
FULL_TURN, MOST_SCALE = 360.0, 16.0
"""Degrees of a full turn, and how much larger or smaller than their prototypes objects are at most."""
LARGEST = 2**32
"""No number of a configuration is larger; seeds beyond it would not fit the generators."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """What the model is: the size of its bank and how it explains an image with it."""

    num_prototypes: int = 19
    """How many prototypes the bank holds: at least the number of kinds of objects."""
    prototype_size: tuple[int, int] = (25, 25)
    """Height and width of a prototype's frame in pixels: at least as large as the largest object."""
    localization: Localization = "phase"
    """How places are found: by phase correlation (phase), best if crisp, or by error_reduction, best if smooth."""
    template: Template = "painted"
    """What phase correlation looks for: what is painted, prototype times mask, in image minus background (painted); or
    the prototype alone in the image as it is, as in equation 1 of the paper (prototype)."""
    max_objects: int = 3
    """How many objects an image may hold at most; fewer are chosen where fewer explain it."""
    peaks_per_prototype: int = 3
    """How many places per prototype are tried; at least the number of objects of one kind in an image."""
    channels: int = 3
    """Channels of the images: 1 for grey, 3 for RGB."""
    colour: ColourModule = "least_squares"
    """Where an object's colour comes from: least_squares, network (as in the paper) or none (always 1)."""
    background: Background = "black"
    """What is behind the objects: black; one still picture, learned; a plain surface of paper and light, made for each
    image from the image itself; or one large picture that a moving camera looks at, learned."""
    min_error_reduction: float = 0.1
    """Smallest fall of the squared error, summed over pixels and channels, that justifies one more object."""
    sparse_training: bool = True
    """Whether that counts in training, too; otherwise whatever reduces the error is chosen there, as in the paper,
    and prototypes that paint next to nothing yet can learn."""
    restarts: int = 6
    """How many objects of an image that greedy selection explains badly are tried to do without, and then how many
    rivals are tried to put in front of them; 0 turns refinement off. Where poses are fitted it plays no part."""
    rounds: int = 1
    """How often places are proposed: from the second time on, for what is left over, which finds small things. Where
    poses are fitted, every object is looked for anew then."""
    depth_order: bool = True
    """Whether the pixels that objects share decide which is in front; otherwise it is the one that was found first.
    Where poses are fitted it plays no part."""
    overhang: float = 0.5
    """How much of the smallest frame that holds every object may lie outside the image, as a share of its sides."""
    max_colour: float = 1.5
    """Largest colour factor that least squares may choose; it keeps faint leftovers from being blown up."""
    min_visible: float = 0.0
    """Least share of an object's mask that others must not hide; above 0 where things stand side by side."""
    min_solid: float = 0.0
    """Least share of an object's mask in which it must explain the image better than the background does."""
    max_unexplained: float = 1.0
    """Most of the bare background's error that may be left in the pixels in which an object is seen; 1 allows all."""
    min_inside: float = 0.0
    """Least share of an object's mask that must lie in the image; what the border cuts off more is explained, but not
    reported. `overhang` must be larger than the share that may be missing."""
    rotations: int = 1
    """How many angles a prototype is tried at, spread evenly over `rotation_range`; 1 is upright only. Angles between
    them are found, too (`fine_poses`), so that steps of 15 degrees, 24 for a full turn, are near enough."""
    rotation_range: tuple[float, float] = (0.0, FULL_TURN)
    """The angles that objects may have, in degrees counter-clockwise; of a part of a full turn both ends are tried."""
    scales: int = 1
    """How many sizes a prototype is tried in, spread evenly, by ratio, over `scale_range`; 1 is its own size only.
    Sizes between them are found, too (`fine_poses`), so that ratios of 1.3 are near enough."""
    scale_range: tuple[float, float] = (1.0, 1.0)
    """The smallest and the largest size of objects, as factors on their prototypes; up to 1 if frames are as large as
    the largest objects."""
    mirror: bool = False
    """Whether objects may be mirror images of their prototypes, too, as flat things are that can be turned over."""
    fine_poses: bool = True
    """Whether angles and sizes between those that are tried are found, by fitting them to the images; off if there are
    none, as with quarter turns."""
    subpixel: bool = False
    """Whether objects may lie at fractions of a pixel; otherwise they lie at whole pixels, turned or not."""
    labels: Labels = "mask"
    """Which pixels are an object's: all under its mask (mask), or of these the ones in which the picture visibly is not
    the background (change), for masks that nothing makes tight, as in the paper over black ground."""

    def __post_init__(self) -> None:
        _check_types(self)
        _check_count(self, 1, MOST_PROTOTYPES, "num_prototypes")
        _check_count(self, 1, MOST_OBJECTS, "max_objects")
        _check_count(self, 1, MOST_PEAKS, "peaks_per_prototype")
        _check_count(self, 1, MOST_ROUNDS, "rounds")
        _check_count(self, 0, MOST_RESTARTS, "restarts")
        sides = f"use 2 or more pixels a side, up to {LONGEST}"
        _check(self, lambda sides: min(sides) >= 2 and max(sides) <= LONGEST, sides, "prototype_size")
        area = self.prototype_size[0] * self.prototype_size[1]
        for name, what in (("num_prototypes", "a bank"), ("max_objects", "objects")):
            cure = f"{what} of more than {{}} pixels; use fewer or smaller ones"
            _check_product(self, name, "prototype_size", area, LARGEST_BANK, cure)
        places, cure = self.peaks_per_prototype, "more than {} places to look at in an image; use fewer of either"
        _check_product(self, "num_prototypes", "peaks_per_prototype", places, MOST_CANDIDATES, cure)
        _check(self, lambda n: n in (1, 3), "use 1 for grey or 3 for RGB images", "channels")
        _check(self, lambda x: x >= 0, "use 0 or more", "min_error_reduction")
        _check(
            self,
            lambda x: 0 <= x <= 1,
            "use a share from 0 to 1",
            "min_visible",
            "min_solid",
            "min_inside",
            "max_unexplained",
        )
        _check(self, lambda x: 0 <= x < 1, "use a share from 0 up to, not including, 1", "overhang")
        _check(self, lambda x: x > 0, "use a number above 0, 1.5 by default", "max_colour")
        self._check_poses()

    def _check_poses(self) -> None:
        """Refuse poses that contradict each other, or of which there are more than can be computed."""
        _check_count(self, 1, MOST_POSES, "rotations")
        _check_count(self, 1, MOST_POSES, "scales")
        cure = "use two angles in degrees, the smaller one first, at most a full turn of 360 apart"
        _check(self, lambda x: -FULL_TURN <= x[0] <= x[1] <= x[0] + FULL_TURN <= 2 * FULL_TURN, cure, "rotation_range")
        cure = f"use two factors above 0, the smaller one first, from {1 / MOST_SCALE} to {MOST_SCALE:g}"
        _check(self, lambda x: 1 / MOST_SCALE <= x[0] <= x[1] <= MOST_SCALE, cure, "scale_range")
        for count, ends, usual in (
            ("rotations", "rotation_range", (0.0, FULL_TURN)),
            ("scales", "scale_range", (1.0, 1.0)),
        ):
            given, many = getattr(self, ends), getattr(self, count) > 1
            if (many and given[0] == given[1]) or (not many and given != usual):
                one, other = _setting(self, count), _setting(self, ends)
                raise PcdnetError(one, " and ", other, " contradict each other; use two or more between two ends, or 1")
        factors = {"rotations": self.rotations, "scales": self.scales, "mirror": 1 + self.mirror}
        if self.poses > MOST_POSES:
            first, *others = (_setting(self, name) for name, factor in factors.items() if factor > 1)
            cure = (
                f" make more than {MOST_POSES:,} poses of a prototype; use fewer, as those between them are found, too"
            )
            raise PcdnetError(first, *(part for other in others for part in (" and ", other)), cure)
        most, what = max(factors, key=lambda name: factors[name]), "more than {} %s; use fewer of either"
        prototypes = what % "turned, scaled and mirrored prototypes"
        _check_product(self, "num_prototypes", most, self.poses, MOST_PROTOTYPES, prototypes)
        (h, w), largest = self.prototype_size, self.scale_range[1]
        pixels, area = what % "pixels of turned, scaled and mirrored prototypes", h * w * max(1.0, largest) ** 2
        _check_product(self, "num_prototypes", most, math.ceil(self.poses * area), LARGEST_BANK, pixels)

    @property
    def poses(self) -> int:
        """How many poses a prototype is tried in: angles times sizes, and twice as many with mirror images."""
        return self.rotations * self.scales * (1 + self.mirror)

    @property
    def posed(self) -> bool:
        """Whether objects have poses: they may turn, grow, be mirrored or lie at fractions of a pixel."""
        return self.poses > 1 or self.subpixel

    def scaled(self, share: float) -> ModelConfig:
        """The same for images that are larger by a factor: with more objects and places, as far as can be computed."""
        objects = min(MOST_OBJECTS, LARGEST_BANK // (self.prototype_size[0] * self.prototype_size[1]))
        peaks = min(MOST_PEAKS, MOST_CANDIDATES // self.num_prototypes)
        return dataclasses.replace(
            self,
            max_objects=min(objects, math.ceil(share * self.max_objects)),
            peaks_per_prototype=min(peaks, math.ceil(share * self.peaks_per_prototype)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    """What training minimises besides the reconstruction error."""

    l1: float = 0.0
    """Weight on prototype area; raise it when prototypes smear."""
    tv: float = 0.0
    """Weight on the total variation of the masks; raise it when masks are ragged."""
    mask_area: float = 0.0
    """Price of mask area, as a weight on the masks' mean; it makes masks tight where the picture is black anyway."""

    def __post_init__(self) -> None:
        _check_types(self)
        _check(self, lambda x: x >= 0, "use 0 or more", "l1", "tv", "mask_area")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """How the bank is learned."""

    steps: int = 2000
    """How many batches to learn from."""
    batch: int = 64
    """Images per step."""
    learning_rate: float = 0.01
    """Adam's learning rate at the start."""
    background_lr_scale: float = 0.1
    """Factor on the learning rate of the background: what it learns quickly, no object need explain."""
    decay: float = 1.0
    """Factor on the learning rate every `decay_epochs` epochs; 1 leaves it as it is."""
    decay_epochs: int = 5
    """Epochs between two decays of the learning rate."""
    cooldown: float = 0.25
    """Share of the steps, at the end, over which the learning rate falls to a twentieth."""
    init: Init = "constant"
    """What training starts from: the paper's grey squares (constant), what stands out most in images (images), or every
    shape that stands out again and again, faint and small ones too, parts joined, counters left out (shapes)."""
    noise: float = 0.5
    """Half width of the uniform noise on prototypes in the first steps."""
    noise_probability: float = 0.8
    """Chance that a prototype gets that noise in a step."""
    noise_steps: int = 150
    """How many steps prototypes get noise."""
    mask_noise: float = 0.5
    """Half width of the uniform noise on masks."""
    mask_noise_until: float = 0.95
    """Share of the steps in which masks get noise."""
    reset_every: int = 50
    """Steps between two resets of superfluous prototypes; 0 never resets any."""
    reset_until: float = 0.6
    """Share of the steps after which prototypes are no longer reset, so that the bank settles."""
    validate_every: int = 250
    """Steps between two validations; the best weights are kept."""
    settle: bool = False
    """Whether prototypes that turn out to be superfluous are removed when training is over."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        _check_types(self)
        _check_count(self, 1, MOST_STEPS, "steps")
        _check_count(self, 1, MOST_BATCH, "batch")
        _check(self, lambda n: n >= 1, "use 1 or more", "decay_epochs", "validate_every")
        _check(self, lambda x: x >= 0, "use 0 or more", "background_lr_scale", "noise", "noise_steps", "mask_noise")
        _check(self, lambda n: n >= 0, "use 0 or more", "reset_every", "seed")
        shares = "cooldown", "noise_probability", "mask_noise_until", "reset_until"
        _check(self, lambda x: 0 <= x <= 1, "use a number from 0 to 1", *shares)
        _check(self, lambda x: x > 0, "use a number above 0, such as 0.01", "learning_rate")
        _check(self, lambda x: 0 < x <= 1, "use a factor above 0 and up to 1", "decay")


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Everything that defines a run: the model, the loss, the training.

    Examples
    --------
    >>> config = Config.preset("tetrominoes").with_fields({"train.steps": 100})
    >>> config.train.steps, config.model.num_prototypes
    (100, 19)
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    """What the model is."""
    loss: LossConfig = field(default_factory=LossConfig)
    """What training minimises."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How the bank is learned."""

    @staticmethod
    def preset(name: str) -> Config:
        """The configuration for a known data set, by name."""
        if name not in PRESETS:
            hint = did_you_mean(name, PRESETS)
            raise PcdnetError(f"there is no preset {name!r}{hint}; choose one of {', '.join(PRESETS)}")
        return PRESETS[name]

    def with_fields(self, changes: Mapping[str, Any]) -> Config:
        """The configuration with some fields, named with their section (`model.max_objects`), set to other values."""
        sections: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            section, _, field_name = name.partition(".")
            if name not in FIELDS:
                raise PcdnetError(f"there is no field {name!r}{did_you_mean(name, FIELDS)}; name it with its section")
            sections.setdefault(section, {})[field_name] = value
        parts = {name: dataclasses.replace(getattr(self, name), **fields) for name, fields in sections.items()}
        return dataclasses.replace(self, **parts)

    def differences(self, other: Config) -> Iterator[tuple[str, Any, Any]]:
        """The fields (`model.max_objects`) in which two configurations differ, with both values."""
        for name in FIELDS:
            mine, theirs = attrgetter(name)(self), attrgetter(name)(other)
            if mine != theirs:
                yield name, mine, theirs

    def to_toml(self, *sections: str) -> str:
        """The configuration, or some of its sections, as TOML text that `from_toml` reads."""
        lines = []
        for section in sections or get_type_hints(Config):
            values = getattr(self, section)
            named = ((f.name, getattr(values, f.name)) for f in dataclasses.fields(values))
            lines += [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in named), ""]
        return "\n".join(lines)

    @staticmethod
    def from_toml(text: str, source: str = "the configuration") -> Config:
        """Read `to_toml`'s text; fields that are not named keep their defaults, unknown ones are errors."""
        try:
            tables = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: a number of thousands of digits, too
            raise PcdnetError(f"{source} is not valid TOML: {error}; fix that line") from None
        return Config.from_tables(tables, source)

    @staticmethod
    def from_tables(tables: Mapping[str, Any], source: str) -> Config:
        """The same from TOML that is read already."""
        sections: dict[str, Any] = {}
        kinds = get_type_hints(Config)
        for name, table in tables.items():
            if name not in kinds:
                known = f"sections are {', '.join(kinds)}"
                raise PcdnetError(f"{source} has an unknown section [{name}]{did_you_mean(name, kinds)}; {known}")
            if not isinstance(table, dict):
                raise PcdnetError(f"{source} sets {name} = {table!r}; write a section [{name}], its fields below it")
            sections[name] = _section(kinds[name], name, table, source)
        return Config(**sections)

    @staticmethod
    def load(path: str | Path, complete: Collection[str] = ()) -> Config:
        """Read a TOML file.

        The sections that must be `complete` lack no field, but for those that are newer than the file: what was written
        for a run is not to be filled up with defaults because a part of it was lost.
        """
        try:
            text = text_of(at_most(Path(path)))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PcdnetError(f"cannot read the configuration {path}: {reason}; give a readable TOML file") from None
        try:
            text, sealed = unsealed_toml(text)
        except ValueError as error:
            raise PcdnetError(f"the configuration {path} cannot be used: {error}, otherwise restore it") from None
        config = Config.from_toml(text, source=str(path))
        if not sealed:  # a sealed file is as it was written, so what it lacks is newer
            _check_complete(tomllib.loads(text), complete, path)
        return config


def flags(setting: Setting) -> list[str]:
    """The words that name a setting on the command line, with its value if it has one."""
    section, _, name = setting.name.replace("_", "-").rpartition(".")
    prefix = f"--{section}." if section else "--"
    if isinstance(setting.value, bool):
        return [f"{prefix}{name}" if setting.value else f"{prefix}no-{name}"]
    value = setting.value
    values = () if value is None else value if isinstance(value, tuple) else (value,)
    return [f"{prefix}{name}", *(str(each).removesuffix(".0") if type(each) is float else str(each) for each in values)]


RENAMED = {
    "model.prototypes": "num_prototypes",
    "model.objects": "max_objects",
    "model.peaks": "peaks_per_prototype",
    "model.min_gain": "min_error_reduction",
    "model.refinement": "restarts",
    "model.brightest": "max_colour",
    "train.start": "init",
    "train.background_pace": "background_lr_scale",
    "train.heal_every": "reset_every",
    "train.heal_until": "reset_until",
}
"""Fields by the names that they had in version 0.1; configurations with these are read."""
RENAMED_VALUES: dict[str, dict[object, str]] = {
    "model.colour": {"solve": "least_squares"},
    "model.localization": {"gain": "error_reduction"},
    "model.background": {True: "still", False: "black"},
}
"""The same for the values of fields."""


NEWER = {
    *("model.template", "model.sparse_training", "model.rounds", "model.depth_order", "model.max_unexplained"),
    *("model.min_inside", "model.labels", "train.settle"),
    *("model.rotations", "model.rotation_range", "model.scales", "model.scale_range", "model.mirror"),
    *("model.fine_poses", "model.subpixel"),
}
"""Fields that version 0.1 did not have; whoever adds another need not name it here, as files are sealed since."""


FIELDS: dict[str, Any] = {
    f"{name}.{field_name}": hint
    for name, kind in get_type_hints(Config).items()
    for field_name, hint in get_type_hints(kind).items()
}
"""Every field, named with its section, and the type of its values."""


def _check_complete(tables: Mapping[str, Any], sections: Collection[str], path: object) -> None:
    """Refuse a configuration of a run in which fields are missing that every version wrote."""
    there = {
        f"{section}.{RENAMED.get(f'{section}.{name}', name)}" for section in tables for name in tables.get(section, {})
    }
    lost = [name for name in FIELDS if name.partition(".")[0] in sections and name not in {*there, *NEWER}]
    if lost:
        raise PcdnetError(f"{path} has lost {len(lost)} fields, {lost[0]} for example; restore it, or train anew")


def _section(kind: type[Any], name: str, table: dict[str, Any], source: str) -> Any:
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for written, value in table.items():
        key = RENAMED.get(f"{name}.{written}", written)
        if key not in hints:
            known = f"fields are {', '.join(hints)}"
            raise PcdnetError(f"{source} has an unknown field {name}.{key}{did_you_mean(key, hints)}; {known}")
        if key in values:
            raise PcdnetError(f"{source} sets {name}.{key} twice, once by an older name; keep one of the two")
        if isinstance(value, str | bool):
            value = RENAMED_VALUES.get(f"{name}.{key}", {}).get(value, value)
        values[key] = checked_value(hints[key], f"{name}.{key}", value, source)
    return kind(**values)


def checked_value(hint: Any, name: str, value: Any, source: str) -> Any:
    """The value as the field's type wants it: TOML knows lists but no tuples, and 1 is a fine float."""
    try:
        return _of_type(hint, value)
    except TypeError as wanted:
        raise PcdnetError(f"{source} sets {name} = {value!r}; use {wanted}") from None


def _of_type(hint: Any, value: Any) -> Any:
    """The value as a type wants it; a TypeError that says what is wanted instead."""
    if get_origin(hint) is Literal:
        if value in get_args(hint):
            return value
        raise TypeError(" or ".join(repr(choice) for choice in get_args(hint)))
    if get_origin(hint) is tuple and float in get_args(hint):
        try:
            if isinstance(value, list) and len(value) == 2:
                return tuple(_of_type(float, end) for end in value)
        except TypeError:
            pass
        raise TypeError("two numbers, such as [0.5, 1.0]")
    if get_origin(hint) is tuple:
        if isinstance(value, list) and len(value) == 2 and all(type(side) is int for side in value):
            return tuple(value)
        raise TypeError("two whole numbers, such as [25, 25]")
    if hint is float:
        if type(value) in (int, float) and abs(value) < sys.float_info.max:
            return float(value)
        raise TypeError("a number")
    if type(value) is hint:
        return value
    raise TypeError({int: "a whole number", bool: "true or false", str: "a text"}[hint])


def _check_types(section: Any) -> None:
    """Refuse what is of another type than its field, as Python allows; NumPy's numbers become Python's."""
    for name, hint in get_type_hints(type(section)).items():
        value = getattr(section, name)
        plain = [_plain(side) for side in value] if isinstance(value, list | tuple) else _plain(value)
        try:
            object.__setattr__(section, name, _of_type(hint, plain))
        except TypeError as wanted:
            raise PcdnetError(_setting(section, name), f" cannot be used; use {wanted}") from None


def _plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's; anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def _setting(section: Any, name: str) -> Setting:
    """A field of a section of a configuration, with its value."""
    return Setting(f"{type(section).__name__.removesuffix('Config').lower()}.{name}", getattr(section, name))


def _check(section: Any, allowed: Callable[[Any], bool], cure: str, *names: str) -> None:
    """Refuse a section of a configuration in which a field is not what is allowed, or beyond all measure."""
    for name in names:
        value, setting = getattr(section, name), _setting(section, name)
        if not allowed(value):
            raise PcdnetError(setting, f" cannot be used; {cure}")
        if isinstance(value, int | float) and value > LARGEST:
            raise PcdnetError(setting, f" cannot be used; use {LARGEST} at most")


def _check_count(section: Any, least: int, most: int, name: str) -> None:
    """Refuse a section in which a number of things is less or more than can be computed."""
    _check(section, lambda n: least <= n <= most, f"use {least} or more, up to {most}", name)


def _check_product(model: ModelConfig, one: str, other: str, factor: int, most: int, problem: str) -> None:
    """Refuse a model of two fields that can each be used, but not together."""
    if getattr(model, one) * factor > most:
        raise PcdnetError(_setting(model, one), " and ", _setting(model, other), f" make {problem.format(f'{most:,}')}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that an unknown one resembles, as a question in brackets; nothing if there is none."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _presets() -> dict[str, Config]:
    path = Path(__file__).with_name("presets.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: Config.from_tables(table, f"the preset {name}") for name, table in tables.items()}


PRESETS = _presets()
"""Configurations for the data sets of the paper, by name; with `-paper` as the paper describes them, but for what
docs/paper.md names."""
