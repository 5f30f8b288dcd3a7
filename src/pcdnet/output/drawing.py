"""Drawing: a run's prototypes, or scenes that it decomposes, as a figure for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import UInt8
from matplotlib.figure import Figure

from pcdnet.data.sources import TEST_SEED, is_generated
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.output.figures import object_sheet, prototype_sheet, segmentation_sheet
from pcdnet.progress import phase
from pcdnet.run import RunFolder

Kind = Literal["prototypes", "decomposition", "segmentation"]
"""What a figure shows."""

CHOSEN_FROM = 1000
"""Scenes of a file or folder that those of a figure are drawn from, the first ones."""
MOST = 40
"""Scenes on a figure at most."""


def figure(
    source: RunFolder | str | Path,
    kind: Kind,
    data: str | None = None,
    *,
    count: int = 4,
    seed: int = 0,
    view: View = UNCHANGED,
    device: str = "cpu",
) -> Figure:
    """Draw the prototypes of a run, or scenes that it did not learn from, decomposed.

    Parameters
    ----------
    source
        A run: its folder, or a RunFolder.
    kind
        `prototypes` with their masks; or scenes with their reconstructions and either their objects one by one
        (`decomposition`), or their semantic and instance segmentation (`segmentation`).
    data
        Scenes to show, as `pcdnet train --data` names them; by default the run's own.
    count, seed
        How many scenes, and which: other seeds give others.
    view
        How images are looked at, where that differs from training.
    device
        Where to compute.

    Returns
    -------
    matplotlib.figure.Figure
        `pcdnet.output.figures.save_figure` writes it as PNG, SVG or PDF.

    Examples
    --------
    >>> import tempfile
    >>> from pcdnet import ModelConfig, PCDNet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PCDNet(ModelConfig(num_prototypes=4)).save(folder)
    ...     figure(folder, "prototypes")
    <Figure size ...>
    """
    if not 1 <= count <= MOST:
        raise PcdnetError(Setting("count", count), f" scenes do not fit a figure; give 1 to {MOST}")
    if seed < 0:
        raise PcdnetError(Setting("seed", seed), " cannot be used; give 0 or more")
    run = RunFolder.open(source)
    model = run.load_model(device)
    bank, names = model.bank().to_numpy(), [model.names.given.get(p, str(p)) for p in range(len(model.names))]
    if kind == "prototypes":
        return prototype_sheet(bank, names)
    pixels = _images(run, data, count, seed, view)
    with phase("decomposing scenes"):
        found, images = model.decompose_all(pixels), pixels.astype(np.float32) / 255
    with phase("drawing"):
        sheet = segmentation_sheet if kind == "segmentation" else object_sheet
        return sheet(images, found, bank, names)


def _images(run: RunFolder, data: str | None, count: int, seed: int, view: View) -> UInt8[np.ndarray, "n H W C"]:
    """The images of a figure: generated ones by their seed, of others a choice, in their order."""
    generated = is_generated(data or run.data)
    scenes = run.held_out(data, count=count if generated else CHOSEN_FROM, seed=TEST_SEED + seed, view=view)
    if generated or len(scenes) <= count:
        return np.asarray(scenes.images)
    chosen = np.random.default_rng(seed).choice(len(scenes), count, replace=False)
    return scenes.images[np.sort(chosen)]
