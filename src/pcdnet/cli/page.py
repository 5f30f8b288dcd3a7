"""Page: collect what the report of a run shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from scipy.ndimage import gaussian_filter

import pcdnet
from pcdnet.cli.model import decompose
from pcdnet.cli.origin import ORIGIN, Origin, command
from pcdnet.decomposition import Decomposition
from pcdnet.metrics import foreground_ari
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.report import BankHealth, Exhibit, Report, Sightings, bank_use, write_report
from pcdnet.scene import Scenes
from pcdnet.training.display import clock
from pcdnet.training.evaluation import Evaluation, evaluate
from pcdnet.training.reset import likeness
from pcdnet.training.run import Run

PAGE = "report.html"
SHOWN = 2
"""Scenes of each sort, best, median and worst, that are shown taken apart."""
COUNTED = 320
"""Scenes from which the use of the prototypes is read."""
COLOURS = 6
"""Colours of a prototype's objects that are shown at most."""
NEAR = 0.2
"""Colours nearer than this, in a cube of side 1, are told as one."""
CELLS = 24
"""Cells on the longer side of the maps of where objects were."""


def write_page(folder: Path, model: PCDNet, scenes: Scenes, path: Path | None = None) -> Evaluation:
    """Score a run's model on scenes and write its page, by default into its folder; return the scores.

    How often prototypes are used is counted on these scenes, with the weights that are shown: the averages that
    training keeps are those of its last weights, which need not be the best.
    """
    run = Run.open(folder)
    scores = evaluate(model, scenes)
    counted = scenes.first(COUNTED)
    found = decompose(model, counted.images)
    images = counted.images.astype(np.float32) / 255
    with torch.no_grad():
        bank = model.bank().map(lambda values: values.float().cpu())
    prototypes, masks = bank.prototypes.numpy(), bank.masks.numpy()
    usage, error = bank_use(images, found, len(prototypes))
    splits = np.zeros(len(prototypes), dtype=np.int64)
    metrics = run.metrics()
    for line in metrics:
        if line.get("event") == "split":
            splits[[line["prototype"], line["source"]]] = line["step"]
    report = Report(
        name="/".join(folder.resolve().parts[-2:]),
        data=f"{len(scenes):,} scenes: {scenes.name}",
        training=training_words(metrics),
        scores=scores.to_dict(),
        prototypes=prototypes,
        masks=masks,
        background=None if bank.background is None else bank.background.permute(1, 2, 0).numpy(),
        names=Names.read(folder, len(prototypes)).given,
        health=BankHealth(usage=usage, error=error, likeness=likeness(bank).numpy(), changed=splits),
        sightings=sightings(found, prototypes, masks),
        metrics=metrics,
        gallery=gallery(counted, found),
        ranking=f"{'' if counted.labels is None else 'FG-ARI, then by '}the squared error that is left",
        config=run.config.to_toml(),
        command=command(folder, run.config, _origin(folder)),
        version=pcdnet.__version__,
    )
    write_report(report, path or folder / PAGE)
    return scores


def _origin(folder: Path) -> Origin:
    """What the run was trained on; a placeholder where nothing is written down, as for runs made in Python."""
    return Origin.read(folder) if (folder / ORIGIN).is_file() else Origin(data="DATA")


def training_words(metrics: Sequence[Mapping[str, Any]]) -> str:
    """How many steps training took, and how long; nothing where the metrics do not tell."""
    timed = [line for line in metrics if "seconds" in line]
    return f"{timed[-1]['step']:,} steps in {clock(timed[-1]['seconds'])}" if timed else ""


