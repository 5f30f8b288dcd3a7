"""Configuration: frozen dataclasses, the presets, TOML in and out."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pcdnet.errors import PcdnetError, Setting

ColourModule = Literal["least_squares", "network", "none"]
Localization = Literal["phase", "error_reduction"]
Init = Literal["constant", "images"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """What the model is: the size of its bank and how it explains an image with it."""

    num_prototypes: int = 19
    """How many prototypes the bank holds: at least the number of kinds of objects."""

    prototype_size: tuple[int, int] = (25, 25)
    """Height and width of a prototype's frame in pixels: at least as large as the largest object."""

    localization: Localization = "phase"
    """How places are found: by phase correlation (phase), best if crisp, or by error_reduction, best if smooth."""

    max_objects: int = 3
    """How many objects an image may hold at most; fewer are chosen where fewer explain it."""

    peaks_per_prototype: int = 3
    """How many places per prototype are tried; at least the number of objects of one kind in an image."""

    channels: int = 3
    """Channels of the images: 1 for grey, 3 for RGB."""

    colour: ColourModule = "least_squares"
    """Where an object's colour comes from: least_squares, network (as in the paper) or none (always 1)."""

    background: bool = False
    """Whether a static background is learned; without it objects are painted over black."""

    min_error_reduction: float = 0.1
    """Smallest fall of the squared error, summed over pixels and channels, that justifies one more object."""

    restarts: int = 6
    """How often an image that greedy selection explains badly is searched again at most; 0 turns refinement off."""

    overhang: float = 0.5
    """How much of the smallest frame that holds every object may lie outside the image, as a share of its sides."""

    max_colour: float = 1.5
    """Largest colour factor that least squares may choose; it keeps faint leftovers from being blown up."""

    min_visible: float = 0.0
    """Least share of an object's mask that others must not hide; above 0 where things stand side by side."""

    min_solid: float = 0.0
    """Least share of an object's mask in which it must explain the image better than the background does."""

    def __post_init__(self) -> None:
        for name in ("num_prototypes", "max_objects", "peaks_per_prototype"):
            _at_least("model", name, getattr(self, name), 1)
        if min(self.prototype_size) < 2:
            raise _refused("model", "prototype_size", self.prototype_size, "use 2 or more pixels a side")
        if self.channels not in (1, 3):
            raise _refused("model", "channels", self.channels, "use 1 for grey or 3 for RGB images")
        _at_least("model", "min_error_reduction", self.min_error_reduction, 0)
        _at_least("model", "restarts", self.restarts, 0)
        if not 0 <= self.overhang < 1:
            raise _refused("model", "overhang", self.overhang, "use a share from 0 up to, not including, 1")
        for name in ("min_visible", "min_solid"):
            if not 0 <= getattr(self, name) <= 1:
                raise _refused("model", name, getattr(self, name), "use a share from 0 to 1")
        if not self.max_colour > 0:
            raise _refused("model", "max_colour", self.max_colour, "use a number above 0, 1.5 by default")


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
        _at_least("loss", "l1", self.l1, 0)
        _at_least("loss", "tv", self.tv, 0)
        _at_least("loss", "mask_area", self.mask_area, 0)


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
    """What training starts from: the paper's grey squares (constant), or shapes that stand out in images (images)."""

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

    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "decay_epochs", "validate_every"):
            _at_least("train", name, getattr(self, name), 1)
        for name in ("background_lr_scale", "noise", "noise_steps", "mask_noise", "reset_every", "seed"):
            _at_least("train", name, getattr(self, name), 0)
        for name in ("cooldown", "noise_probability", "mask_noise_until", "reset_until"):
            if not 0 <= getattr(self, name) <= 1:
                raise _refused("train", name, getattr(self, name), "use a number from 0 to 1")
        if not self.learning_rate > 0:
            raise _refused("train", "learning_rate", self.learning_rate, "use a number above 0, such as 0.01")
        if not 0 < self.decay <= 1:
            raise _refused("train", "decay", self.decay, "use a factor above 0 and up to 1")


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
            raise PcdnetError(f"there is no preset {name!r}{_hint(name, PRESETS)}; choose one of {', '.join(PRESETS)}")
        return PRESETS[name]

    def with_fields(self, changes: Mapping[str, Any]) -> Config:
        """The configuration with some fields, named with their section (`model.max_objects`), set to other values."""
        sections: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            section, _, field_name = name.partition(".")
            known = {f"{part}.{f.name}": part for part, f in _all_fields()}
            if name not in known:
                raise PcdnetError(f"there is no field {name!r}{_hint(name, known)}; name it with its section")
            sections.setdefault(section, {})[field_name] = value
        parts = {name: dataclasses.replace(getattr(self, name), **fields) for name, fields in sections.items()}
        return dataclasses.replace(self, **parts)

    def differences(self, other: Config) -> Iterator[tuple[str, Any, Any]]:
        """The fields (`model.max_objects`) in which two configurations differ, with both values."""
        for section, f in _all_fields():
            mine, theirs = (getattr(getattr(config, section), f.name) for config in (self, other))
            if mine != theirs:
                yield f"{section}.{f.name}", mine, theirs

    def to_toml(self, *sections: str) -> str:
        """The configuration, or some of its sections, as TOML text that `from_toml` reads."""
        lines = []
        for section in dataclasses.fields(self):
            if sections and section.name not in sections:
                continue
            values = getattr(self, section.name)
            lines += [f"[{section.name}]"]
            lines += [f"{f.name} = {_toml(getattr(values, f.name))}" for f in dataclasses.fields(values)]
            lines.append("")
        return "\n".join(lines)

    @staticmethod
    def from_toml(text: str, source: str = "the configuration") -> Config:
        """Read `to_toml`'s text; fields that are not named keep their defaults, unknown ones are errors."""
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PcdnetError(f"{source} is not valid TOML: {error}; fix that line") from None
        return Config.from_tables(tables, source)

    @staticmethod
    def from_tables(tables: Mapping[str, Any], source: str) -> Config:
        """The same from TOML that is read already."""
        sections: dict[str, Any] = {}
        kinds = get_type_hints(Config)
        for name, table in tables.items():
            if name not in kinds:
                raise PcdnetError(
                    f"{source} has an unknown section [{name}]{_hint(name, kinds)}; sections are {', '.join(kinds)}"
                )
            if not isinstance(table, dict):
                raise PcdnetError(
                    f"{source} sets {name} = {table!r}; write a section [{name}] with its fields below it"
                )
            sections[name] = _section(kinds[name], name, table, source)
        return Config(**sections)

    @staticmethod
    def load(path: str | Path) -> Config:
        """Read a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PcdnetError(f"cannot read the configuration {path}: {error}; give a readable TOML file") from None
        return Config.from_toml(text, source=str(path))


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
RENAMED_VALUES = {"model.colour": {"solve": "least_squares"}, "model.localization": {"gain": "error_reduction"}}
"""The same for the values of fields."""


def _all_fields() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Every field of a configuration, with its section."""
    for section, kind in get_type_hints(Config).items():
        for f in dataclasses.fields(kind):
            yield section, f


