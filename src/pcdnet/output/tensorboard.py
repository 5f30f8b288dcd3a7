"""TensorBoard: a run's metrics and prototypes, as event files in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from pcdnet.errors import PcdnetError
from pcdnet.output.curves import QUALITY
from pcdnet.output.figures import prototype_sheet
from pcdnet.run import METRICS, TENSORBOARD, RunFolder

if TYPE_CHECKING:
    from pcdnet.training.loop import Progress

SCALARS = {"loss": "loss", "learning_rate": "lr", "in_use": "in_use"}


@contextmanager
def board(run: Path, *, wanted: bool = True) -> Iterator[Callable[[Progress], None] | None]:
    """What `fit` can be watched by to write event files for TensorBoard; nothing where they are not wanted."""
    if not wanted:
        yield None
        return
    follower = _Board(run)
    try:
        yield follower.follow
    finally:
        follower.close()


class _Board:
    """Follows a run's metrics file: what TensorBoard shows is what the file holds, resumed parts included."""

    def __init__(self, run: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise PcdnetError(
                "TensorBoard is not installed; install it with: pip install 'pcdnet[tensorboard]'"
            ) from None
        self._run, self._make = run, SummaryWriter
        self._writer: Any = None
        self._read = 0

    def follow(self, progress: Progress) -> None:
        """Pass on the lines that came since the last call and, at a validation, show the best prototypes so far."""
        writer = self._open()
        if (self._run / METRICS).is_file():
            with (self._run / METRICS).open("rb") as file:
                file.seek(self._read)
                for line in file:
                    self._read += len(line)
                    _pass_on(writer, json.loads(line))
        run = RunFolder.open(self._run)
        if progress.validation is not None and run.has_weights:
            writer.add_image("prototypes", _sheet(run), progress.step, dataformats="HWC")

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()

    def _open(self) -> Any:
        # Not before training has begun: a folder that is refused must stay as it was.
        if self._writer is None:
            for old in (self._run / TENSORBOARD).glob("events.out.tfevents*"):
                old.unlink()
            self._writer = self._make(self._run / TENSORBOARD)
        return self._writer


def _pass_on(writer: Any, line: dict[str, Any]) -> None:
    for key, name in SCALARS.items():
        if key in line:
            writer.add_scalar(name, line[key], line["step"])
    validation = line.get("validation", {})
    for key in QUALITY:
        if validation.get(key) is not None:
            writer.add_scalar(key, validation[key], line["step"])
            break


def _sheet(run: RunFolder) -> np.ndarray:
    bank = run.load_model().bank().to_numpy()
    canvas = FigureCanvasAgg(prototype_sheet(bank.prototypes, bank.masks))
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3]  # type: ignore[no-untyped-call]
