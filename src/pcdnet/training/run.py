"""Run: the folder of a training: configuration, weights, metrics, and the state to go on from.

    config.toml           what was trained
    weights.safetensors   the best model so far, by validation
    state.safetensors     the last model with all that is needed to go on exactly as if nothing had happened
    metrics.jsonl         a line for every report, validation and healing event

Each file is written whole under another name and then renamed, so a run that is killed at any moment can be resumed.
Nothing in it is a pickle.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pcdnet.config import Config
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.training.reset import Health

CONFIG, WEIGHTS, STATE, METRICS = "config.toml", "weights.safetensors", "state.safetensors", "metrics.jsonl"
FILES = (CONFIG, WEIGHTS, STATE, METRICS)


@dataclass(slots=True)
class State:
    """Everything that changes in training, apart from the model and the optimizer."""

    step: int
    """Steps done."""
    seconds: float
    """Time that training took so far."""
    best: float
    """The best validation so far: less its mean squared error, so larger is better."""
    health: Health
    """How the prototypes fare."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder."""

    folder: Path
    """Where it is."""
    config: Config
    """What is trained in it."""

    @staticmethod
    def create(folder: str | Path, config: Config, *, force: bool = False) -> Run:
        """Start a run; a folder that holds one already is only overwritten with `force`."""
        folder = Path(folder)
        used = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
        if used and not force:
            raise PcdnetError(
                f"{folder} is in use; add --resume to go on, --force to start anew, or choose another --out"
            )
        if used and not (folder / CONFIG).is_file():
            raise PcdnetError(
                f"{folder} holds other things than a run, so --force does not touch it; choose another --out"
            )
        try:
            for name in FILES:
                (folder / name).unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / CONFIG, config.to_toml().encode())
        except OSError as error:
            raise PcdnetError(f"cannot write the run {folder}: {error}; choose another --out") from None
        return Run(folder, config)

    @staticmethod
    def open(folder: str | Path) -> Run:
        """An existing run."""
        folder = Path(folder)
        if not (folder / CONFIG).is_file():
            raise PcdnetError(f"{folder} is no run: it holds no {CONFIG}; give a folder that `pcdnet train --out` made")
        return Run(folder, Config.load(folder / CONFIG))

    def save_weights(self, model: PCDNet) -> None:
        """Keep this model as the best so far."""
        self._save(WEIGHTS, dict(model.state_dict()), {})

    def save_state(self, model: PCDNet, optimizer: torch.optim.Adam, state: State) -> None:
        """Keep all that is needed to go on."""
        tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
        for name, parameter in model.named_parameters():
            for key, value in optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}.{key}"] = value
        for key in ("usage", "error", "value", "changed"):
            tensors[f"health.{key}"] = getattr(state.health, key)
        words = {"step": state.step, "seconds": state.seconds, "best": state.best}
        self._save(STATE, tensors, {"state": json.dumps(words)})

    def load_state(self, model: PCDNet, optimizer: torch.optim.Adam) -> State:
        """Put model and optimizer back to where the run stopped."""
        tensors, metadata = _load(self.folder / STATE)
        _fill(
            model,
            {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")},
            self.folder / STATE,
        )
        for name, parameter in model.named_parameters():
            prefix = f"optimizer.{name}."
            kept = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
            if kept:
                moments = {key: kept[key].to(parameter.device) for key in ("exp_avg", "exp_avg_sq")}
                optimizer.state[parameter] = {"step": kept["step"], **moments}
        words = json.loads(metadata["state"])
        health = Health(*(tensors[f"health.{key}"] for key in ("usage", "error", "value", "changed")))
        return State(words["step"], words["seconds"], words["best"], health)

    def load_weights(self) -> dict[str, Tensor]:
        """The best weights so far."""
        return _load(self.folder / WEIGHTS)[0]

    def has_state(self) -> bool:
        """Whether there is something to go on from."""
        return (self.folder / STATE).is_file()

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of the metrics file; a last line that was cut off is left out."""
        path = self.folder / METRICS
        if not path.is_file():
            return []
        lines = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return lines

    def rewind(self, step: int) -> None:
        """Forget what the metrics say of later steps: they are about to be done again."""
        kept = [line for line in self.metrics() if line["step"] <= step]
        _write(self.folder / METRICS, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def log(self, **values: Any) -> None:
        """Add a line to the metrics."""
        try:
            with (self.folder / METRICS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")
        except OSError as error:
            raise PcdnetError(f"cannot write to {self.folder}: {error}; make room, then go on with --resume") from None

    def _save(self, name: str, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        partial = self.folder / f"{name}.partial"
        try:
            save_file({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, partial, metadata)
            partial.replace(self.folder / name)
        except (OSError, SafetensorError) as error:
            partial.unlink(missing_ok=True)
            raise PcdnetError(f"cannot write to {self.folder}: {error}; make room, then go on with --resume") from None


def load(folder: str | Path, device: str = "cpu") -> PCDNet:
    """The best model of a run, in evaluation mode."""
    run = Run.open(folder)
    path = run.folder / WEIGHTS
    if not path.is_file():
        raise PcdnetError(f"{run.folder} has no weights yet; train it to its first validation with --resume")
    tensors, _ = _load(path)
    background = tensors.get("background")
    model = PCDNet(run.config.model, None if background is None else (background.shape[1], background.shape[2]))
    _fill(model, tensors, path)
    return model.to(device).eval()


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise PcdnetError(f"cannot read {path}: {error}; use a sound run, or train anew with --force") from None


def _fill(model: PCDNet, tensors: dict[str, Tensor], path: Path) -> None:
    expected = model.state_dict()
    for name, value in expected.items():
        if name not in tensors or tensors[name].shape != value.shape:
            given = tuple(tensors[name].shape) if name in tensors else "nothing"
            raise PcdnetError(
                f"{path} holds {given} for {name}, not {tuple(value.shape)}; it belongs to another config.toml"
            )
        if not torch.isfinite(tensors[name]).all():
            raise PcdnetError(f"{name} in {path} holds values that are no finite numbers; use a sound file")
    model.load_state_dict({name: tensors[name] for name in expected})


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)
