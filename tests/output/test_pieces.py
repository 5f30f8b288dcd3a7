"""Laws of pieces: every image is in one of them, in order, and a piece is known again by its key alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis.strategies import booleans, integers, lists, tuples

from pcdnet.data.inputs import Input
from pcdnet.data.sources import FILES, PICTURE
from pcdnet.output.pieces import LARGEST, MOST_RANGES, SMALLEST, Piece, pieces_of

NPZ = next(source for source in FILES if source.name == "npz")


def one(name: str = "a.png", many: bool = False, content: bytes | None = None) -> Input:
    """An input of that name."""
    source = NPZ if many else PICTURE
    return Input(source=source, name=name, path=Path(name), stamp=(3, 4), title="a", content=content)


@settings(max_examples=20)
@given(lists(tuples(booleans(), integers(1, 9000)), min_size=1, max_size=12))
def test_every_image_is_in_one_piece_in_the_order_of_the_inputs(sizes: list[tuple[bool, int]]) -> None:
    counts = [count if many else 1 for many, count in sizes]
    inputs = [one(str(place), many) for place, (many, _) in enumerate(sizes)]
    pieces = [*pieces_of(inputs, counts)]
    images = [(place, number) for place, count in enumerate(counts) for number in range(count)]
    found: list[tuple[int, int]] = []
    for piece in pieces:
        for (local, begin, end), source in zip(piece.spans, piece.inputs, strict=True):
            place = int(source.name)
            last = counts[place] if end is None else end
            found += [(place, number) for number in range(begin, last)]
            edges = {begin - 1: False, begin: True, last - 1: True, last: end is None}
            assert {number: piece.has(local, number) for number in edges} == edges
            assert piece.share(local, counts[place]) == last - begin
        assert piece.images == sum(piece.share(n, counts[int(each.name)]) for n, each in enumerate(piece.inputs))
    assert found == images


@settings(max_examples=20)
@given(integers(1, 3_000_000))
def test_a_file_of_many_is_cut_into_few_ranges_of_which_the_last_has_no_end(count: int) -> None:
    pieces = [*pieces_of([one(many=True)], [count])]
    assert len(pieces) <= MOST_RANGES
    assert pieces[-1].has(0, 10**9)
    assert not pieces[-1].is_over(0, 10**9)
    for piece in pieces[:-1]:
        assert piece.images >= SMALLEST
        assert piece.is_over(0, piece.spans[0].begin + piece.images)
        assert not piece.is_over(0, piece.spans[0].begin + piece.images - 1)


def test_pictures_are_done_together_and_in_larger_pieces_where_there_are_many() -> None:
    assert [piece.images for piece in pieces_of([one()] * 300, [1] * 300)] == [128, 128, 44]
    assert next(pieces_of([one()] * 300_000, [1] * 300_000)).images == 150
    assert LARGEST * 2000 < 10**9


def test_a_piece_survives_its_way_to_a_worker() -> None:
    inputs = (one("a\ud800.png"), one("b.npz", many=True), one("stdin", content=b"\x00\xff"))
    piece = next(pieces_of(inputs, [1, 20, 1]))
    assert Piece.from_json(piece.to_json()) == piece


def test_other_files_spans_or_settings_have_other_keys() -> None:
    piece = next(pieces_of([one()], [1]))
    others = [
        next(pieces_of([replace(one(), stamp=(3, 5))], [1])),
        next(pieces_of([one("b.png")], [1])),
        next(pieces_of([one(), one()], [1, 1])),
        next(pieces_of([one(many=True)], [9000])),
    ]
    keys = {each.key({"resize": False}) for each in [piece, *others]} | {piece.key({"resize": True})}
    assert len(keys) == 6
    assert piece.key({"a": 1, "b": 2}) == Piece.from_json(piece.to_json()).key({"b": 2, "a": 1})
