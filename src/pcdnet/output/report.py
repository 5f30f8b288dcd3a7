"""Report: a run, or a model, on one HTML page; this collects what `page` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

import pcdnet
from pcdnet.config import Config
from pcdnet.data.notes import to_stderr
from pcdnet.data.opening import to_scenes
from pcdnet.data.sources import TEST_SEED
from pcdnet.data.view import UNCHANGED, View
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import with_ending
from pcdnet.metrics import foreground_ari
from pcdnet.model.network import CHUNK, PCDNet
from pcdnet.output.census import Census, brightness, census, usual_colours
from pcdnet.output.page import BankHealth, Exhibit, Page, Sightings, bank_use, write_page
from pcdnet.progress import clock, phase, track
from pcdnet.run import HELD_OUT, RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.evaluation import Evaluation, evaluate
from pcdnet.training.reset import likeness
from pcdnet.training.suggestions import Suggestion, suggestions, unmerged
from pcdnet.training.verdict import Verdict, judge_images, kept_figures, kept_verdict

SHOWN = 2
"""Scenes of each sort, best, median and worst, that are shown decomposed."""
COUNTED = 320
"""Scenes from which the use of the prototypes is read."""
CELLS = 24
"""Cells on the longer side of the maps of where objects were."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenReport:
    """A report that was written."""

    path: Path
    """Where the page is."""
    data: str
    """What it is about, in words."""
    scores: Evaluation
    """The scores that it shows."""
    census: Census
    """What was found of every kind in the first of the scenes: counts, sizes, colours."""
    verdict: Verdict | None
    """Whether training worked, where that was judged."""
    suggestions: tuple[Suggestion, ...]
    """What to do about it."""

    def to_dict(self) -> dict[str, Any]:
        """All of it in words and numbers, ready for JSON."""
        return {
            "path": str(self.path),
            "data": self.data,
            "verdict": None if self.verdict is None else self.verdict.verdict,
            "reasons": [] if self.verdict is None else list(self.verdict.reasons),
            "suggestions": [suggestion.to_dict() for suggestion in self.suggestions],
            "scores": self.scores.to_dict(),
            "found": self.census.to_dict(),
        }


def report(
    source: PCDNet | RunFolder | str | Path,
    data: str | Path | NDArray[np.generic] | Scenes | None = None,
    *,
    out: str | Path | None = None,
    count: int = HELD_OUT,
    seed: int = TEST_SEED,
    view: View = UNCHANGED,
    device: str = "cpu",
) -> WrittenReport:
    """Write one self-contained HTML page: verdict, suggestions, scenes, scores, kinds, prototypes, learning, settings.

    Parameters
    ----------
    source
        A run (its folder, or a RunFolder), or a model.
    data
        Scenes to score and show, as `fit` takes them; by default scenes of the run's own data that it did not learn
        from. A model has none of its own.
    out
        The .html file to write; by default report.html in the run's folder.
    count, seed
        How many scenes at most, and the seed of generated ones.
    view
        How images are looked at, where that differs from training.
    device
        Where a run's model computes.

    Returns
    -------
    WrittenReport
        Where the page is, and what is on it: scores, kinds, verdict and suggestions.

    Examples
    --------
    >>> import tempfile
    >>> from pcdnet import ModelConfig, PCDNet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(PCDNet(ModelConfig()), "tetrominoes", out=f"{folder}/page.html", count=2)
    ...     page.path.name, page.scores.scenes
    ('page.html', 2)
    """
    if out is not None:
        with_ending(out, ".html")
    if isinstance(source, PCDNet):
        if data is None or out is None:
            raise PcdnetError(
                "a model alone has neither scenes nor a folder; give ", Setting("data"), " and ", Setting("out")
            )
        run, model, path = None, source, Path(out)
        scenes = to_scenes(data, count=count, seed=seed, view=view)
    else:
        run = RunFolder.open(source)
        model = run.load_model(device)
        path = run.report if out is None else Path(out)
        if isinstance(data, np.ndarray | Scenes):
            scenes = to_scenes(data, count=count, view=view)
        else:
            scenes = run.held_out(data, count=count, seed=seed, view=view)
    with phase("decomposing scenes"):
        scores = evaluate(model, scenes)
    page = _page(model, scenes, scores, run)
    with phase("making the page"):
        write_page(page, path)
    return WrittenReport(
        path=path,
        data=scenes.name,
        scores=scores,
        census=page.census,
        verdict=page.verdict,
        suggestions=tuple(page.suggestions),
    )


