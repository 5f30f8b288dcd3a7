"""Storage: a model as the files of a folder, config.toml, weights.safetensors and names.toml; nothing is a pickle."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from pcdnet.config import Config, ModelConfig
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import folder as made
from pcdnet.files import whole_file
from pcdnet.names import Names

CONFIG, WEIGHTS = "config.toml", "weights.safetensors"
"""The files of a model, beside that of its names."""


def save_model(
    config: ModelConfig,
    weights: dict[str, Tensor],
    names: Names,
    folder: str | Path,
    values: tuple[float, float] | None = None,
    learned_size: tuple[int, int] | None = None,
) -> None:
    """Write a model's files, each whole or not at all; `values` and `learned_size` are noted with the weights."""
    folder = made(folder)
    with whole_file(folder / CONFIG) as file:
        file.write(Config(model=config).to_toml("model").encode())
    noted = {"values": values, "size": learned_size}
    words = {name: json.dumps(value) for name, value in noted.items() if value is not None}
    save_tensors(folder / WEIGHTS, weights, words or None)
    names.write(folder)


OPTIONAL = ("ignored", "hidden", "seen_in")
"""What files of version 0.1 do not hold."""
LOOKS = "looks"
"""What files of models hold whose background has several looks."""


def save_tensors(
    path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None, *cure: str | Setting
) -> None:
    """Write a safetensors file, whole or not at all; `cure` ends the message of an error."""
    content = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, metadata)
    with whole_file(path, *cure) as file:
        file.write(content)


def load_metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file, without its tensors."""
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise PcdnetError(f"cannot read {path}: {error}; use a sound file, or train anew") from None


def load_tensors(path: Path, cure: str = "use a sound file, or train anew") -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and its metadata; `cure` ends the message of an error."""
    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise PcdnetError(f"cannot read {path}: {error}; {cure}") from None


def fill(model: torch.nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Give a model the weights of a file; what does not fit it, or is no finite number, is refused."""
    if LOOKS in tensors and getattr(model, LOOKS, ...) is None:
        _check_looks(tensors, path)
        model.register_buffer(LOOKS, tensors[LOOKS].clone())
    expected = model.state_dict()
    for name in OPTIONAL:
        if name in expected and name not in tensors:
            tensors = {**tensors, name: expected[name]}
    for name, value in expected.items():
        if name not in tensors or tensors[name].shape != value.shape:
            given = tuple(tensors[name].shape) if name in tensors else "nothing"
            raise PcdnetError(
                f"{path} holds {given} for {name}, not {tuple(value.shape)}; it belongs to another {CONFIG}"
            )
        if not torch.isfinite(tensors[name]).all():
            raise PcdnetError(f"{name} in {path} holds values that are no finite numbers; use a sound file")
    _check_field(tensors, path)
    model.load_state_dict({name: tensors[name] for name in expected})


def _check_field(tensors: dict[str, Tensor], path: Path) -> None:
    """Refuse a field that does not lie in the background."""
    if "seen_in" not in tensors or "background" not in tensors:
        return
    (top, left, height, width), (_, H, W) = tensors["seen_in"].tolist(), tensors["background"].shape
    if not (0 <= top < top + height <= H and 0 <= left < left + width <= W):
        raise PcdnetError(
            f"{path} looks for objects in {height}x{width} pixels at row {top}, column {left}, which are not in its "
            f"background of {H}x{W}; use a sound file"
        )


def _check_looks(tensors: dict[str, Tensor], path: Path) -> None:
    """Refuse looks that are not those of the background."""
    looks, background = tensors[LOOKS], tensors.get("background")
    if background is None or looks.dtype != torch.uint8 or looks.shape[1:] != background.shape or looks.ndim != 4:
        raise PcdnetError(
            f"{path} holds {tuple(looks.shape)} for {LOOKS}, not some of its background; use a sound file"
        )


def checked_device(name: str) -> torch.device:
    """The device of that name, if it can be used on this machine."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise PcdnetError(f"the device {name!r} cannot be used: {reason}; use ", Setting("device", "cpu")) from None
    return device
