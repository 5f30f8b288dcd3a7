"""Laws of configurations: TOML round-trips, and every mistake names its cure."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.config import MOST_PROTOTYPES, PRESETS, RENAMED, RENAMED_VALUES, Config, flags
from pcdnet.errors import PcdnetError, Setting

SECTIONS: dict[str, type[Any]] = get_type_hints(Config)
FIELDS = {
    f"{section}.{name}": hint for section, kind in SECTIONS.items() for name, hint in get_type_hints(kind).items()
}
"""Every field of a configuration with its type."""

BY_TYPE: dict[object, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(1, 10**5),
    float: st.floats(0, 1, exclude_min=True, exclude_max=True),
}
counts, weights = st.integers(0, 2**32), st.floats(0, 1e6)
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "model.num_prototypes": st.integers(1, 64),
    "model.max_objects": st.integers(1, 260),
    "model.peaks_per_prototype": st.integers(1, 2**10),
    "model.rounds": st.integers(1, 100),
    "model.restarts": st.integers(0, 2**8),
    "train.batch": st.integers(1, 2**16),
    "model.prototype_size": st.tuples(st.integers(2, 999), st.integers(2, 999)),
    "model.channels": st.sampled_from([1, 3]),
    "model.max_colour": st.floats(0, 1e6, exclude_min=True),
    **dict.fromkeys(("train.noise_steps", "train.reset_every", "train.seed"), counts),
    **dict.fromkeys(("loss.l1", "loss.tv", "loss.mask_area", "model.min_error_reduction", "train.noise"), weights),
    **dict.fromkeys(
        ("model.min_visible", "model.min_solid", "model.min_inside", "train.cooldown", "train.reset_until"),
        st.floats(0, 1),
    ),
}
"""What fields may be that have a range of their own; all others, new ones too, are drawn by their type."""
POSES = {f"model.{name}" for name in ("rotations", "rotation_range", "scales", "scale_range", "mirror")}
"""What must go together, and is drawn so."""


def values(field: str) -> st.SearchStrategy[Any]:
    """All that a field may be, as far as its type and its range are known."""
    hint = FIELDS[field]
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    return BY_NAME[field] if field in BY_NAME else BY_TYPE[hint]


@st.composite
def poses(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of poses that go together, of no more poses than the largest bank may have."""
    rotations, scales, mirror = draw(
        st.sampled_from([(1, 1, 0), (4, 1, 0), (1, 4, 0), (2, 2, 0), (2, 1, 1), (1, 2, 1)])
    )
    low, small = draw(st.floats(-360, 360)), draw(st.floats(1 / 16, 0.9))
    turned = {"rotations": rotations, "rotation_range": (low, low + draw(st.floats(1, 360)))}
    scaled = {"scales": scales, "scale_range": (small, draw(st.floats(small, 1, exclude_min=True)))}
    return {"mirror": bool(mirror), **(turned if rotations > 1 else {}), **(scaled if scales > 1 else {})}


@st.composite
def drawn(draw: st.DrawFn) -> Config:
    """A configuration of which every field is drawn."""
    together = {"model": draw(poses())}
    apart = {
        section: {
            name: draw(values(f"{section}.{name}")) for name in get_type_hints(kind) if f"{section}.{name}" not in POSES
        }
        for section, kind in SECTIONS.items()
    }
    return Config(
        **{section: kind(**apart[section], **together.get(section, {})) for section, kind in SECTIONS.items()}
    )


configs = drawn() | st.sampled_from(list(PRESETS.values()))


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


def test_every_range_is_that_of_a_field() -> None:
    assert BY_NAME.keys() | POSES <= FIELDS.keys()


def test_an_empty_text_is_the_default() -> None:
    assert Config.from_toml("") == Config()


def test_a_whole_number_is_a_fine_float() -> None:
    least = Config.from_toml("[model]\nmin_error_reduction = 2\n").model.min_error_reduction
    assert least == 2
    assert type(least) is float