def _page(model: PCDNet, scenes: Scenes, scores: Evaluation, run: RunFolder | None) -> Page:
    """What the page shows.

    How often prototypes are used is counted on these scenes, with the weights that are shown: the averages that
    training keeps are those of its last weights, which need not be the best.
    """
    counted = scenes.first(COUNTED)
    images = np.asarray(counted.images)
    parts = [images[start : start + CHUNK] for start in range(0, len(images), CHUNK)]
    steps = track(((len(part), part) for part in parts), len(images), "scenes for the report")
    found = [scene for part in steps for scene in model.decompose_all(part)]
    bank, verdict = model.bank(), _verdict(model, scenes, run)
    usage, error = bank_use(images.astype(np.float32) / 255, found, len(bank.masks))
    metrics, bad = ([], 0) if run is None else run.read_metrics()
    if bad:
        to_stderr(f"{bad} lines of the metrics are damaged or lost, and are missing in the report")
    splits = np.zeros(len(bank.masks), dtype=np.int64)
    trained = len(splits) if run is None else run.config.model.num_prototypes
    for line in metrics:
        if line.get("event") == "split" and trained == len(splits) > max(line["prototype"], line["source"]):
            splits[[line["prototype"], line["source"]]] = line["step"]
    return Page(
        name="a model" if run is None else "/".join(run.path.resolve().parts[-2:]),
        data=f"{len(scenes):,} scenes: {scenes.name}",
        training=training_words(metrics),
        verdict=verdict,
        suggestions=_suggestions(model, scenes, run, verdict),
        scores=scores.to_dict(),
        census=census(found, model.kinds, bank.to_numpy()),
        bank=bank.to_numpy(),
        names=model.names.given,
        health=BankHealth(
            usage=usage,
            error=error,
            likeness=likeness(bank).numpy(),
            changed=splits,
            twins=_twins(verdict, model),
        ),
        sightings=sightings(found, bank.to_numpy()),
        metrics=metrics,
        trained=None if trained == len(splits) else trained,
        gallery=gallery(counted, found),
        ranking=f"{'' if counted.labels is None else 'FG-ARI, then by '}the squared error that is left",
        config=(Config(model=model.config) if run is None else run.config).to_toml(*([] if run else ["model"])),
        command="" if run is None else run.command(),
        version=pcdnet.__version__,
    )


def _verdict(model: PCDNet, scenes: Scenes, run: RunFolder | None) -> Verdict | None:
    """The verdict that the run ended with, or else one by these scenes; none by pictures that would take long."""
    kept = None if run is None else kept_verdict(run)
    H, W = scenes.images.shape[1:3]
    if kept is not None or model.max_objects_in((H, W)) > model.config.max_objects:
        return kept
    return judge_images(model, scenes, run)


def _suggestions(
    model: PCDNet, scenes: Scenes, run: RunFolder | None, verdict: Verdict | None
) -> tuple[Suggestion, ...]:
    H, W = model.learned_size or scenes.images.shape[1:3]
    return () if verdict is None else suggestions(verdict, model.config, (H, W), model.names, run)


def _twins(verdict: Verdict | None, model: PCDNet) -> tuple[tuple[int, int], ...]:
    """Pairs of prototypes that stand for one kind, and are not called so yet."""
    figures = None if verdict is None else kept_figures(verdict)
    return () if figures is None else unmerged(figures.alike, model.names)


def training_words(metrics: Sequence[Mapping[str, Any]]) -> str:
    """How many steps training took, and how long; nothing where the metrics do not say."""
    timed = [line for line in metrics if "seconds" in line]
    return f"{timed[-1]['step']:,} steps in {clock(timed[-1]['seconds'])}" if timed else ""


def gallery(scenes: Scenes, found: Sequence[Decomposition]) -> list[Exhibit]:
    """The scenes that went best, those in the middle, and those that went worst; no scene twice.

    The FG-ARI counts first where it is known, as a scene that is painted well may still be cut wrongly.
    """
    agreement = np.zeros(len(found))
    if scenes.labels is not None:
        pairs = zip(scenes.labels, found, strict=True)
        agreement = np.array([foreground_ari(labels, thing.instances) for labels, thing in pairs])
    order = np.lexsort((np.array([thing.error for thing in found]), -agreement))
    exhibits = []
    for title, index in _picked(order.tolist()):
        note = f"squared error {found[index].error:.3g}, {len(found[index])} objects"
        if scenes.labels is not None:
            note = f"FG-ARI {agreement[index]:.4f}, {note}"
        image = scenes.images[index].astype(np.float32) / 255
        exhibits.append(Exhibit(title=title, note=note, image=image, found=found[index]))
    return exhibits


def _picked(order: list[int]) -> list[tuple[str, int]]:
    """The first, middle and last of an order, with what they are called; of a short one rather the first and last."""
    middle = (len(order) - SHOWN) // 2
    titles = dict.fromkeys(range(middle, middle + SHOWN), "median")
    titles |= dict.fromkeys(range(len(order) - SHOWN, len(order)), "worst")
    titles |= dict.fromkeys(range(SHOWN), "best")
    return [(titles[place], index) for place, index in enumerate(order) if place in titles]


def sightings(found: Sequence[Decomposition], bank: BankArrays) -> list[Sightings]:
    """What the objects of every prototype looked like, and where they were."""
    seen = [Sightings() for _ in bank.masks]
    if not any(map(len, found)):
        return seen
    kinds = np.concatenate([thing.prototype_ids for thing in found])
    colours = np.concatenate([thing.colours for thing in found])
    centres = np.concatenate([thing.positions for thing in found]) + np.array(bank.masks.shape[1:]) / 2
    bright = brightness(bank)
    size: tuple[int, int] = found[0].instances.shape
    for p in np.unique(kinds):
        own = kinds == p
        seen[p] = Sightings(colours=usual_colours(colours[own] * bright[p]), places=where(centres[own], size))
    return seen


def where(centres: Float[np.ndarray, "n 2"], size: tuple[int, int]) -> Float[np.ndarray, "rows columns"]:
    """How often objects were where, on a coarse, slightly blurred grid; what is outside counts at the border."""
    cell = max(1.0, max(size) / CELLS)
    grid = np.zeros([max(1, round(side / cell)) for side in size])
    places = (centres / np.array(size) * grid.shape).astype(int).clip(0, np.array(grid.shape) - 1)
    np.add.at(grid, tuple(places.T), 1)
    return np.asarray(gaussian_filter(grid, 1.0, mode="reflect"))
