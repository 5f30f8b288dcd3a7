"""Laws of the benchmark of poses: what is a convention costs nothing, and every fault is seen."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from benchmarks import poses
from benchmarks.poses import Kind, Pairs, Posed, figures, kinds_of, pairs, parsed, right_poses, scored

from pcdnet.data import multi_dsprites, symbols
from pcdnet.data.opening import open_data
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes

SETS: dict[str, Callable[[], Scenes]] = {
    "multi-dsprites": lambda: multi_dsprites.generate(60, 4),
    "symbols:quarter": lambda: symbols.sheet(512, 50, 4, "quarter"),
    "symbols:any": lambda: symbols.generate(12, 4, "any"),
}
"""Small ones of all that is scored."""


def explained(scenes: Scenes, turn: float = 0.0, ratio: float = 1.0) -> list[Any]:
    """All that there is, found as it is, front to back, by prototypes that learned their objects turned and larger."""
    assert scenes.labels is not None
    assert scenes.boxes is not None
    found = []
    for labels, boxes in zip(scenes.labels, scenes.boxes, strict=True):
        assert boxes.poses is not None
        n, true = len(boxes), boxes.poses[::-1]
        kinds = boxes.kinds[::-1]
        found.append(
            SimpleNamespace(
                prototype_ids=kinds + 3,
                error_reductions=np.arange(n, 0, -1).astype(np.float32),
                instances=np.where(labels > 0, n + 1 - labels.astype(np.int32), 0),
                angles=(true[:, 2] + turn * (1 + kinds)) % 360,
                scales=true[:, 3] * ratio / (1 + kinds),
                mirrored=np.zeros(n, bool),
            )
        )
    return found


def scores(found: list[Any], scenes: Scenes, data: str) -> dict[str, Any]:
    """The figures of what was found."""
    return figures(pairs(cast("list[Posed]", found), scenes), kinds_of(data))


@pytest.mark.parametrize("data", list(SETS))
def test_conventions_of_prototypes_cost_nothing(data: str) -> None:
    scenes = SETS[data]()
    assert scenes.boxes is not None
    reached = scores(explained(scenes, turn=17.3, ratio=2.5), scenes, data)
    there = np.bincount(np.concatenate([boxes.kinds for boxes in scenes.boxes]))
    assert reached["f1"] == reached["kinds_right"] == reached["scale_right"] == 1
    # Kinds that are there once or twice cannot tell what is upright.
    symmetric = np.array([kind.symmetry > 1 for kind in kinds_of(data)])[: len(there)]
    telling = there[(there >= poses.FEWEST) & ~symmetric].sum() / there[~symmetric].sum()
    assert reached["turned_right"] == reached["turned_right_of_all"] == pytest.approx(telling)
    assert telling > 0.8
    assert reached["kinds_found"] == reached["kinds_there"] == reached["counts_exact"] == (there > 0).sum()
    assert reached["count_error"] == 0
    assert reached["prototypes_stand_for"] == {
        str(kind + 3): scenes.kinds[kind] for kind in np.flatnonzero(there).tolist()
    }


def test_wrong_angles_scales_and_kinds_are_seen() -> None:
    scenes = SETS["multi-dsprites"]()
    heart = multi_dsprites.KINDS.index("heart")
    found = explained(scenes)
    hearts = [(thing, n) for thing in found for n in np.flatnonzero(thing.prototype_ids == heart + 3)]
    for thing, n in hearts[::4]:
        thing.angles[n] += 90  # a square would not show it
    for thing, n in hearts[1::4]:
        thing.scales[n] *= 1.3
    reached = scores(found, scenes, "multi-dsprites")
    wrong = len(hearts[::4])
    assert reached["turned_right"] == reached["angles_by_kind"]["heart"] == pytest.approx(1 - wrong / len(hearts))
    assert reached["angles_by_kind"]["square"] == reached["angles_by_kind"]["ellipse"] == 1
    assert 0.8 < reached["scale_right"] < 1
    thing, n = hearts[2]
    thing.prototype_ids[n] = 3
    worse = scores(found, scenes, "multi-dsprites")
    assert worse["turned_right"] == pytest.approx(reached["turned_right"] - 1 / len(hearts))
    assert worse["kinds_right"] < 1
    assert (worse["count_error"], worse["counts_exact"]) == (2, 1)


def test_what_is_missed_or_found_where_nothing_is_counts() -> None:
    scenes = SETS["multi-dsprites"]()
    assert scenes.labels is not None
    found = explained(scenes)
    objects = sum(len(thing.prototype_ids) for thing in found)
    first = found[0]
    first.instances[first.instances == 1] = 0
    reached = scores(found, scenes, "multi-dsprites")
    assert reached["f1"] == pytest.approx(2 * (objects - 1) / (2 * objects - 1))
    assert reached["count_error"] == 1
    first.instances[:3, :3] = 1  # where nothing is
    assert scores(found, scenes, "multi-dsprites")["f1"] == pytest.approx((objects - 1) / objects)
    nothing = [
        SimpleNamespace(**{**vars(thing), "instances": np.zeros_like(thing.instances)}) for thing in explained(scenes)
    ]
    empty = scores(nothing, scenes, "multi-dsprites")
    assert empty["f1"] == empty["turned_right"] == empty["kinds_right"] == empty["counts_exact"] == 0
    assert empty["count_error"] == objects


def matches(angles: list[float], mirrored: list[bool]) -> Pairs:
    """Objects of one prototype that truly lie upright, of size 1, and are not mirrored."""
    n = len(angles)
    zeros = np.zeros(n, np.int64)
    return Pairs(
        prototypes=zeros,
        kinds=zeros,
        found=np.array([angles, [1.0] * n, mirrored], np.float64).T,
        true=np.array([[0.0, 1.0, 0.0]] * n),
        all_prototypes=zeros,
        all_kinds=zeros,
    )


def test_mirrored_objects_have_an_upright_of_their_own_unless_the_kind_is_chiral() -> None:
    known = matches([30, 31, 29, 30, -30, -30, -29], [False] * 4 + [True] * 3)
    assert right_poses(known, [Kind("heart", 1, chiral=False)])[0].all()
    assert right_poses(known, [Kind("key", 1, chiral=True)])[0].tolist() == [True] * 4 + [False] * 3
    always = matches([-30, -30, -29], [True] * 3)  # the prototype itself is the mirror image
    assert right_poses(always, [Kind("key", 1, chiral=True)])[0].all()


def test_too_few_objects_cannot_tell_what_is_upright() -> None:
    for n in (1, 2, 3):
        right, _ = right_poses(matches([50.0] * n, [False] * n), [Kind("key", 1, chiral=True)])
        assert right.tolist() == [n >= poses.FEWEST] * n


def test_a_seed_is_learned_and_scored_on_what_was_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poses, "training_data", lambda data, seed: (open_data(data, count=5, seed=seed),) * 2)
    monkeypatch.setattr(poses, "SCENES", 20)
    seen: list[Any] = []

    class Perfect:
        """Knows the ground truth of what it is to be scored on."""

        def decompose_all(self, images: np.ndarray) -> list[Any]:
            """All as it is."""
            scenes = poses.unseen("multi-dsprites", 7)
            assert np.array_equal(scenes.images, images)
            return explained(scenes)

        def bank(self) -> Any:
            """Three prototypes."""
            return SimpleNamespace(masks=[0, 1, 2])

    def learn(train: Scenes, preset: str | None, **given: Any) -> PCDNet:
        seen.append((len(train), preset, given["changes"]))
        return cast("PCDNet", Perfect())

    row = poses.one("multi-dsprites", "tetrominoes", {"model.max_objects": 5}, 7, learn)
    assert seen == [(5, "tetrominoes", {"model.max_objects": 5, "train.seed": 7})]
    assert row["seed"] == 7
    assert row["fg_ari"] == row["f1"] == 1
    assert row["prototypes"] == 3
    assert row["images_per_second"] > 0
    assert scored(cast("PCDNet", Perfect()), "multi-dsprites", poses.unseen("multi-dsprites", 7))["ari"] == 1


def test_sheets_are_of_the_way_that_was_learned() -> None:
    made = poses.unseen("symbols:quarter", 1)
    assert made.images.shape == (1, poses.SHEET, poses.SHEET, 1)
    assert "150 symbols, quarter" in made.name
    assert "upright" in poses.unseen("symbols", 1).name


def test_changes_are_values_of_toml() -> None:
    changes = ["train.steps=600", 'model.poses="quarter"', "model.prototype_size=[32, 32]", "model.depth_order = false"]
    assert parsed(changes) == {
        "train.steps": 600,
        "model.poses": "quarter",
        "model.prototype_size": (32, 32),
        "model.depth_order": False,
    }