@given(configs)
def test_one_section_as_toml_is_that_section(config: Config) -> None:
    assert Config.from_toml(config.to_toml("loss")) == Config(loss=config.loss)


@given(configs, configs)
def test_the_differences_of_two_configurations_make_one_the_other(one: Config, other: Config) -> None:
    found = list(one.differences(other))
    assert one.with_fields({name: theirs for name, _, theirs in found}) == other
    assert other.with_fields({name: mine for name, mine, _ in found}) == one
    assert not list(one.differences(one))


@pytest.mark.parametrize(("name", "meant"), [("model.object", "model.max_objects"), ("loss.TV", "loss.tv")])
def test_a_change_of_no_field_names_the_right_one(name: str, meant: str) -> None:
    with pytest.raises(PcdnetError, match=rf"no field '{name}' \(did you mean {meant}\?\); name it with its section"):
        Config().with_fields({name: 1})


@given(st.data())
@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_field_is_read_by_its_name_of_version_0_1(old: str, new: str, data: st.DataObject) -> None:
    section, _, name = old.partition(".")
    config = Config().with_fields({f"{section}.{new}": data.draw(values(f"{section}.{new}"))})
    text = config.to_toml(section).replace(f"\n{new} = ", f"\n{name} = ")
    assert new not in tomllib.loads(text)[section]
    assert Config.from_toml(text) == config


@pytest.mark.parametrize(
    ("field", "old", "new"), [(field, *pair) for field, pairs in RENAMED_VALUES.items() for pair in pairs.items()]
)
def test_a_value_is_read_by_its_name_of_version_0_1(field: str, old: str | bool, new: str) -> None:
    section, _, name = field.partition(".")
    written = json.dumps(old)  # texts and truth values are written in TOML as in JSON
    assert Config.from_toml(f"[{section}]\n{name} = {written}\n") == Config().with_fields({field: new})
    assert old not in get_args(FIELDS[field])


def test_a_name_of_version_0_1_never_hides_one_of_now() -> None:
    assert {f"{old.partition('.')[0]}.{new}" for old, new in RENAMED.items()} <= FIELDS.keys()
    assert not RENAMED.keys() & FIELDS.keys()


@pytest.mark.parametrize("text", ["prototypes = 3\nnum_prototypes = 5", "num_prototypes = 5\nprototypes = 3"])
def test_a_field_by_both_of_its_names_is_refused(text: str) -> None:
    with pytest.raises(PcdnetError, match=r"sets model\.num_prototypes twice, once by an older name; keep one"):
        Config.from_toml(f"[model]\n{text}\n")


def test_a_file_gives_its_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(Config.preset("ngsim").to_toml(), encoding="utf-8")
    assert Config.load(path) == Config.preset("ngsim")


def test_presets_are_found_by_name() -> None:
    assert all(Config.preset(name) is preset for name, preset in PRESETS.items())
    assert {f"{name}-paper" for name in ("tetrominoes", "space-invaders", "ngsim")} <= PRESETS.keys()


def test_an_unknown_preset_names_the_right_one() -> None:
    with pytest.raises(PcdnetError, match=r"'tetromino' \(did you mean tetrominoes\?\).*space-invaders"):
        Config.preset("tetromino")


def test_a_misspelt_field_names_the_right_one() -> None:
    for section, name in (field.split(".") for field in FIELDS):
        with pytest.raises(PcdnetError, match=rf"unknown field {section}\.{name}x \(did you mean {name}\?\)"):
            Config.from_toml(f"[{section}]\n{name}x = 1\n")


def test_a_value_of_the_wrong_type_is_refused() -> None:
    for section, name in (field.split(".") for field in FIELDS):
        with pytest.raises(PcdnetError, match=rf"run\.toml sets {section}\.{name} = \{{\}}; use "):
            Config.from_toml(f"[{section}]\n{name} = {{}}\n", source="run.toml")


