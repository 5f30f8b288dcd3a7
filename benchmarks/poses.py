"""Poses: learn objects that lie turned and in several sizes, and score what was found: kinds, places, angles, sizes.

usage: python -m benchmarks.poses DATA [--seeds 0 1 2] [--preset PRESET] [--set model.max_objects=5 ...]

multi-dsprites                2,000 scenes to learn from, scored on 320 others
symbols:quarter, symbols:any  1,000 parts of drawings to learn from, scored on one sheet of 1024x1024 with 150 symbols

A preset that is called like the data is used if there is one; without any, all is chosen from the images. A found
object is a true one from an IoU of 0.5 of their visible pixels on, and a prototype stands for the kind that it is
matched with most often. Its angle is right within 9 degrees, and its scale within 10 %, after what counts as upright
and as size 1 was taken off: one turn and one ratio for each prototype, and another turn for it mirrored, if at least
FEWEST objects tell them.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Int64
from rich.console import Console
from rich.table import Table

from benchmarks.lines import renamed
from benchmarks.provenance import Start
from pcdnet.config import PRESETS
from pcdnet.data import multi_dsprites, symbols
from pcdnet.data.opening import open_data, training_data
from pcdnet.data.sources import TEST_SEED
from pcdnet.metrics import angle_errors, mask_iou, match, score, typical_ratio, upright
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes
from pcdnet.training.fit import fit

ANGLE, SCALE = 9.0, 0.1
"""Degrees by which an angle may be off, and the part by which a scale may."""
FEWEST = 3
"""Objects of a prototype that tell what is upright: of a single one the angle would always be right."""
SCENES = 320
"""Scenes to score on; of symbols there is one sheet."""
SHEET, ON_SHEET = 1024, 150
"""Height and width of the sheet, and symbols on it."""
DATA = ("multi-dsprites", "symbols", "symbols:quarter", "symbols:any")
"""What can be learned; upright symbols for comparison."""


class Posed(Protocol):
    """What is looked at of a decomposition."""

    @property
    def prototype_ids(self) -> Int32[np.ndarray, "n"]:
        """The prototype of every object."""

    @property
    def error_reductions(self) -> Float32[np.ndarray, "n"]:
        """How much speaks for every object."""

    @property
    def instances(self) -> Int32[np.ndarray, "H W"]:
        """The object that each pixel belongs to: 0 is background, n + 1 the n-th object."""

    @property
    def angles(self) -> Float32[np.ndarray, "n"]:
        """Degrees, counter-clockwise."""

    @property
    def scales(self) -> Float32[np.ndarray, "n"]:
        """1 as the prototype is."""

    @property
    def mirrored(self) -> Bool[np.ndarray, "n"]:
        """Whether left and right of the prototype are swapped, before it is turned."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a kind of true objects."""

    name: str
    """What it is called."""
    symmetry: int
    """How many turns bring it onto itself."""
    chiral: bool
    """Whether its mirror image is another shape; then it must not be found mirrored now and then."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pairs:
    """The found objects that are true ones, of all scenes, and how many there are of each."""

    prototypes: Int64[np.ndarray, "n"]
    """The prototype of each found object."""
    kinds: Int64[np.ndarray, "n"]
    """The kind of each true object."""
    found: Float64[np.ndarray, "n 3"]
    """Angle, scale, and whether it is mirrored, of each found object."""
    true: Float64[np.ndarray, "n 3"]
    """The same of each true object."""
    all_prototypes: Int64[np.ndarray, "f"]
    """The prototypes of all objects that were found, whether they are true or not."""
    all_kinds: Int64[np.ndarray, "t"]
    """The kinds of all true objects, whether they were found or not."""

    def stands_for(self) -> dict[int, int]:
        """The kind that each prototype is matched with most often; prototypes that are never matched have none."""
        counts = {p: np.bincount(self.kinds[self.prototypes == p]) for p in np.unique(self.prototypes).tolist()}
        return {prototype: int(times.argmax()) for prototype, times in counts.items()}


def pairs(found: Sequence[Posed], scenes: Scenes) -> Pairs:
    """Match what was found with the ground truth, scene by scene."""
    if scenes.labels is None or scenes.boxes is None:
        raise AssertionError("scenes with poses have labels and boxes")
    rows: list[list[float]] = []
    every: list[int] = []
    for thing, labels, boxes in zip(found, scenes.labels, scenes.boxes, strict=True):
        seen = np.unique(thing.instances[thing.instances > 0]) - 1
        worth, counted = thing.error_reductions[seen], np.ones(len(boxes), bool)
        every += thing.prototype_ids[seen].tolist()
        for n, partner in zip(seen, match(mask_iou(labels, thing.instances).T, worth, counted), strict=True):
            if partner >= 0 and boxes.poses is not None:
                ours = [thing.angles[n], thing.scales[n], thing.mirrored[n]]
                rows.append([thing.prototype_ids[n], boxes.kinds[partner], *ours, *boxes.poses[partner, 2:]])
    table = np.array(rows, np.float64).reshape(-1, 8)
    return Pairs(
        prototypes=table[:, 0].astype(np.int64),
        kinds=table[:, 1].astype(np.int64),
        found=table[:, 2:5],
        true=table[:, 5:],
        all_prototypes=np.array(every, np.int64),
        all_kinds=np.concatenate([boxes.kinds for boxes in scenes.boxes]).astype(np.int64),
    )


def right_poses(
    known: Pairs, kinds: Sequence[Kind], angle: float = ANGLE, scale: float = SCALE
) -> tuple[Bool[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
    """Whether the angle, and whether the scale, of each matched object is right; neither where its kind is wrong."""
    angles, scales = np.zeros(len(known.kinds), bool), np.zeros(len(known.kinds), bool)
    mirrored = known.found[:, 2] != known.true[:, 2]
    for prototype, number in known.stands_for().items():
        kind = kinds[number]
        own = np.flatnonzero((known.prototypes == prototype) & (known.kinds == number))
        ratios = known.found[own, 1] / known.true[own, 1]
        scales[own] = abs(ratios / typical_ratio(known.found[own, 1], known.true[own, 1]) - 1) <= scale
        usual = mirrored[own].mean() > 0.5
        for swapped in (usual,) if kind.chiral else (False, True):
            group = own[mirrored[own] == swapped]
            if len(group) >= FEWEST:
                ours, theirs = known.found[group, 0], known.true[group, 0]
                turn = upright(ours, theirs, kind.symmetry)
                angles[group] = angle_errors(ours - turn, theirs, kind.symmetry) <= angle
    return angles, scales


def figures(known: Pairs, kinds: Sequence[Kind]) -> dict[str, Any]:
    """All that is scored object by object."""
    stands_for = known.stands_for()
    angles, scales = right_poses(known, kinds)
    kind_of = np.array([stands_for[p] for p in known.prototypes.tolist()], np.int64)
    claimed = np.array([stands_for.get(p, len(kinds)) for p in known.all_prototypes.tolist()], np.int64)
    counts = np.bincount(claimed, minlength=len(kinds) + 1)
    true = np.bincount(known.all_kinds, minlength=len(kinds))
    oriented = np.array([kind.symmetry == 1 for kind in kinds])
    one_way, all_one_way = oriented[known.kinds], int(oriented[known.all_kinds].sum())
    return {
        "f1": 2 * len(known.kinds) / max(1, len(known.all_prototypes) + len(known.all_kinds)),
        "kinds_right": _share(kind_of == known.kinds),
        "kinds_found": len(set(stands_for.values())),
        "count_error": int(abs(counts[:-1] - true).sum() + counts[-1]),
        "counts_exact": int((counts[:-1] == true)[true > 0].sum()),
        "kinds_there": int((true > 0).sum()),
        "turned_right": _share(angles[one_way]),
        "turned_right_of_all": float(angles[one_way].sum() / max(1, all_one_way)),
        "scale_right": _share(scales[kind_of == known.kinds]),
        "angles_by_kind": {kind.name: _share(angles[known.kinds == n]) for n, kind in enumerate(kinds) if true[n]},
        "prototypes_stand_for": {str(p): kinds[k].name for p, k in sorted(stands_for.items())},
    }


def _share(right: Bool[np.ndarray, "n"]) -> float:
    """The share of what is right; 0 where nothing could be."""
    return float(right.mean()) if len(right) else 0.0


def kinds_of(data: str) -> list[Kind]:
    """The kinds of true objects."""
    if data == "multi-dsprites":
        known = zip(multi_dsprites.KINDS, multi_dsprites.SYMMETRIES, strict=True)
        return [Kind(name, symmetry, chiral=False) for name, symmetry in known]
    return [Kind(name, symbol.symmetry, symbol.chiral) for name, symbol in symbols.SYMBOLS.items()]


def unseen(data: str, seed: int) -> Scenes:
    """What a model is scored on."""
    if data == "multi-dsprites":
        return open_data(data, count=SCENES, seed=TEST_SEED + seed)
    turned = data.partition(":")[2] or "upright"
    return symbols.sheet(SHEET, ON_SHEET, TEST_SEED + seed, turned)


def scored(model: PCDNet, data: str, scenes: Scenes) -> dict[str, Any]:
    """Decompose and score; all figures but those of the training."""
    begun = time.perf_counter()
    found = model.decompose_all(np.asarray(scenes.images))
    taken = time.perf_counter() - begun
    assert scenes.labels is not None
    known = pairs(cast("Sequence[Posed]", found), scenes)
    whole = score(scenes.labels, [thing.instances for thing in found])
    return {
        "fg_ari": whole.fg_ari,
        "ari": whole.ari,
        **figures(known, kinds_of(data)),
        "objects": len(known.all_prototypes),
        "prototypes": len(model.bank().masks),
        "images_per_second": len(scenes) / taken,
    }


def one(data: str, preset: str | None, changes: dict[str, Any], seed: int, learn: Callable[..., PCDNet] = fit) -> Any:
    """Train one seed; all figures."""
    train, valid = training_data(data, seed=seed)
    begun, busy = time.perf_counter(), time.process_time()
    model = learn(train, preset, changes={**changes, "train.seed": seed}, validation=valid, quiet=True)
    taken, busy = time.perf_counter() - begun, time.process_time() - busy
    figures = scored(model, data, unseen(data, seed))
    return {"seed": seed, **figures, "minutes": taken / 60, "core_minutes": busy / 60}


def parsed(changes: Sequence[str]) -> dict[str, Any]:
    """Fields by name, from section.field=value with a value as TOML has it."""
    fields: dict[str, Any] = {}
    for change in changes:
        name, _, value = change.partition("=")
        plain = tomllib.loads(f"value = {value}")["value"]
        fields[name.strip()] = tuple(plain) if isinstance(plain, list) else plain
    return fields


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.poses", description=__doc__, formatter_class=form)
    parser.add_argument("data", choices=DATA)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--preset", choices=list(PRESETS), help="by default the one that is called like the data")
    parser.add_argument("--set", nargs="*", default=[], help="fields to change, as section.field=value")
    return parser


def main() -> None:
    """Print a table row by row, then one JSON line."""
    start, asked = Start.now(), parser().parse_args()
    changes = [renamed(change) for change in asked.set]
    preset = asked.preset or (asked.data if asked.data in PRESETS else None)
    rows = []
    for seed in asked.seeds:
        rows.append(one(asked.data, preset, parsed(changes), seed))
        print(json.dumps(rows[-1]), flush=True)
    table = Table(title=f"{asked.data}, {preset or 'chosen from the images'} {' '.join(changes)}")
    names = [name for name, value in rows[0].items() if isinstance(value, int | float)]
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{row[name]:.4g}" for name in names))
    Console(width=220).print(table)
    start.close({"benchmark": "poses", "preset": asked.data, "from": preset, "set": changes, "rows": rows})


if __name__ == "__main__":
    main()
