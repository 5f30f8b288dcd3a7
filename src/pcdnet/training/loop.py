"""Loop: fit a bank of prototypes to scenes."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, UInt8
from torch import Tensor

from pcdnet.config import Config
from pcdnet.errors import Interrupted, PcdnetError, Setting
from pcdnet.model.background.plain import Surface
from pcdnet.model.engine import Layers
from pcdnet.model.network import PCDNet
from pcdnet.model.sharing import WHOLE
from pcdnet.model.storage import fill
from pcdnet.pixels import Pixels, PixelStore, pieces, spread
from pcdnet.progress import phase, stepping
from pcdnet.run import STATE, RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.backdrop import STITCHED, learned_picture
from pcdnet.training.budget import MEASURED, Budget
from pcdnet.training.checkpoint import best_weights, checked_state
from pcdnet.training.evaluation import Evaluation, evaluate
from pcdnet.training.foreground import largest_objects
from pcdnet.training.initialization import init_from_images
from pcdnet.training.loss import loss_of
from pcdnet.training.noise import noisy_bank
from pcdnet.training.ranks import ALONE, Ranks, SharedBatch
from pcdnet.training.reset import Event, Health, reset_prototypes
from pcdnet.training.sizing import centre_sizes
from pcdnet.training.standing import first_background

FIRST_RESET = 100
"""Before this step it is not known yet which prototypes do badly."""
COOL = 0.05
"""What is left of the learning rate at the end of the cooldown."""
REPORT_SECONDS = 0.1
"""Seconds between two calls of `watch` at least."""
SAVE_SECONDS = 20.0
"""Seconds between two savings of the state at most."""
LOG_EVERY = 25
"""Steps between two lines of metrics."""


@dataclass(slots=True)
class State:
    """Everything that changes in training, apart from the model and the optimizer."""

    step: int
    """Steps done."""
    seconds: float
    """Time that training took so far."""
    before: float
    """Time until the first step, of this process and of those that it goes on from."""
    best: float
    """The best validation so far: less its mean squared error, so larger is better."""
    health: Health
    """How the prototypes are doing."""


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
    num_prototypes: int
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
    """Prototypes that were reset or moved in this step."""


class Trainer:
    """One training: owns the model, the optimizer, and where they stand."""

    def __init__(
        self,
        scenes: Scenes,
        validation: Scenes,
        config: Config,
        run: RunFolder | None,
        device: torch.device,
        minutes: Budget | float | None,
        ranks: Ranks = ALONE,
        picture: Float32[np.ndarray, "H W C"] | None = None,
    ) -> None:
        """`minutes` end it sooner, and `picture` is the first background, if that is known already."""
        self._images, self._validation, self._config, self._run = scenes.images, validation, config, run
        self._budget = minutes if isinstance(minutes, Budget | None) else Budget(minutes=minutes)
        self._after: float | None = None
        self._device, self._ranks = device, ranks
        with phase("making the first background"):
            self._picture = (self._first_background() if picture is None else picture) if ranks.first else None
        size = ranks.said(None if self._picture is None else self._picture.shape[:2])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.train.seed)  # the colour network's first weights
            self._model = PCDNet(config.model, size).to(device).train()
        self._sharing = WHOLE if ranks.alone else SharedBatch(ranks, config.train.batch)
        self._model.learned_size = scenes.images.shape[1], scenes.images.shape[2]
        self._optimizer = torch.optim.Adam(self._groups(), lr=config.train.learning_rate)
        self._epoch, self._order = -1, np.arange(0)
        self._state = State(0, 0.0, 0.0, -math.inf, Health.start(config.model.num_prototypes))
        self._best = self._weights()

    def begin(
        self,
        start: PCDNet | None = None,
        ignored: Bool[np.ndarray, "H W"] | None = None,
        surfaces: Sequence[Surface] | None = None,
    ) -> None:
        """Give the bank its first values: those of another model, shapes in the images, or the paper's constants.

        `ignored` are pixels that do not count, and `surfaces` are the plain backgrounds, if they are known already.
        """
        if ignored is not None and self._model.ignored is None:
            raise PcdnetError(
                *("a part of the images can be ignored before a still background only; use ", Setting("crop")),
                *(", or set ", Setting("model.background", "still")),
            )
        if start is not None:
            self._model.looks = start.looks
            self._model.load_state_dict(start.state_dict())
        elif self._config.train.init != "constant":
            train = self._config.train
            with phase("taking the first prototypes from the images"):
                init_from_images(
                    *(self._model, self._images, self._picture, train.seed),
                    every_shape=train.init == "shapes",
                    surfaces=surfaces,
                )
                centre_sizes(self._model, self._images)
        elif self._model.background is not None and self._picture is not None:
            with torch.no_grad():
                self._model.background.copy_(torch.from_numpy(self._picture).permute(2, 0, 1))

        if ignored is not None and self._model.ignored is not None:
            self._model.ignored |= torch.from_numpy(ignored).to(self._device)

    def _first_background(self) -> Float32[np.ndarray, "Y X C"] | None:
        """The background before training: the mean of the images, as in the paper, or what is behind the objects."""
        model, init = self._config.model, self._config.train.init
        if model.background == "still" and init == "constant":
            total = sum(piece.sum(axis=0, dtype=np.float64) for piece in pieces(self._images))
            mean: np.ndarray = np.asarray(total / len(self._images) / 255)
            return mean.astype(np.float32)
        if init != "shapes":
            return learned_picture(model.background, self._views(), model.prototype_size)
        H, W = self._images.shape[1:3]
        return first_background(model.background, self._views(), largest_objects((H, W)))

    def _views(self) -> UInt8[Pixels, "N H W C"]:
        """What the first background is made from.

        A camera that moves on sees new ground, also while it takes the images for validation. No image of the others
        shows it; objects are learned without them all the same.
        """
        valid = self._validation.images
        if self._config.model.background != "moving" or valid.shape[1:] != self._images.shape[1:]:
            return self._images
        step = -(-(len(self._images) + len(valid)) // STITCHED)  # every so many of all, which are as many as are needed
        return np.concatenate([spread(self._images, step), spread(valid[-len(self._images) % step :], step)])

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self._model.state_dict().items()}

    def _groups(self) -> list[dict[str, Any]]:
        """What is learned, and with which factor on the learning rate; the background has its own."""
        others = [value for name, value in self._model.named_parameters() if name != "background"]
        groups: list[dict[str, Any]] = [{"params": others, "lr_scale": 1.0}]
        if self._model.background is not None:
            groups.append({"params": [self._model.background], "lr_scale": self._config.train.background_lr_scale})
        return groups

    def restore(self, run: RunFolder) -> None:
        """Go on where the run stopped."""
        self._take(*checked_state(run, self._model), run.path / STATE)
        if self._state.best > -math.inf:
            self._best = best_weights(run, self._model)
        run.rewind(self._state.step)

    def agree(self) -> None:
        """Have all ranks go on from where the first one stands."""
        if self._ranks.alone:
            return
        tensors, words = self._ranks.tensors(self._kept()), self._ranks.said(self._words())
        if not self._ranks.first:
            self._take(tensors, words, Path("the first rank"))

    def _take(self, tensors: dict[str, Tensor], words: dict[str, Any], source: Path) -> None:
        """Stand where these say, as `_kept` and `_words` did."""
        fill(self._model, _part(tensors, "model."), source)
        for name, parameter in self._model.named_parameters():
            kept = _part(tensors, f"optimizer.{name}.")
            if kept:
                moments = {key: kept[key].to(parameter.device) for key in ("exp_avg", "exp_avg_sq")}
                self._optimizer.state[parameter] = {"step": kept["step"], **moments}
        health = Health(**_part(tensors, "health."))
        state = self._state
        state.step, state.seconds, state.best, state.health = words["step"], words["seconds"], words["best"], health
        state.before = words.get("before", 0.0)  # which version 0.1 did not count

    def train(self, watch: Callable[[Progress], None], stop: Callable[[], bool]) -> None:
        """All steps that are left."""
        with stepping():
            self._train(watch, stop)

    def _train(self, watch: Callable[[Progress], None], stop: Callable[[], bool]) -> None:
        state, train, ranks = self._state, self._config.train, self._ranks
        self._agree_on_time()
        before, start = state.seconds, time.perf_counter()
        watched = saved = start
        while state.step < train.steps and self._share() < 1:
            loss, rate, events = self._step()
            state.step += 1
            self._look_ahead()
            state.seconds, _ = ranks.heard(before + time.perf_counter() - start, asked=False)
            last = state.step == train.steps or self._share() >= 1
            due = last or state.step % train.validate_every == 0
            validation = self._validate() if due and ranks.first else None  # the others wait for it
            state.seconds, asked = ranks.heard(before + time.perf_counter() - start, stop())
            progress = self._progress(loss, validation, events)
            self._log(progress, rate, last)
            now = time.perf_counter()
            if last or asked or validation or now - saved >= SAVE_SECONDS:
                self._save()
                saved = now
            if last or events or validation or now - watched >= REPORT_SECONDS:
                watch(progress)
                watched = now
            if asked and not last:
                raise Interrupted(f"stopped after step {state.step} of {train.steps}; ", *self._how_to_go_on())
        if state.best == -math.inf and ranks.first:  # the time was over before the first validation
            self._validate()
            self._save()

    def _agree_on_time(self) -> None:
        """Where time is limited, have all ranks count with the first one's, or they would end after different steps."""
        if self._budget is None:
            return
        before = self._state.before + time.monotonic() - self._budget.began
        words: Any = self._ranks.said({"before": before, "budget": dataclasses.asdict(self._budget)})
        self._state.before, self._budget = words["before"], Budget(**words["budget"])

    def _how_to_go_on(self) -> tuple[str | Setting, ...]:
        if self._run is None:
            return "nothing was kept, as there is no ", Setting("out")
        return "go on with ", Setting("resume", True), " ", Setting("out", str(self._run.path))

    @property
    def error(self) -> float | None:
        """The least mean squared error of all validations so far; None before the first."""
        return None if self._state.best == -math.inf else -self._state.best

    def finished(self) -> PCDNet:
        """The best model, in evaluation mode."""
        self._model.load_state_dict(self._best)
        return self._model.eval()

    def _share(self) -> float:
        """How much of the training is over: by steps, or by time where that is limited and runs out sooner."""
        share = self._state.step / self._config.train.steps
        if self._budget is None:
            return share
        return max(share, self._state.seconds / self._budget.left(self._state.before, self._after))

    def _look_ahead(self) -> None:
        """Once, where time is limited: see how long it will take when the steps are over."""
        if self._budget is None or self._after is not None or not MEASURED <= self._share() < 1:
            return
        after = None
        if self._ranks.first:
            with torch.no_grad():
                after = self._budget.after(self._model.eval(), self._images)
            self._model.train()
        self._after = self._ranks.said(after)

    def _step(self) -> tuple[float, float, tuple[Event, ...]]:
        """Learn from one batch: the loss, the learning rate, and which prototypes were reset."""
        train, step, share = self._config.train, self._state.step, self._share()
        model, optimizer, health, ranks = self._model, self._optimizer, self._state.health, self._ranks
        # A generator of its own for every step: a resumed run draws what the unbroken one would have drawn.
        rng = torch.Generator().manual_seed(train.seed * 1_000_000_007 + step)
        rate = self._rate(share)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["lr_scale"]
        images = model.seen(self._batch(step))
        layers = model(images, noisy_bank(model, train, step, share, rng), self._sharing)
        prices = *self._priced(layers), self._config.loss
        loss = loss_of(images, layers.reconstruction, *prices, self._sharing)
        if not torch.isfinite(loss):
            raise self._diverged(loss.item())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        health.observe(images, layers, self._sharing)
        # A prototype that is another one turned is told from it by its poses, not by what is left: see `turned`.
        resets = train.reset_every if not self._config.model.posed else 0
        due = resets and step >= FIRST_RESET and step % resets == 0 and share < train.reset_until
        if not due:
            return loss.item(), rate, ()
        events = tuple(reset_prototypes(model, optimizer, health, train, step + 1, rng)) if ranks.first else ()
        self.agree()
        return loss.item(), rate, events

    def _diverged(self, loss: float) -> PcdnetError:
        """That nothing can be learned any more."""
        kept: tuple[str | Setting, ...] = ("set ", Setting("out"), " to keep good weights")
        if self._run is not None:
            kept = (f"the last good weights are in {self._run.path}",)
        rate = Setting("train.learning_rate", self._config.train.learning_rate)
        return PcdnetError(f"the loss is {loss} at step {self._state.step}; lower ", rate, "; ", *kept)

    def _priced(self, layers: Layers) -> tuple[Float[Tensor, "P h w"], Float[Tensor, "P h w"]]:
        """The prototypes and masks that the loss puts a price on.

        A shape that was found in the images is a good prototype before it is ever chosen. Prices alone would wear it
        down between two batches that show it.
        """
        model = self._model
        if self._config.train.init != "shapes":
            return model.prototypes, model.masks
        chosen = torch.zeros(len(model.masks), 1, 1, dtype=torch.bool, device=self._device)
        everywhere = self._sharing.gathered(layers.placement.exists)
        chosen[self._sharing.gathered(layers.placement.prototype)[everywhere]] = True
        prototypes, masks = (torch.where(chosen, each, each.detach()) for each in (model.prototypes, model.masks))
        return prototypes, masks

    def _rate(self, share: float) -> float:
        train = self._config.train
        epoch = self._state.step * train.batch // len(self._images)
        rate = train.learning_rate * train.decay ** (epoch // train.decay_epochs)
        if share > 1 - train.cooldown:
            rate *= COOL ** ((share - 1 + train.cooldown) / train.cooldown)
        return rate

    def _batch(self, step: int) -> Float[Tensor, "B C H W"]:
        """This rank's images of a step: every epoch goes through all scenes once, in its own order."""
        batch, count = self._config.train.batch, len(self._images)
        per_epoch = count // batch
        epoch, place = divmod(step, per_epoch)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng((self._config.train.seed, epoch)).permutation(count)
        rows = self._sharing.rows(self._order[place * batch : (place + 1) * batch])
        pixels = self._images[rows]
        if isinstance(self._images, PixelStore):
            self._images.expect(self._sharing.rows(self._order[(place + 1) * batch : (place + 2) * batch]))
        return torch.from_numpy(pixels).to(self._device).permute(0, 3, 1, 2).float().div_(255)

    def _validate(self) -> Evaluation:
        """Score the model; keep it if it is the best."""
        with phase("validating"):
            found = evaluate(self._model, self._validation, refined=False)
        # By the error, not by the labels: the model is chosen as it is trained, without looking at the ground truth.
        if -found.mse >= self._state.best:
            self._state.best = -found.mse
            self._best = self._weights()
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
            num_prototypes=self._config.model.num_prototypes,
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
        if self._run is None:
            return
        self._run.save_state(self._kept(), self._words())

    def _kept(self) -> dict[str, Tensor]:
        """All tensors that are needed to go on."""
        tensors = {f"model.{name}": value for name, value in self._model.state_dict().items()}
        for name, parameter in self._model.named_parameters():
            for key, value in self._optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}.{key}"] = value
        health = self._state.health
        return tensors | {f"health.{field.name}": getattr(health, field.name) for field in dataclasses.fields(Health)}

    def _words(self) -> dict[str, Any]:
        """How far training is, and how good it was at its best."""
        state = self._state
        return {"step": state.step, "seconds": state.seconds, "before": state.before, "best": state.best}


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those of the tensors whose names begin so, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