def gallery(scenes: Scenes, found: Sequence[Decomposition]) -> list[Exhibit]:
    """The scenes that went best, those in the middle, and those that went worst; no scene twice.

    The FG-ARI counts first where it is known, as a scene that is painted well may still be cut wrongly.
    """
    agreement = np.zeros(len(found))
    if scenes.labels is not None:
        pairs = zip(scenes.labels, found, strict=True)
        agreement = np.array([foreground_ari(truth, thing.instances) for truth, thing in pairs])
    order = np.lexsort((np.array([thing.error for thing in found]), -agreement))
    exhibits = []
    for title, index in _picked(order.tolist()):
        note = f"squared error {found[index].error:.3g}, {len(found[index])} objects"
        exhibits.append(
            Exhibit(
                title=title,
                note=note if scenes.labels is None else f"FG-ARI {agreement[index]:.4f}, {note}",
                image=scenes.images[index].astype(np.float32) / 255,
                found=found[index],
            )
        )
    return exhibits


def _picked(order: list[int]) -> Iterator[tuple[str, int]]:
    """The first, middle and last of an order, with what they are called."""
    n, middle = len(order), max(0, (len(order) - SHOWN) // 2)
    places = {"best": range(SHOWN), "worst": range(n - 1, n - 1 - SHOWN, -1), "median": range(middle, middle + SHOWN)}
    taken: dict[str, list[int]] = {}
    used: set[int] = set()
    for title, wanted in places.items():
        taken[title] = [place for place in wanted if 0 <= place < n and place not in used]
        used.update(taken[title])
    for title in ("best", "median", "worst"):
        yield from ((title, order[place]) for place in sorted(taken[title]))


def sightings(
    found: Sequence[Decomposition], prototypes: Float[np.ndarray, "P h w"], masks: Float[np.ndarray, "P h w"]
) -> list[Sightings]:
    """What the objects of every prototype looked like, and where they were."""
    if not any(map(len, found)):
        return [Sightings() for _ in prototypes]
    kinds = np.concatenate([thing.prototype_ids for thing in found])
    colours = np.concatenate([thing.colours for thing in found])
    centres = np.concatenate([thing.positions for thing in found]) + np.array(masks.shape[1:]) / 2
    # A colour multiplies the prototype, so what is seen is the colour times the brightness under the mask.
    inside = masks * (masks > 0.5)
    bright = (prototypes * inside).sum(axis=(1, 2)) / np.maximum(inside.sum(axis=(1, 2)), 1e-6)
    size: tuple[int, int] = found[0].instances.shape
    return [
        Sightings(colours=usual_colours(colours[kinds == p] * bright[p]), places=where(centres[kinds == p], size))
        if (kinds == p).any()
        else Sightings()
        for p in range(len(prototypes))
    ]


def usual_colours(colours: Float[np.ndarray, "n C"]) -> list[tuple[UInt8[np.ndarray, "3"], float]]:
    """The most frequent colours with their shares, most frequent first; those near to each other are one."""
    left = np.broadcast_to(colours.clip(0, 1), (len(colours), 3))
    usual: list[tuple[UInt8[np.ndarray, "3"], float]] = []
    while len(left) and len(usual) < COLOURS:
        _, which, counts = np.unique(np.round(left * 8), axis=0, return_inverse=True, return_counts=True)
        middle = left[which.ravel() == counts.argmax()].mean(axis=0)
        near = np.linalg.norm(left - middle, axis=1) <= NEAR
        colour = np.round(255 * left[near].mean(axis=0)).astype(np.uint8)
        usual.append((colour, float(near.sum()) / len(colours)))
        left = left[~near]
    return sorted(usual, key=lambda pair: -pair[1])


def where(centres: Float[np.ndarray, "n 2"], size: tuple[int, int]) -> Float[np.ndarray, "rows columns"]:
    """How often objects were where, on a coarse, slightly blurred grid; what is outside counts at the border."""
    cell = max(1.0, max(size) / CELLS)
    rows, columns = (max(1, round(side / cell)) for side in size)
    grid = np.zeros((rows, columns))
    places = (centres / np.array(size) * (rows, columns)).astype(int).clip(0, (rows - 1, columns - 1))
    np.add.at(grid, tuple(places.T), 1)
    smooth: Float[np.ndarray, "rows columns"] = gaussian_filter(grid, 1.0, mode="reflect")
    return smooth
