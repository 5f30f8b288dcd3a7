"""Laws of kinds: every object has one, by its prototype's name and its nearest colour, and no two are called alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.errors import PcdnetError
from pcdnet.kinds import Kinds
from pcdnet.names import Names

RED, GREEN, BLUE = (0.9, 0.1, 0.1), (0.1, 0.8, 0.2), (0.1, 0.2, 0.9)
COLOURS = st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=1, max_size=6).map(tuple)
WORDS = st.sampled_from(["spade", "spade red", "prototype 1", "red"])


def of(kinds: Kinds, *objects: tuple[int, tuple[float, ...]]) -> list[int]:
    """The kinds of objects: prototypes and colours."""
    prototypes, colours = zip(*objects, strict=True)
    kept: list[int] = kinds.ids(np.array(prototypes), np.array(colours)).tolist()
    return kept


def test_without_names_and_colours_kinds_are_the_prototypes() -> None:
    kinds = Kinds(Names(count=3))
    assert [(kind.id, kind.name, kind.prototypes, kind.colour) for kind in kinds] == [
        (p, f"prototype {p}", (p,), None) for p in range(3)
    ]
    assert of(kinds, (2, RED), (0, GREEN), (1, BLUE)) == [2, 0, 1]


def test_prototypes_of_one_name_are_one_kind_at_the_place_of_the_first() -> None:
    kinds = Kinds(Names(count=4, given={1: "spade", 3: "spade"}))
    assert [(kind.name, kind.prototypes) for kind in kinds] == [
        ("prototype 0", (0,)),
        ("spade", (1, 3)),
        ("prototype 2", (2,)),
    ]
    assert of(kinds, (3, RED), (1, GREEN), (2, BLUE)) == [1, 1, 2]
    # A person may call a prototype as another one is called by its number.
    assert len(Kinds(Names(count=4, given={3: "prototype 0"}))) == 3


def test_a_prototype_in_two_colours_is_two_kinds_and_the_nearest_colour_counts() -> None:
    kinds = Kinds(Names(count=2, given={0: "paddle"}, colours={0: (RED, GREEN)}))
    assert [(kind.name, kind.group, kind.colour) for kind in kinds] == [
        ("paddle red", "paddle", RED),
        ("paddle green", "paddle", GREEN),
        ("prototype 1", "prototype 1", None),
    ]
    assert of(kinds, (0, (0.7, 0.2, 0.2)), (0, (0.2, 0.5, 0.3)), (1, RED)) == [0, 1, 2]


def test_an_object_that_comes_out_darker_keeps_its_kind() -> None:
    yellow, brown = (0.82, 0.82, 0.25), (0.63, 0.29, 0.18)
    kinds = Kinds(Names(count=1, colours={0: (yellow, brown)}))
    for dark in (1.0, 0.8, 0.6):
        assert of(kinds, *((0, tuple(dark * value for value in colour)) for colour in (yellow, brown))) == [0, 1]


def test_grey_objects_are_told_apart_by_brightness() -> None:
    kinds = Kinds(Names(count=1, colours={0: ((0.3,), (0.95,))}))
    assert [kind.name for kind in kinds] == ["prototype 0 grey", "prototype 0 white"]
    assert of(kinds, (0, (0.5,)), (0, (0.7,))) == [0, 1]


def test_prototypes_of_one_name_share_their_colours_and_colours_that_look_the_same_are_one() -> None:
    names = Names(
        count=3, given=dict.fromkeys((0, 1, 2), "spade"), colours={0: (RED, GREEN), 2: ((0.88, 0.1, 0.1), BLUE)}
    )
    kinds = Kinds(names)
    assert [kind.name for kind in kinds] == ["spade red", "spade green", "spade blue"]
    assert all(kind.prototypes == (0, 1, 2) for kind in kinds)
    assert of(kinds, (0, BLUE), (1, GREEN), (2, RED)) == [2, 1, 0]


def test_one_colour_alone_makes_no_other_kind() -> None:
    assert [(kind.name, kind.colour) for kind in Kinds(Names(count=1, colours={0: (RED,)}))] == [("prototype 0", None)]


def test_colours_of_another_model_are_refused() -> None:
    with pytest.raises(PcdnetError, match="colours of 1 values and kinds of 3"):
        of(Kinds(Names(count=1, colours={0: (RED, GREEN)})), (0, (0.5,)))


@given(st.dictionaries(st.integers(0, 4), WORDS), st.dictionaries(st.integers(0, 4), COLOURS))
def test_kinds_are_numbered_and_named_once_and_every_prototype_has_some(
    given: dict[int, str], colours: dict[int, tuple[tuple[float, ...], ...]]
) -> None:
    names = Names(count=5, given=given, colours=colours)
    kinds = Kinds(names)
    assert [kind.id for kind in kinds] == list(range(len(kinds)))
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert {p for kind in kinds for p in kind.prototypes} == set(range(5))
    objects = [(p, colour) for p in range(5) for colour in (RED, GREEN, *colours.get(p, ()))]
    for (p, _), kind in zip(objects, of(kinds, *objects), strict=True):
        assert p in kinds[kind].prototypes
        assert kinds[kind].group == names[p]


def test_no_object_has_no_kind() -> None:
    assert Kinds(Names(count=1)).ids(np.zeros(0, np.int32), np.zeros((0, 3))).shape == (0,)
