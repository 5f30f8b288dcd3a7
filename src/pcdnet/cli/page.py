"""Page: collect what the report of a run shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import pcdnet
from pcdnet.cli.model import decompose
from pcdnet.cli.origin import Origin, command
from pcdnet.model.network import PCDNet
from pcdnet.output.report import BankHealth, Report, bank_use, write_report
from pcdnet.scene import Scenes
from pcdnet.training.evaluation import Evaluation, evaluate
from pcdnet.training.healing import likeness
from pcdnet.training.run import Run

PAGE = "report.html"
SHOWN = 8
"""Scenes that are shown taken apart."""
COUNTED = 320
"""Scenes from which the use of the prototypes is read."""


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
    usage, error = bank_use(images, found, len(bank.prototypes))
    splits = np.zeros(len(bank.prototypes), dtype=np.int64)
    metrics = run.metrics()
    for line in metrics:
        if line.get("event") == "split":
            splits[[line["prototype"], line["source"]]] = line["step"]
    report = Report(
        name=str(folder),
        data=f"{len(scenes):,} scenes: {scenes.name}",
        scores=scores.to_dict(),
        prototypes=bank.prototypes.numpy(),
        masks=bank.masks.numpy(),
        background=None if bank.background is None else bank.background.permute(1, 2, 0).numpy(),
        health=BankHealth(usage=usage, error=error, likeness=likeness(bank).numpy(), changed=splits),
        metrics=metrics,
        images=images[:SHOWN],
        decompositions=found[:SHOWN],
        config=run.config.to_toml(),
        command=command(folder, run.config, Origin.read(folder)),
        version=pcdnet.__version__,
    )
    write_report(report, path or folder / PAGE)
    return scores
