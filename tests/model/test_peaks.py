"""Laws of peaks and candidates."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers

from pcdnet.model import peaks as module
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.compiled import reference
from pcdnet.model.geometry import Geometry
from pcdnet.model.localization import PhaseLocalizer
from pcdnet.model.peaks import Candidates, in_portions, propose, top_peaks


def by_phase(images: torch.Tensor, templates: torch.Tensor, geometry: Geometry, peaks: int) -> Candidates:
    maps = PhaseLocalizer(PrototypeBank(templates, torch.ones_like(templates)), geometry).maps(images)
    return propose(in_portions(maps, images, len(templates), geometry), images, len(templates), geometry, peaks)


@given(Y=integers(1, 9), X=integers(1, 9), K=integers(1, 6), levels=integers(1, 5), seed=integers(0, 99))
@settings(deadline=None)
def test_peaks_are_the_highest_local_maxima(Y: int, X: int, K: int, levels: int, seed: int) -> None:
    """Against a literal search; few levels make many ties."""
    rng = torch.Generator().manual_seed(seed)
    maps = torch.randint(levels, (Y, X), generator=rng).float()
    height, row, column = top_peaks(maps, K)
    expected = []
    for y in range(Y):
        for x in range(X):
            near = [(v, u) for v in range(y - 1, y + 2) for u in range(x - 1, x + 2) if 0 <= v < Y and 0 <= u < X]
            if all((maps[v, u], -v, -u) <= (maps[y, x], -y, -x) for v, u in near):
                expected.append(maps[y, x].item())
    expected = sorted(expected, reverse=True)[:K]
    found = height[height > -torch.inf]
    assert found.tolist() == expected
    assert [maps[r, c].item() for r, c in zip(row.tolist(), column.tolist(), strict=True)][: len(expected)] == expected


@given(Y=integers(1, 12), X=integers(1, 12), reach=integers(2, 4), seed=integers(0, 99))
@settings(deadline=None)
def test_peaks_keep_their_distance(Y: int, X: int, reach: int, seed: int) -> None:
    """Of local maxima within reach of each other the highest is left; one without higher neighbours always is."""
    maps = torch.rand(Y, X, generator=torch.Generator().manual_seed(seed))
    height, row, column = top_peaks(maps, 5, reach)
    tops, tops_row, tops_column = top_peaks(maps, Y * X)
    literal = []
    for i in range(int((tops > -torch.inf).sum())):
        near = ((tops_row[:i] - tops_row[i]).abs() <= reach) & ((tops_column[:i] - tops_column[i]).abs() <= reach)
        if not near.any():
            literal.append((int(tops_row[i]), int(tops_column[i])))
    there = height > -torch.inf
    assert list(zip(row[there].tolist(), column[there].tolist(), strict=True)) == literal[:5]


def test_places_are_compared_some_at_a_time_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = torch.rand(3, 2, 20, 30, generator=torch.Generator().manual_seed(0))
    at_once = top_peaks(maps, 9, 3)
    for compared in (1, 6 * 36 * 5):
        monkeypatch.setattr(module, "COMPARED", compared)
        with reference():  # compiled loops compare them one by one
            some_at_a_time = top_peaks(maps, 9, 3)
        for one, other in zip(some_at_a_time, at_once, strict=True):
            assert torch.equal(one, other)


def test_near_identical_shifts_are_one_candidate(rng: torch.Generator) -> None:
    image = torch.zeros(1, 1, 30, 30)
    image[0, 0, 8:14, 9:15] = 1.0
    found = by_phase(image, torch.ones(1, 6, 6), Geometry.for_overhang((30, 30), (6, 6), 0.5), peaks=5)
    places = [
        (r, c) for r, c, e in zip(found.row[0].tolist(), found.column[0].tolist(), found.exists[0], strict=True) if e
    ]
    assert places[0] == (8, 9)
    for i, a in enumerate(places):
        for b in places[:i]:
            assert max(abs(a[0] - b[0]), abs(a[1] - b[1])) > 1


def test_a_flat_image_gives_one_candidate_not_many() -> None:
    found = by_phase(
        torch.full((1, 1, 16, 16), 0.5), torch.ones(1, 4, 4), Geometry.for_overhang((16, 16), (4, 4), 0.0), peaks=4
    )
    places = {
        (r, c) for r, c, e in zip(found.row[0].tolist(), found.column[0].tolist(), found.exists[0], strict=True) if e
    }
    assert len(places) == int(found.exists.sum())


def test_an_object_in_one_channel_is_found_beside_a_busy_channel(rng: torch.Generator) -> None:
    prototype = torch.rand(7, 7, generator=rng)
    image = torch.zeros(1, 3, 32, 32)
    image[0, 1] = torch.rand(32, 32, generator=rng)
    image[0, 2, 11:18, 20:27] = prototype
    found = by_phase(image, prototype[None], Geometry.for_overhang((32, 32), (7, 7), 0.5), peaks=1)
    assert (found.row.item(), found.column.item()) == (11, 20)


@given(H=integers(6, 25), W=integers(6, 25), h=integers(2, 6), w=integers(2, 6))
@settings(deadline=None, max_examples=30)
def test_candidates_never_leave_the_admissible_positions(H: int, W: int, h: int, w: int) -> None:
    rng = torch.Generator().manual_seed(H * W)
    geometry = Geometry.for_overhang((H, W), (h, w), 0.5)
    found = by_phase(torch.rand(2, 1, H, W, generator=rng), torch.rand(3, h, w, generator=rng), geometry, peaks=4)
    assert (found.row >= -(h // 2)).all()
    assert (found.row <= H - h + h // 2).all()
    assert (found.column >= -(w // 2)).all()
    assert (found.column <= W - w + w // 2).all()


def test_chunks_do_not_change_the_candidates(rng: torch.Generator) -> None:
    images, templates = torch.rand(9, 3, 40, 40, generator=rng), torch.rand(30, 12, 12, generator=rng)
    geometry = Geometry.for_overhang((40, 40), (12, 12), 0.5)
    together = by_phase(images, templates, geometry, peaks=3)
    for b in range(9):
        alone = by_phase(images[b : b + 1], templates, geometry, peaks=3)
        assert torch.equal(alone.row[0], together.row[b])
        assert torch.equal(alone.column[0], together.column[b])