def test_a_misspelt_section_names_the_right_one() -> None:
    with pytest.raises(PcdnetError, match=r"\[models\] \(did you mean model\?\); sections are model, loss, train"):
        Config.from_toml("[models]\n")
    with pytest.raises(PcdnetError, match=r"sets model = 1; write a section \[model\]"):
        Config.from_toml("model = 1\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("num_prototypes = 3.0", "3.0; use a whole number"),
        ("num_prototypes = true", "True; use a whole number"),
        ("background = 1", "1; use 'black' or 'still' or 'plain' or 'moving'"),
        ("prototype_size = 25", "25; use two whole numbers"),
        ("prototype_size = [25]", "use two whole numbers"),
        ("prototype_size = [25.0, 25]", "use two whole numbers"),
        ("min_error_reduction = nan", "nan; use a number"),
        ("min_error_reduction = inf", "inf; use a number"),
        (f"min_error_reduction = 1{'0' * 400}", "use a number"),
        *(
            (f"{name} = {value}", "; use two numbers, such as [0.5, 1.0]")
            for name in ("rotation_range", "scale_range")
            for value in (
                "1",
                "[1.0]",
                "[0.5, 1.0, 2.0]",
                "[nan, 1.0]",
                "[0.5, inf]",
                '[0.5, "1"]',
                "[true, 2]",
                "'ab'",
            )
        ),
        ('colour = "least"', "'least'; use 'least_squares' or 'network' or 'none'"),
    ],
)
def test_a_wrong_value_is_quoted_with_what_is_wanted(text: str, complaint: str) -> None:
    with pytest.raises(PcdnetError) as caught:
        Config.from_toml(f"[model]\n{text}\n")
    assert complaint in str(caught.value)


def test_every_number_has_a_range() -> None:
    beyond: dict[Any, list[float]] = {int: [-1, 10**10], float: [-1.0, 1e308, float("nan"), float("inf")]}
    for field, value in ((field, value) for field, hint in FIELDS.items() for value in beyond.get(hint, [])):
        with pytest.raises(
            PcdnetError, match=f"^{re.escape(str(Setting(field, value)))} cannot be used; use "
        ) as caught:
            Config().with_fields({field: value})
        assert [setting.name for setting in caught.value.settings] == [field]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((f"model.{name}", 0) for name in ("num_prototypes", "max_objects", "peaks_per_prototype", "rounds")),
        *((f"model.{name}", 2**14 + 1) for name in ("num_prototypes", "max_objects", "restarts", "rounds")),
        ("model.peaks_per_prototype", 2**14 + 1),
        ("train.steps", 10**9),
        ("train.batch", 10**5),
        ("model.prototype_size", (25, 1)),
        ("model.prototype_size", (25, 10**5)),
        ("model.channels", 2),
        *((f"model.{name}", 1.1) for name in ("min_visible", "min_solid", "min_inside")),
        ("model.overhang", 1.0),
        ("model.max_colour", 0.0),
        *((f"train.{name}", 0) for name in ("steps", "batch", "decay_epochs", "validate_every")),
        *((f"train.{name}", 1.1) for name in ("cooldown", "noise_probability", "mask_noise_until", "reset_until")),
        *((f"model.{name}", count) for name in ("rotations", "scales") for count in (0, -3, 1025)),
        *(("model.rotation_range", ends) for ends in ((90.0, 0.0), (0.0, 360.5), (-361.0, -10.0), (361.0, 400.0))),
        *(("model.scale_range", ends) for ends in ((0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (0.06, 1.0), (1.0, 16.5))),
        ("train.learning_rate", 0.0),
        ("train.decay", 0.0),
        ("train.decay", 1.5),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(PcdnetError, match=f"^{re.escape(str(Setting(field, value)))} cannot be used; use "):
        Config().with_fields({field: value})


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting("model.prototype_size", (30, 20)), "--model.prototype-size 30 20"),
        (Setting("train.learning_rate", 0.5), "--train.learning-rate 0.5"),
        (Setting("train.learning_rate", 2.0), "--train.learning-rate 2"),
        (Setting("train.seed", 10), "--train.seed 10"),
        (Setting("model.scale_range", (0.5, 1.0)), "--model.scale-range 0.5 1"),
        (Setting("model.background", "still"), "--model.background still"),
        (Setting("train.settle", True), "--train.settle"),
        (Setting("train.settle", False), "--train.no-settle"),
        (Setting("model.colour", "least_squares"), "--model.colour least_squares"),
        (Setting("resize"), "--resize"),
        (Setting("grey", True), "--grey"),
        (Setting("data", "1.0"), "--data 1.0"),
    ],
)
def test_a_setting_is_worded_as_a_flag(setting: Setting, words: str) -> None:
    assert flags(setting) == words.split()