def _section(kind: type[Any], name: str, table: dict[str, Any], source: str) -> Any:
    hints = get_type_hints(kind)
    table = {RENAMED.get(f"{name}.{key}", key): value for key, value in table.items()}
    for key, values in ((key, RENAMED_VALUES.get(f"{name}.{key}", {})) for key in table):
        if isinstance(table[key], str):
            table[key] = values.get(table[key], table[key])
    for key in table:
        if key not in hints:
            raise PcdnetError(
                f"{source} has an unknown field {name}.{key}{_hint(key, hints)}; fields are {', '.join(hints)}"
            )
    return kind(**{key: _checked(hints[key], f"{name}.{key}", value, source) for key, value in table.items()})


def _checked(hint: Any, name: str, value: Any, source: str) -> Any:
    """The value as the field's type wants it: TOML knows lists but no tuples, and 1 is a fine float."""
    if get_origin(hint) is Literal:
        if value in get_args(hint):
            return value
        wanted = " or ".join(repr(choice) for choice in get_args(hint))
    elif get_origin(hint) is tuple:
        if isinstance(value, list) and len(value) == 2 and all(type(side) is int for side in value):
            return tuple(value)
        wanted = "two whole numbers, such as [25, 25]"
    elif hint is float:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
        wanted = "a number"
    else:
        if type(value) is hint:
            return value
        wanted = {int: "a whole number", bool: "true or false", str: "a text"}[hint]
    raise PcdnetError(f"{source} sets {name} = {value!r}; use {wanted}")


def _at_least(section: str, name: str, value: float, least: float) -> None:
    if not value >= least or not math.isfinite(value):
        raise _refused(section, name, value, f"use {least} or more")


def _refused(section: str, name: str, value: object, cure: str) -> PcdnetError:
    return PcdnetError(Setting(f"{section}.{name}", value), f" cannot be used; {cure}")


def _hint(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _presets() -> dict[str, Config]:
    path = Path(__file__).with_name("presets.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: Config.from_tables(table, f"the preset {name}") for name, table in tables.items()}


PRESETS = _presets()
"""Configurations for the data sets of the paper, by name; with `-paper` as the paper describes them."""
