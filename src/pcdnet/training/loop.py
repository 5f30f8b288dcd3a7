"""Loop: fit a bank of prototypes to scenes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.config import Config
from pcdnet.errors import PcdnetError
from pcdnet.model.geometry import Geometry
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes
from pcdnet.training.evaluation import Evaluation, evaluate
from pcdnet.training.initialization import init_from_images
from pcdnet.training.loss import loss_of
from pcdnet.training.noise import noisy_bank
from pcdnet.training.reset import Event, Health, reset_prototypes
from pcdnet.training.run import Run, State

FIRST_HEALING = 100
"""Before this step nobody knows yet which prototypes fare badly."""
COOL = 0.05
"""What is left of the learning rate at the end of the cooldown."""
REPORT_SECONDS = 0.1
"""`watch` is called at most about so often."""
SAVE_SECONDS = 20.0
"""The state is saved at least so often."""
LOG_EVERY = 25
"""Steps between two lines of metrics."""


class Interrupted(PcdnetError):
    """Training was asked to stop, and did so after the step it was in."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How training is going."""

    step: int
    """Steps done."""
    steps: int
    """Steps in all."""
    loss: float
    """The loss of the last step."""
    in_use: int
    """Prototypes that are chosen often enough to learn."""
    prototypes: int
    """Prototypes in all."""
    images_per_second: float
    """Images learned from in a second, of all the time so far."""
    seconds: float
    """Time so far, all resumed parts together."""
    eta: float
    """Seconds left."""
    validation: Evaluation | None
    """Scores, in steps that validated."""
    events: tuple[Event, ...]
    """What was done to the bank in this step."""


