"""Laws of configurations: TOML round-trips, and every mistake names its cure."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.config import PRESETS, Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.errors import PcdnetError

counts = st.integers(1, 10**6)
weights = st.floats(0, 1e6)
shares = st.floats(0, 1)
above_zero = st.floats(0, 1e6, exclude_min=True)

models = st.builds(
    ModelConfig,
    prototypes=counts,
    prototype_size=st.tuples(st.integers(2, 999), st.integers(2, 999)),
    objects=counts,
    peaks=counts,
    channels=st.sampled_from([1, 3]),
    colour=st.sampled_from(["least_squares", "network", "none"]),
    background=st.booleans(),
    min_error_reduction=weights,
    restarts=st.integers(0, 99),
    overhang=st.floats(0, 1, exclude_max=True),
    max_colour=above_zero,
)
losses = st.builds(LossConfig, l1=weights, tv=weights)
trainings = st.builds(
    TrainConfig,
    batch=counts,
    learning_rate=above_zero,
    decay=st.floats(0, 1, exclude_min=True),
    decay_epochs=counts,
    noise=weights,
    noise_probability=shares,
    seed=st.integers(0, 2**32),
)
configs = st.builds(Config, model=models, loss=losses, train=trainings) | st.sampled_from(list(PRESETS.values()))


@given(configs)
def test_toml_gives_the_same_configuration_back(config: Config) -> None:
    assert Config.from_toml(config.to_toml()) == config


@given(configs, st.sampled_from(["model", "loss", "train"]))
def test_sections_that_are_not_named_keep_their_defaults(config: Config, section: str) -> None:
    text = config.to_toml()
    start = text.index(f"[{section}]")
    end = text.find("\n[", start)
    rest = text[:start] + (text[end:] if end >= 0 else "")
    default = {section: getattr(Config(), section)}
    assert Config.from_toml(rest) == dataclasses.replace(config, **default)


def test_an_empty_text_is_the_default() -> None:
    assert Config.from_toml("") == Config()


def test_a_whole_number_is_a_fine_float() -> None:
    gain = Config.from_toml("[model]\nmin_gain = 2\n").model.min_error_reduction
    assert gain == 2
    assert type(gain) is float


def test_a_file_gives_its_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(Config.preset("ngsim").to_toml(), encoding="utf-8")
    assert Config.load(path) == Config.preset("ngsim")


@pytest.mark.parametrize("name", list(PRESETS))
def test_presets_are_found_by_name(name: str) -> None:
    assert Config.preset(name) is PRESETS[name]


def test_an_unknown_preset_names_the_right_one() -> None:
    with pytest.raises(PcdnetError, match=r"'tetromino' \(did you mean tetrominoes\?\).*space-invaders"):
        Config.preset("tetromino")


FIELDS = [
    (section.name, field.name)
    for section in dataclasses.fields(Config)
    for field in dataclasses.fields(getattr(Config(), section.name))
]


@pytest.mark.parametrize(("section", "field"), FIELDS)
def test_a_misspelt_field_names_the_right_one(section: str, field: str) -> None:
    with pytest.raises(PcdnetError, match=rf"unknown field {section}\.{field}x \(did you mean {field}\?\)"):
        Config.from_toml(f"[{section}]\n{field}x = 1\n")


@pytest.mark.parametrize(("section", "field"), FIELDS)
def test_a_value_of_the_wrong_type_is_refused(section: str, field: str) -> None:
    with pytest.raises(PcdnetError, match=rf"run\.toml sets {section}\.{field} = \{{\}}; use "):
        Config.from_toml(f"[{section}]\n{field} = {{}}\n", source="run.toml")


def test_a_misspelt_section_names_the_right_one() -> None:
    with pytest.raises(PcdnetError, match=r"\[models\] \(did you mean model\?\); sections are model, loss, train"):
        Config.from_toml("[models]\n")
    with pytest.raises(PcdnetError, match=r"sets model = 1; write a section \[model\]"):
        Config.from_toml("model = 1\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("prototypes = 3.0", "3.0; use a whole number"),
        ("prototypes = true", "True; use a whole number"),
        ("background = 1", "1; use true or false"),
        ("prototype_size = 25", "25; use two whole numbers"),
        ("prototype_size = [25]", "use two whole numbers"),
        ("prototype_size = [25.0, 25]", "use two whole numbers"),
        ("min_error_reduction = nan", "nan; use a number"),
        ("min_error_reduction = inf", "inf; use a number"),
        ('colour = "sovle"', "'sovle'; use 'solve' or 'network' or 'none'"),
    ],
)
def test_a_wrong_value_is_quoted_with_what_is_wanted(text: str, complaint: str) -> None:
    with pytest.raises(PcdnetError) as caught:
        Config.from_toml(f"[model]\n{text}\n")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        (ModelConfig, "prototypes", 0),
        (ModelConfig, "objects", 0),
        (ModelConfig, "peaks", -1),
        (ModelConfig, "prototype_size", (25, 1)),
        (ModelConfig, "channels", 2),
        (ModelConfig, "min_error_reduction", -0.1),
        (ModelConfig, "refinement", -1),
        (ModelConfig, "overhang", 1.0),
        (ModelConfig, "max_colour", 0.0),
        (LossConfig, "l1", -1.0),
        (LossConfig, "tv", float("nan")),
        (TrainConfig, "batch", 0),
        (TrainConfig, "learning_rate", 0.0),
        (TrainConfig, "decay", 0.0),
        (TrainConfig, "decay", 1.5),
        (TrainConfig, "decay_epochs", 0),
        (TrainConfig, "noise", -0.5),
        (TrainConfig, "noise_probability", 1.1),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(section: type[Any], field: str, value: Any) -> None:
    with pytest.raises(PcdnetError, match=rf"\.{field} is .*; use "):
        section(**{field: value})


def test_text_that_is_no_toml_is_told_so() -> None:
    with pytest.raises(PcdnetError, match=r"run\.toml is not valid TOML: .*line 1"):
        Config.from_toml("[model\n", source="run.toml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=r"cannot read the configuration .*missing\.toml"):
        Config.load(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PcdnetError, match=r"cannot read the configuration .*binary\.toml"):
        Config.load(tmp_path / "binary.toml")
