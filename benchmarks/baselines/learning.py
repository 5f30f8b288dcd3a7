"""Learning: fit a slot model to images for so many seconds of processor time, and score it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from benchmarks.baselines.autoencoder import SlotAutoencoder
from pcdnet.metrics import foreground_ari
from pcdnet.scene import Scenes

LEARNING_RATE, WARM_UP, HALVINGS = 4e-4, 0.02, 5
"""As published, Adam at 4e-4, reached after 2 % of the training and halved every fifth; here by share of the time."""
BATCH, CHUNK = 16, 64
"""Images of a step, and images that are explained at once in scoring. Published are 64 a step, and one core does 24
such steps in a minute; a quarter of that makes four times the steps, and a lower error after the same minutes."""

Maker = Callable[[tuple[int, int]], SlotAutoencoder]
"""From a height and a width to a model for images of that size."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A model that has had its time."""

    model: SlotAutoencoder
    losses: list[float]
    """The mean squared error of every step."""
    seconds: float
    """Processor time that it took."""


def learn(
    make: Maker,
    images: UInt8[np.ndarray, "N H W 3"],
    seed: int,
    seconds: float,
    *,
    batch: int = BATCH,
    steps: int | None = None,
) -> Learned:
    """Learn until so many seconds of processor time are over, or after so many steps, whichever comes first."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make((images.shape[1], images.shape[2])).train()
    rng, order = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    losses: list[float] = []
    start = time.process_time()
    while steps is None or len(losses) < steps:
        share = max((time.process_time() - start) / seconds, 0 if steps is None else len(losses) / steps)
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate(share)
        chosen = as_tensor(images[order.integers(0, len(images), batch)])
        loss = (model(chosen, rng).reconstruction - chosen).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return Learned(model.eval(), losses, time.process_time() - start)


def rate(share: float) -> float:
    """What the learning rate is multiplied by when that share of the time is over."""
    return float(min(1, share / WARM_UP + 0.01) * 0.5 ** (HALVINGS * share))


def as_tensor(images: UInt8[np.ndarray, "N H W 3"]) -> Tensor:
    """Pixels as a batch of values in [0, 1], channels first."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float().div_(255)


@torch.no_grad()
def explain(
    model: SlotAutoencoder, images: UInt8[np.ndarray, "N H W 3"], seed: int
) -> Iterator[tuple[Int64[np.ndarray, "n H W"], float]]:
    """The labels of some images after the other, and their mean squared error."""
    rng = torch.Generator().manual_seed(seed)
    for begin in range(0, len(images), CHUNK):
        some = as_tensor(images[begin : begin + CHUNK])
        found = model(some, rng)
        yield found.labels().numpy(), float((found.reconstruction - some).square().mean())


def scored(learned: Learned, scenes: Scenes, seed: int) -> dict[str, float]:
    """FG-ARI, error and speed on scenes that were not learned from."""
    assert scenes.labels is not None
    start = time.perf_counter()
    found = list(explain(learned.model, scenes.images, seed))
    taken = time.perf_counter() - start
    labels = np.concatenate([labels for labels, _ in found])
    return {
        "fg_ari": float(np.mean([foreground_ari(*pair) for pair in zip(scenes.labels, labels, strict=True)])),
        "mse": float(np.average([error for _, error in found], weights=[len(labels) for labels, _ in found])),
        "parameters": sum(parameter.numel() for parameter in learned.model.parameters()),
        "images_per_second": len(scenes) / taken,
        "core_minutes": learned.seconds / 60,
        "steps": len(learned.losses),
    }
