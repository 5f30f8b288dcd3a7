"""Following: what the first rank of a training tells the others, and what these do with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from pcdnet.config import Config
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.network import PCDNet
from pcdnet.origin import fingerprint, in_words
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.loop import Trainer
from pcdnet.training.ranks import Ranks
from pcdnet.training.task import Data, Task, prepare


def share_task(task: Task, run: RunFolder | None, data: Data, minutes: float | None, ranks: Ranks) -> None:
    """Tell the other ranks what is learned and how, and have them check that they see the same images."""
    if task.config.train.batch < ranks.world:
        raise PcdnetError(
            f"{ranks.world} processes cannot share batches of {task.config.train.batch} images; start fewer, or use ",
            Setting("train.batch", ranks.world),
        )
    if run is not None and run.is_settled:
        ranks.said(None)
        return
    terms: dict[str, Any] = {"config": task.config.to_toml(), "view": dataclasses.asdict(task.view), "minutes": minutes}
    terms |= {"data": str(data) if isinstance(data, str | Path) else None}
    ranks.said({**terms, "fingerprint": fingerprint(task.scenes, task.validation)})
    ranks.meet()


def follow(
    data: Data | None, validation: Scenes | None, device: torch.device, ranks: Ranks, stop: Callable[[], bool]
) -> PCDNet:
    """Learn what the first rank learns: another rank's part of the work; the model in the end is the first one's."""
    terms: Any = ranks.said(None)
    if terms is not None:
        sides: dict[str, Any] = {
            name: tuple(side) if isinstance(side, list) else side for name, side in terms["view"].items()
        }
        data, config = terms["data"] if data is None else data, Config.from_toml(terms["config"])
        if data is None:
            raise PcdnetError("there is nothing to learn from; give ", Setting("data"))
        with redirect_stderr(StringIO()):  # the first rank has said it
            task = prepare(
                data, config, {}, validation=validation, view=View(**sides), start=None, settled=True, quiet=True
            )
        mark = fingerprint(task.scenes, task.validation)
        if mark != terms["fingerprint"]:
            raise PcdnetError(
                f"rank {ranks.rank} sees {in_words(mark)}, and the first rank {in_words(terms['fingerprint'])}, or "
                "others as many; give all processes the same images with ",
                Setting("data"),
            )
        ranks.meet()
        trainer = Trainer(task.scenes, task.validation, config, None, device, terms["minutes"], ranks)
        trainer.agree()
        trainer.train(lambda _: None, stop)
    return share_model(None, device, ranks)


def share_model(model: PCDNet | None, device: torch.device, ranks: Ranks) -> PCDNet:
    """The first rank's model, on all of them."""
    if ranks.alone and model is not None:
        return model
    with TemporaryDirectory() as folder:
        if model is not None:
            model.save(folder)
        kept = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
        for name, content in ranks.files(kept).items():
            (Path(folder) / name).write_bytes(content)
        return model or RunFolder.open(folder).load_model(str(device))
