"""Laws of search spaces: what can be tried is understood, and what cannot is refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pcdnet.config import PRESETS, Config
from pcdnet.errors import PcdnetError
from pcdnet.training.tuning.space import DEFAULT, Choices, Range, SearchSpace


def entry(table: Any, name: str = "train.learning_rate") -> Range | Choices:
    return SearchSpace.from_tables({name: table}).entries[name]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_default_space_fits_every_preset_and_has_what_the_paper_tuned(preset: str) -> None:
    space = SearchSpace.load(DEFAULT)
    space.check(Config.preset(preset))
    assert {"train.learning_rate", "train.decay", "train.decay_epochs", "loss.l1", "loss.tv"} <= space.entries.keys()


def test_sections_and_names_with_their_section_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text("[loss.tv]\nlow = 0\nhigh = 1\n[model.prototype_size]\nchoices = [[9, 9], [5, 7]]\n")
    tables = {"loss.tv": {"low": 0.0, "high": 1.0}, "model": {"prototype_size": {"choices": [(9, 9), (5, 7)]}}}
    space = SearchSpace.load(path)
    assert space == SearchSpace.from_tables(tables)
    assert space.entries["model.prototype_size"] == Choices(values=((9, 9), (5, 7)))


def test_a_space_survives_json() -> None:
    space = SearchSpace.load(DEFAULT)
    assert SearchSpace.from_tables(space.to_tables()) == space
    odd = SearchSpace.from_tables({"model.prototype_size": {"choices": [[9, 9], [5, 7]]}})
    assert SearchSpace.from_tables(odd.to_tables()) == odd


def test_whole_fields_are_searched_in_whole_numbers() -> None:
    assert entry({"low": 1, "high": 4}, "train.decay_epochs") == Range(low=1, high=4, whole=True)
    assert entry({"low": 1, "high": 4, "log": True}) == Range(low=1.0, high=4.0, log=True)


def test_the_nearest_value_is_in_the_space() -> None:
    numbers = Range(low=2, high=5)
    assert [numbers.nearest(value) for value in (0, 2.5, 9)] == [2, 2.5, 5]
    assert [Choices(values=("a", "b")).nearest(value) for value in ("b", "c")] == ["b", "a"]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({}, "names nothing to search"),
        ({"trian": {}}, "unknown section [trian] (did you mean train?)"),
        ({"train": 3}, "write a table [train.FIELD]"),
        ({"train": {"learning_rat": {"low": 1, "high": 2}}}, "(did you mean train.learning_rate?); leave it out"),
        ({"train.seed": {"low": 1, "high": 2}}, "luckiest seed"),
        ({"train.validate_every": {"low": 1, "high": 2}}, "compared at their validations"),
        ({"loss.tv": 0.1}, "give it low and high, or choices"),
        ({"loss.tv": {}}, "has nothing for loss.tv; give it low and high"),
        ({"loss.tv": {"low": 1}}, "has low for loss.tv; give it low and high"),
        ({"loss.tv": {"low": 0, "high": 1, "stride": 1}}, "give it low and high"),
        ({"loss.tv": {"low": 2, "high": 1}}, "from 2.0 to 1.0; make low less than high"),
        ({"loss.tv": {"low": 1, "high": 1}}, "make low less than high"),
        ({"loss.tv": {"low": 0, "high": 1, "log": True}}, "make low more than 0, or log false"),
        ({"loss.tv": {"low": 0, "high": 1, "log": 1}}, "use true or false"),
        ({"loss.tv": {"low": "0", "high": 1}}, "low of loss.tv = '0'; use a number"),
        ({"loss.tv": {"low": 0, "high": float("nan")}}, "high of loss.tv = nan; use a number"),
        ({"train.batch": {"low": 1.5, "high": 4}}, "low of train.batch = 1.5; use a whole number"),
        ({"model.colour": {"low": 0, "high": 1}}, "for model.colour; give it choices"),
        ({"model.depth_order": {"low": 0, "high": 1}}, "give it choices"),
        ({"model.colour": {"choices": ["network"]}}, "give a list of two or more values"),
        ({"model.colour": {"choices": "network"}}, "give a list of two or more values"),
        ({"model.colour": {"choices": ["network", "paint"]}}, "use 'least_squares' or 'network' or 'none'"),
        ({"model.colour": {"choices": ["none", "none"]}}, "names a choice of model.colour twice"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_a_sentence(tables: dict[str, Any], words: str) -> None:
    with pytest.raises(PcdnetError) as refused:
        SearchSpace.from_tables(tables, "space.toml")
    assert words in str(refused.value)
    assert str(refused.value).startswith("space.toml ")
    assert "; " in str(refused.value)


@pytest.mark.parametrize("table", [{"low": 0.0, "high": 1.0}, {"choices": [0.1, -0.1]}])
def test_values_that_no_configuration_can_have_are_refused(table: dict[str, Any]) -> None:
    space = SearchSpace.from_tables({"train.learning_rate": table})
    with pytest.raises(PcdnetError, match="learning_rate=.* cannot be used; use a number above 0"):
        space.check(Config())


def test_files_that_hold_no_space_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    with pytest.raises(PcdnetError, match="cannot read the search space .*; give a readable TOML file"):
        SearchSpace.load(path)
    path.write_text("[train")
    with pytest.raises(PcdnetError, match="is not valid TOML: .*; fix that line"):
        SearchSpace.load(path)


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 50_000])
def test_numbers_and_brackets_without_end_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises(PcdnetError, match="is not valid TOML: .*; fix that line"):
        SearchSpace.load(tmp_path / "space.toml")
