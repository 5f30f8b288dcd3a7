"""Laws of names and colours: what is written is read back, and what could harm an output never becomes a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pcdnet.errors import PcdnetError
from pcdnet.names import LONGEST, MOST_COLOURS, STRONGEST, Names, checked_name

SIGNS = st.characters(exclude_categories=("C", "Z"))
NAMES = st.dictionaries(st.integers(0, 9), st.text(SIGNS, min_size=1, max_size=LONGEST), max_size=10)
VALUES = st.floats(-STRONGEST, STRONGEST)
COLOURS = st.sampled_from([1, 3]).flatmap(
    lambda channels: st.dictionaries(
        st.integers(0, 9), st.lists(st.tuples(*[VALUES] * channels), min_size=1, max_size=MOST_COLOURS).map(tuple)
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES, COLOURS)
def test_names_and_colours_that_are_written_are_read_back(
    tmp_path: Path, given: dict[int, str], colours: dict[int, tuple[tuple[float, ...], ...]]
) -> None:
    Names(count=10, given=given, colours=colours).write(tmp_path)
    assert Names.read(tmp_path, 10) == Names(count=10, given=given, colours=colours)
    assert [path.name for path in tmp_path.iterdir()] == ["names.toml"]


def test_a_prototype_without_a_name_is_called_by_its_number(tmp_path: Path) -> None:
    assert list(Names.read(tmp_path, 2)) == ["prototype 0", "prototype 1"]
    names = Names(count=3, given={1: "L"})
    assert (len(names), *names) == (3, "prototype 0", "L", "prototype 2")
    with pytest.raises(IndexError):
        names[-1]


def test_renaming_changes_one_name_and_an_empty_name_takes_it_away() -> None:
    names = Names(count=3, given={1: "L"})
    assert list(names.renamed(2, "  T  ")) == ["prototype 0", "L", "T"]
    assert list(names.renamed(1, " ")) == ["prototype 0", "prototype 1", "prototype 2"]
    assert names[1] == "L"
    with pytest.raises(PcdnetError, match="there is no prototype 3; give a number of 0 to 2"):
        names.renamed(3, "L")


def test_renaming_and_merging_leave_the_colours_as_they_are() -> None:
    names = Names(count=3, colours={1: ((0.9, 0.1, 0.1), (0.1, 0.1, 0.9))})
    assert names.renamed(1, "L").colours == names.merged([0, 2]).colours == names.colours


def test_merged_prototypes_have_the_given_name_or_the_first_that_there_is_or_the_first_number() -> None:
    names = Names(count=5, given={1: "L", 3: "T"})
    assert list(names.merged([0, 2, 3], " spade ")) == ["spade", "L", "spade", "spade", "prototype 4"]
    assert list(names.merged([4, 3, 1])) == ["prototype 0", "T", "prototype 2", "T", "T"]
    merged = names.merged([2, 0])
    assert list(merged) == ["prototype 2", "L", "prototype 2", "T", "prototype 4"]
    assert merged.first.tolist() == [0, 1, 0, 3, 4]


@pytest.mark.parametrize(
    ("prototypes", "name", "complaint"),
    [
        ([], None, "it takes two prototypes to make one kind of them, and none was given; name more"),
        ([1], None, "and 1 was given"),
        ([1, 1], None, "and 1 1 was given"),
        ([1, 5], None, "there is no prototype 5; give a number of 0 to 4"),
        ([-1, 1], None, "there is no prototype -1"),
        ([0, 1], "  ", "the name of several prototypes is blank"),
        ([0, 1], "a\nb", "which cannot be shown"),
    ],
)
def test_what_cannot_be_merged_is_refused(prototypes: list[int], name: str | None, complaint: str) -> None:
    with pytest.raises(PcdnetError, match=complaint):
        Names(count=5).merged(prototypes, name)


@pytest.mark.parametrize(
    "colours",
    [(), ((),), ((0.1, 0.2),), ((float("nan"),),), ((float("inf"),),), ((0.1,), (1.0,) * 3)],
)
def test_what_is_no_colour_is_refused(colours: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(PcdnetError, match="give|write"):
        Names(count=1, colours={0: colours})


def test_colours_must_be_those_of_the_model(tmp_path: Path) -> None:
    Names(count=4, colours={3: ((0.5,), (0.9,))}).write(tmp_path)
    assert Names.read(tmp_path, 4, 1).colours == {3: ((0.5,), (0.9,))}
    with pytest.raises(PcdnetError, match=r"has colours of 1 values for a model of 3 channels; remove them"):
        Names.read(tmp_path, 4, 3)


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", 'a"b\\c', "=1+1", "été 象 🟦", "prototype 9", "[red]x[/]"]
)
def test_odd_but_harmless_names_are_kept_as_they_are(name: str, tmp_path: Path) -> None:
    Names(count=10, given={3: name}).write(tmp_path)
    assert Names.read(tmp_path, 10)[3] == name


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "\x1b[31m", "a\u202eb", "a\u2028b", "\x7f", "a\u200bb", "\ud800"])
def test_what_cannot_be_shown_is_no_name(name: str) -> None:
    with pytest.raises(PcdnetError, match="which cannot be shown; use letters"):
        checked_name(name)


def test_a_name_has_an_end() -> None:
    assert checked_name("x" * LONGEST) == "x" * LONGEST
    with pytest.raises(PcdnetError, match=f"has 1000 characters; give at most {LONGEST}"):
        checked_name("x" * 1000)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"[names\n", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        (b"x = " + b"[" * 100_000, "not valid TOML"),
        (b"[name]\n0 = 'L'\n", "holds other things than names; write .names."),
        (b"names = 'L'\n", "holds other things than names"),
        (b"[names]\n4 = 'L'\n", "names a prototype '4', but the model's are 0 to 3"),
        (b"[names]\n-1 = 'L'\n", "names a prototype '-1'"),
        (b"[names]\n01 = 'L'\n", "names a prototype '01'"),
        (b"[names]\n\"\xd9\xa3\" = 'L'\n", "names a prototype '\u0663'"),
        (b"[names]\n" + b"9" * 9999 + b" = 'L'\n", "names a prototype '9{20}'"),
        (b"[names]\n0 = 7\n", "names prototype 0 7, which is no text; put it in quotes"),
        (b"[names]\n0.x = 'L'\n", "which is no text"),
        (b'[names]\n0 = "a\\nb"\n', r"cannot be used: the name 'a\\nb' holds"),
        (b"colours = 3\n", "holds other things than names"),
        (b"[colours]\n4 = [[1, 1, 1]]\n", "names a prototype '4', but the model's are 0 to 3"),
        (b"[colours]\n0 = 'red'\n", "cannot be used: the colours 'red' are no list of 1 to 32"),
        (b"[colours]\n0 = []\n", r"the colours \[\] are no list"),
        (b"[colours]\n0 = [" + b"[1]," * 33 + b"]\n", "are no list of 1 to 32"),
        (b"[colours]\n0 = [1, 2, 3]\n", "the colour 1 is not 1 or 3 finite numbers"),
        (b"[colours]\n0 = [[1, 2]]\n", r"the colour \[1, 2\] is not 1 or 3 finite numbers"),
        (b"[colours]\n0 = [[nan]]\n", "not 1 or 3 finite numbers"),
        (b"[colours]\n0 = [[-inf]]\n", "not 1 or 3 finite numbers"),
        (b"[colours]\n0 = [[true]]\n", "not 1 or 3 finite numbers"),
        (b"[colours]\n0 = [[1" + b"0" * 400 + b"]]\n", "not 1 or 3 finite numbers"),
        (b"[colours]\n0 = [[1], [1, 1, 1]]\n", "some colours have 1 value and some have 3"),
        (b"#" * (2**20 + 1), "larger than 1 MiB"),
    ],
)
def test_a_broken_file_is_refused_in_one_sentence(text: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_bytes(text)
    with pytest.raises(PcdnetError, match=complaint) as caught:
        Names.read(tmp_path, 4)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "names.toml").mkdir()
    with pytest.raises(PcdnetError, match=r"names\.toml cannot be read"):
        Names.read(tmp_path, 4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES, st.sets(st.integers(0, 9)))
def test_hidden_prototypes_are_read_back(tmp_path: Path, given: dict[int, str], hidden: set[int]) -> None:
    names = Names(count=10, given=given).hiding(hidden)
    names.write(tmp_path)
    assert Names.read(tmp_path, 10) == names
    assert names.hiding(hidden, hidden=False) == Names(count=10, given=given)


@pytest.mark.parametrize("line", ["hidden = 3", "hidden = [10]", "hidden = [-1]", 'hidden = ["1"]', "hidden = [true]"])
def test_what_is_hidden_is_a_list_of_prototypes(line: str, tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text(f'{line}\n[names]\n"0" = "L"\n', encoding="utf-8")
    with pytest.raises(PcdnetError, match="fix that line"):
        Names.read(tmp_path, 10)
    with pytest.raises(PcdnetError, match="there is no prototype 10"):
        Names(count=10).hiding([10])


def test_names_follow_prototypes_to_other_numbers() -> None:
    names = Names(count=4, given={0: "a", 2: "b"}, colours={2: ((0.5,),), 3: ((0.1,),)}, hidden=frozenset({1, 2}))
    other = names.renumbered({1: 0, 2: 1}, 3)
    assert other == Names(count=3, given={1: "b"}, colours={1: ((0.5,),)}, hidden=frozenset({0, 1}))
