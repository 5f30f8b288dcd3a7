"""TensorBoard: a run's metrics and prototypes, as event files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pcdnet.errors import PcdnetError
from pcdnet.output.curves import QUALITY
from pcdnet.output.figures import prototype_sheet
from pcdnet.run import TENSORBOARD, RunFolder

if TYPE_CHECKING:
    from pcdnet.training.loop import Progress

SCALARS = {"loss": "loss", "learning_rate": "lr", "in_use": "in_use"}


@contextmanager
def board(run: Path) -> Iterator[Callable[[Progress], None]]:
    """What `fit` can be watched by to write event files for TensorBoard.

    They hold what the run's metrics file holds, resumed parts included.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise PcdnetError("TensorBoard is not installed; install it with: pip install 'pcdnet[tensorboard]'") from None
    writers: list[Any] = []
    passed = 0

    def follow(progress: Progress) -> None:
        """Pass on the lines that came since the last call and, at a validation, show the best prototypes so far."""
        nonlocal passed
        if not writers:  # not before training has begun: a folder that is refused must stay as it was
            for old in (run / TENSORBOARD).glob("events.out.tfevents*"):
                old.unlink()
            writers.append(SummaryWriter(run / TENSORBOARD))
        folder = RunFolder.open(run)
        for line in folder.metrics()[passed:]:
            passed += 1
            _pass_on(writers[0], line)
        if progress.validation is not None and folder.has_weights:
            writers[0].add_image("prototypes", _sheet(folder), progress.step, dataformats="HWC")

    try:
        yield follow
    finally:
        for writer in writers:
            writer.close()


def _pass_on(writer: Any, line: dict[str, Any]) -> None:
    for key, name in SCALARS.items():
        if key in line:
            writer.add_scalar(name, line[key], line["step"])
    validation = line.get("validation", {})
    for key in QUALITY:
        if validation.get(key) is not None:
            writer.add_scalar(key, validation[key], line["step"])
            break


def _sheet(run: RunFolder) -> UInt8[np.ndarray, "H W 3"]:
    canvas = FigureCanvasAgg(prototype_sheet(run.load_model().bank().to_numpy()))
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3]  # type: ignore[no-untyped-call]