def fit(
    scenes: Scenes,
    config: Config,
    *,
    valid: Scenes | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    minutes: float | None = None,
    device: str = "cpu",
    watch: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> PCDNet:
    """Learn prototypes from scenes, without looking at their labels; the best model by validation is returned.

    With `out` the run is kept in a folder and can be resumed: whatever interrupted it, the end is the same as without
    the interruption. `minutes` ends training early, on the same schedule compressed to the time there is.
    """
    _check(scenes, config, minutes)
    target = _device(device)
    run = None
    if out is not None:
        run = Run.open(out) if resume else Run.create(out, config, force=force)
        config = run.config
    trainer = _Trainer(scenes, valid or scenes.first(64), config, run, target, minutes)
    if run is not None and resume and run.has_state():
        trainer.restore(run)
    else:
        trainer.begin()
    trainer.train(watch or (lambda _: None), stop or (lambda: False))
    return trainer.finished()


class _Trainer:
    """One training: owns the model, the optimizer, and where they stand."""

    def __init__(
        self,
        scenes: Scenes,
        valid: Scenes,
        config: Config,
        run: Run | None,
        device: torch.device,
        minutes: float | None,
    ) -> None:
        self._images, self._valid, self._config, self._run = scenes.images, valid, config, run
        self._device, self._minutes = device, minutes
        H, W = scenes.images.shape[1:3]
        torch.manual_seed(config.train.seed)  # the colour network's first weights
        self._model = PCDNet(config.model, (H, W) if config.model.background else None).to(device).train()
        self._optimizer = torch.optim.Adam(self._groups(), lr=config.train.learning_rate)
        self._epoch, self._order = -1, np.arange(0)
        self._state = State(0, 0.0, -math.inf, Health.start(config.model.num_prototypes))
        self._best = {name: value.clone() for name, value in self._model.state_dict().items()}

    def begin(self) -> None:
        """Give the bank what training starts from."""
        if self._config.train.init == "images":
            init_from_images(self._model, self._images, self._config.train.seed)
        elif self._model.background is not None:
            mean = self._images.mean(axis=0, dtype=np.float64) / 255
            self._model.background.data.copy_(torch.from_numpy(mean).permute(2, 0, 1))

    def _groups(self) -> list[dict[str, Any]]:
        """What is learned, and at which pace; the background has its own."""
        others = [value for name, value in self._model.named_parameters() if name != "background"]
        groups: list[dict[str, Any]] = [{"params": others, "pace": 1.0}]
        if self._model.background is not None:
            groups.append({"params": [self._model.background], "pace": self._config.train.background_lr_scale})
        return groups

    def restore(self, run: Run) -> None:
        """Go on where the run stopped."""
        self._state = run.load_state(self._model, self._optimizer)
        run.rewind(self._state.step)
        if self._state.best > -math.inf:
            self._best = dict(run.load_weights())

    def train(self, watch: Callable[[Progress], None], stop: Callable[[], bool]) -> None:
        """All steps that are left."""
        state, train = self._state, self._config.train
        before, start = state.seconds, time.perf_counter()
        watched = saved = start
        while state.step < train.steps and self._share() < 1:
            loss, rate, events = self._step()
            state.step += 1
            state.seconds = before + time.perf_counter() - start
            last = state.step == train.steps or self._share() >= 1
            validation = self._validate() if last or state.step % train.validate_every == 0 else None
            state.seconds = before + time.perf_counter() - start
            progress = self._progress(loss, validation, events)
            self._log(progress, rate, last)
            now = time.perf_counter()
            asked = stop()
            if last or asked or validation or now - saved >= SAVE_SECONDS:
                self._save()
                saved = now
            if last or events or validation or now - watched >= REPORT_SECONDS:
                watch(progress)
                watched = now
            if asked and not last:
                where = (
                    f"go on with --resume --out {self._run.folder}"
                    if self._run
                    else "nothing was kept, as there is no --out"
                )
                raise Interrupted(f"stopped after step {state.step} of {train.steps}; {where}")

    def finished(self) -> PCDNet:
        """The best model, in evaluation mode."""
        self._model.load_state_dict(self._best)
        return self._model.eval()

    def _share(self) -> float:
        """How much of the training is over: by steps, or by time where that is limited and runs out sooner."""
        share = self._state.step / self._config.train.steps
        return share if self._minutes is None else max(share, self._state.seconds / (60 * self._minutes))

    def _step(self) -> tuple[float, float, tuple[Event, ...]]:
        """Learn from one batch: the loss, the learning rate, and what healing did."""
        train, step, share = self._config.train, self._state.step, self._share()
        model, optimizer, health = self._model, self._optimizer, self._state.health
        # A generator of its own for every step: a resumed run draws what the unbroken one would have drawn.
        rng = torch.Generator().manual_seed(train.seed * 1_000_000_007 + step)
        rate = self._rate(share)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["pace"]
        images = self._batch(step)
        layers = model(images, noisy_bank(model, train, step, share, rng))
        loss = loss_of(images, layers.reconstruction, model.prototypes, model.masks, self._config.loss)
        if not torch.isfinite(loss):
            kept = (
                f"the last good weights are in {self._run.folder}" if self._run else "give --out to keep good weights"
            )
            raise PcdnetError(
                f"the loss is {loss.item()} at step {step}; lower --train.learning-rate ({train.learning_rate}); {kept}"
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        health.observe(images, layers)
        due = (
            train.reset_every and step >= FIRST_HEALING and step % train.reset_every == 0 and share < train.reset_until
        )
        events = tuple(reset_prototypes(model, optimizer, health, train, step + 1, rng)) if due else ()
        return loss.item(), rate, events

    def _rate(self, share: float) -> float:
        train = self._config.train
        epoch = self._state.step * train.batch // len(self._images)
        rate = train.learning_rate * train.decay ** (epoch // train.decay_epochs)
        if share > 1 - train.cooldown:
            rate *= COOL ** ((share - 1 + train.cooldown) / train.cooldown)
        return rate

    def _batch(self, step: int) -> Float[Tensor, "B C H W"]:
        """The images of a step: every epoch goes through all scenes once, in its own order."""
        batch, count = self._config.train.batch, len(self._images)
        per_epoch = count // batch
        epoch, place = divmod(step, per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng((self._config.train.seed, epoch)).permutation(count)
        pixels = self._images[self._order[place * batch : (place + 1) * batch]]
        return torch.from_numpy(pixels).to(self._device).permute(0, 3, 1, 2).float().div_(255)

    def _validate(self) -> Evaluation:
        """Score the model; keep it if it is the best."""
        found = evaluate(self._model, self._valid, refine=False)
        # By the error, not by the labels: the model is chosen as it is trained, without looking at the truth.
        if -found.mse >= self._state.best:
            self._state.best = -found.mse
            self._best = {name: value.clone() for name, value in self._model.state_dict().items()}
            if self._run is not None:
                self._run.save_weights(self._model)
        return found

    def _progress(self, loss: float, validation: Evaluation | None, events: tuple[Event, ...]) -> Progress:
        state, train = self._state, self._config.train
        share = self._share()
        return Progress(
            step=state.step,
            steps=train.steps,
            loss=loss,
            in_use=state.health.in_use(),
            prototypes=self._config.model.num_prototypes,
            images_per_second=state.step * train.batch / max(state.seconds, 1e-9),
            seconds=state.seconds,
            eta=state.seconds * (1 - share) / max(share, 1e-9) if share < 1 else 0.0,
            validation=validation,
            events=events,
        )

    def _log(self, progress: Progress, rate: float, last: bool) -> None:
        if self._run is None:
            return
        if last or progress.step % LOG_EVERY == 0:
            self._run.log(
                step=progress.step,
                loss=progress.loss,
                learning_rate=rate,
                in_use=progress.in_use,
                images_per_second=progress.images_per_second,
                seconds=progress.seconds,
            )
        for event in progress.events:
            self._run.log(step=progress.step, event=event.kind, prototype=event.prototype, source=event.source)
        if progress.validation is not None:
            self._run.log(step=progress.step, validation=progress.validation.to_dict())

    def _save(self) -> None:
        if self._run is not None:
            self._run.save_state(self._model, self._optimizer, self._state)


def _check(scenes: Scenes, config: Config, minutes: float | None) -> None:
    count, channels = len(scenes), scenes.images.shape[-1]
    if count < config.train.batch:
        raise PcdnetError(
            f"there are {count} scenes for batches of {config.train.batch}; "
            f"give more, or use --train.batch {max(count, 1)}"
        )
    if channels != config.model.channels:
        raise PcdnetError(
            f"the scenes have {channels} channels, the model {config.model.channels}; use --model.channels {channels}"
        )
    H, W = scenes.images.shape[1:3]
    Geometry.for_overhang((H, W), config.model.prototype_size, config.model.overhang)  # refuses what cannot fit
    if minutes is not None and not minutes > 0:
        raise PcdnetError(f"--minutes is {minutes}; give more than 0")


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise PcdnetError(f"the device {name!r} cannot be used: {reason}; use --device cpu") from None
    return device