def test_text_that_is_no_toml_is_reported_as_such() -> None:
    with pytest.raises(PcdnetError, match=r"run\.toml is not valid TOML: .*line 1"):
        Config.from_toml("[model\n", source="run.toml")
    with pytest.raises(PcdnetError, match=r"run\.toml is not valid TOML: .*recursion"):
        Config.from_toml("x = " + "[" * 100_000, source="run.toml")


def test_numbers_of_thousands_of_digits_are_reported_as_such() -> None:
    with pytest.raises(PcdnetError, match=r"run\.toml is not valid TOML: .*digits"):
        Config.from_toml(f"[train]\nseed = {'9' * 9999}\n", source="run.toml")


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        (("num_prototypes", 4000), ("prototype_size", (999, 999)), "make a bank of more than 268,435,456 pixels; use "),
        (("max_objects", 4000), ("prototype_size", (999, 999)), "make objects of more than 268,435,456 pixels; use "),
        (("num_prototypes", 400), ("peaks_per_prototype", 400), "make more than 65,536 places to look at in an image;"),
    ],
)
def test_what_fills_any_memory_together_is_refused(one: tuple[str, Any], other: tuple[str, Any], problem: str) -> None:
    with pytest.raises(PcdnetError, match=f"{one[0]}={one[1]} and {other[0]}=.* {problem}"):
        Config().with_fields({f"model.{name}": value for name, value in (one, other)})


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"rotations": 6, "rotation_range": (45.0, 45.0)}, "rotations=6 and rotation_range=(45.0, 45.0)"),
        ({"rotation_range": (0.0, 90.0)}, "rotations=1 and rotation_range=(0.0, 90.0)"),
        ({"scales": 3}, "scales=3 and scale_range=(1.0, 1.0)"),
        ({"scale_range": (0.5, 2.0)}, "scales=1 and scale_range=(0.5, 2.0)"),
    ],
)
def test_a_range_that_nothing_is_spread_over_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(PcdnetError) as caught:
        Config().with_fields({f"model.{name}": value for name, value in fields.items()})
    assert str(caught.value) == f"{complaint} contradict each other; use two or more between two ends, or 1"
    assert len(caught.value.settings) == 2


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"rotations": 1024, "mirror": True}, "rotations=1024 and mirror=True make more than 1,024 poses"),
        ({"scales": 1024, "mirror": True}, "scales=1024 and mirror=True make more than 1,024 poses"),
        ({"rotations": 100, "scales": 100}, "rotations=100 and scales=100 make more than 1,024 poses"),
        (
            {"rotations": 100, "scales": 10, "mirror": True},
            "rotations=100 and scales=10 and mirror=True make more than 1,024 poses of a prototype",
        ),
        (
            {"num_prototypes": 100, "rotations": 1000},
            "num_prototypes=100 and rotations=1000 make more than 4,096 turned, scaled and mirrored prototypes",
        ),
        ({"num_prototypes": 200, "scales": 400}, "num_prototypes=200 and scales=400 make more than 4,096 turned,"),
        (
            {"prototype_size": (999, 999), "rotations": 20},
            "num_prototypes=19 and rotations=20 make more than 268,435,456 pixels of turned, scaled and mirrored",
        ),
    ],
)
def test_more_poses_than_can_be_computed_are_refused(fields: dict[str, Any], complaint: str) -> None:
    changes = {"scale_range": (0.5, 2.0), **fields} if "scales" in fields else fields
    with pytest.raises(PcdnetError, match=f"^{re.escape(complaint)}.*; use fewer"):
        Config().with_fields({f"model.{name}": value for name, value in changes.items()})


