"""A small model that knows crosses and bars but not tall things, and a run of it on pictures of all three."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from pcdnet.config import Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.origin import Origin
from pcdnet.run import RunFolder
from tests.runs import run_of

CROSS = np.zeros((7, 7), np.float32)
CROSS[2:5], CROSS[:, 2:5] = 1, 1
BAR = np.zeros((7, 7), np.float32)
BAR[2:5] = 1
TALL = np.ones((15, 5), np.float32)
CONFIG = ModelConfig(
    num_prototypes=2,
    prototype_size=(9, 9),
    max_objects=2,
    peaks_per_prototype=3,
    localization="error_reduction",
    min_error_reduction=3.0,
)


def model() -> PCDNet:
    """A model that knows crosses and bars over black."""
    masks = torch.zeros(2, 9, 9)
    masks[0, 1:8, 1:8], masks[1, 1:8, 1:8] = torch.from_numpy(CROSS), torch.from_numpy(BAR)
    made = PCDNet.from_bank(PrototypeBank(masks.clone(), 2 * masks - 0.5), CONFIG)
    made.names = Names(count=2, given={0: "cross", 1: "bar"})
    return made


def picture(*things: tuple[np.ndarray, int, int, float]) -> np.ndarray:
    """Shapes of some brightness at some places over black."""
    image = np.zeros((40, 40, 3), np.float32)
    for shape, row, column, light in things:
        image[row : row + shape.shape[0], column : column + shape.shape[1]] += light * shape[..., None]
    return np.round(255 * image).astype(np.uint8)


def make_run(folder: Path) -> RunFolder:
    """A run of that model, and two dozen pictures beside it in each of which a tall thing is missed."""
    rng = np.random.default_rng(0)
    (folder / "pictures").mkdir()
    for number in range(24):
        things = []
        for n, shape in enumerate((CROSS, BAR, TALL)):
            row, column = rng.integers(1, 5, 2).tolist()
            things.append((shape, row + 20 * (n // 2), column + 20 * (n % 2), float(rng.uniform(0.7, 1))))
        Image.fromarray(picture(*things)).save(folder / "pictures" / f"{number}.png")
    former = model()
    train = TrainConfig(steps=6, batch=6, learning_rate=0.002, init="shapes", noise_steps=0, mask_noise=0.1)
    config = Config(model=former.config, loss=LossConfig(), train=train)
    made = run_of(folder / "run", former.weights(), config, Origin(data=str(folder / "pictures"), size=(40, 40)))
    made.keep_names(former.names)
    return made