def test_prototypes_in_all_poses_have_room_for_numbers_that_decide_ties() -> None:
    """Each is a prototype of its own in the search, which numbers no more than `MOST_PROTOTYPES`."""
    most = Config().with_fields({"model.num_prototypes": 512, "model.rotations": 4, "model.mirror": True}).model
    assert most.num_prototypes * most.poses == MOST_PROTOTYPES
    with pytest.raises(PcdnetError, match="num_prototypes=513 and rotations=4 make more than 4,096 turned"):
        dataclasses.replace(most, num_prototypes=513)


def test_the_largest_bank_without_poses_is_as_large_as_ever() -> None:
    model = Config().with_fields({"model.num_prototypes": 1024, "model.prototype_size": (512, 512)}).model
    assert (model.poses, model.posed) == (1, False)


@given(configs)
def test_poses_are_angles_times_sizes_and_mirror_images(config: Config) -> None:
    model = config.model
    assert model.poses == model.rotations * model.scales * (2 if model.mirror else 1)
    assert model.posed == (model.rotations > 1 or model.scales > 1 or model.mirror or model.subpixel)


def section_with(kind: type[Any], name: str, value: Any) -> Any:
    """A section as Python makes it where nobody checks types, as the tests do."""
    section = object.__new__(kind)
    for field, usual in dataclasses.asdict(kind()).items():
        object.__setattr__(section, field, value if field == name else usual)
    section.__post_init__()
    return section


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("model.max_objects", value) for value in (2.0, "3", True, None, np.array([1, 2]))),
        *(("model.prototype_size", value) for value in ((25.0, 25), 25, (25,), "25")),
        ("model.background", "grey"),
        ("model.depth_order", 1),
        ("model.max_colour", 10**400),
        ("train.learning_rate", "0.1"),
        ("train.settle", None),
    ],
)
def test_a_value_of_another_type_is_refused_in_python_too(field: str, value: Any) -> None:
    section, _, name = field.partition(".")
    with pytest.raises(PcdnetError, match=rf"^{name}(=.*)? cannot be used; use ") as caught:
        section_with(SECTIONS[section], name, value)
    assert caught.value.settings[0].name == field


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("max_objects", np.int64(5), 5),
        ("max_colour", np.float32(2), 2.0),
        ("max_colour", 2, 2.0),
        ("depth_order", np.False_, False),
        ("prototype_size", list(np.array([9, 7])), (9, 7)),
    ],
)
def test_numbers_of_numpy_become_those_of_python(name: str, value: Any, plain: Any) -> None:
    section = section_with(SECTIONS["model"], name, value)
    assert repr(getattr(section, name)) == repr(plain)
    assert Config.from_toml(Config(model=section).to_toml()).model == section


@given(st.sampled_from(list(PRESETS.values())), st.floats(1, 1e9))
def test_a_model_for_larger_images_is_as_much_as_can_be_computed(config: Config, share: float) -> None:
    scaled = config.model.scaled(share)
    assert scaled.max_objects >= min(share * config.model.max_objects, 2**14)
    assert scaled.peaks_per_prototype >= min(share * config.model.peaks_per_prototype, 2**10)
    assert config.model.scaled(1) == config.model


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        PcdnetError, match=r"cannot read the configuration .*missing\.toml: No such file or directory; give"
    ):
        Config.load(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PcdnetError, match=r"cannot read the configuration .*binary\.toml"):
        Config.load(tmp_path / "binary.toml")
