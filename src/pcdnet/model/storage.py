"""Storage: a model as the files of a folder, config.toml, weights.safetensors and names.toml; nothing is a pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from pcdnet.config import Config, ModelConfig
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import CHANGED, checksum, sealed_toml, whole_file
from pcdnet.files import folder as made
from pcdnet.names import Names
from pcdnet.trained import check_own

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
    check_own(Path(folder))
    folder = made(folder)
    with whole_file(folder / CONFIG) as file:
        file.write(sealed_toml(Config(model=config).to_toml("model")).encode())
    noted = {"values": values, "size": learned_size}
    words = {name: json.dumps(value) for name, value in noted.items() if value is not None}
    save_tensors(folder / WEIGHTS, weights, words)
    names.write(folder)


OPTIONAL = ("ignored", "hidden", "seen_in")
"""What files of version 0.1 do not hold."""
LOOKS = "looks"
"""What files of models hold whose background has several looks."""


_DAMAGE = (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, MemoryError)

SEAL = "pcdnet"
"""The one entry of the metadata: words and the checksum together, as the format keeps several in no fixed order."""


def save_tensors(
    path: Path, tensors: dict[str, Tensor], words: dict[str, str] | None = None, *cure: str | Setting
) -> None:
    """Write a safetensors file with some words, whole or not at all; `cure` ends the message of an error."""
    plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    words = words or {}
    seal = {"checksum": _checksum(plain, words), "words": words}
    content = save(plain, {SEAL: json.dumps(seal, sort_keys=True)})
    with whole_file(path, *cure, durable=True) as file:
        file.write(content)


def load_words(path: Path) -> dict[str, str]:
    """The words in a safetensors file, unproven: without its tensors, the checksum says nothing."""
    with _opened(path) as file:
        return _unsealed(file.metadata())[0]


def load_tensors(path: Path, cure: str = "use a sound file, or train anew") -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and the words in it, as they were written.

    `cure` ends the message of an error. Files of version 0.1 and of other programs have no checksum, and are
    read as they are.
    """
    with _opened(path, cure) as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        words, expected = _unsealed(file.metadata())
        if expected is not None and expected != _checksum(tensors, words):
            raise ValueError(CHANGED)
    return tensors, words


@contextmanager
def _opened(path: Path, cure: str = "use a sound file, or train anew") -> Iterator[Any]:
    """A safetensors file; all that is wrong with it, found by whomever, is reported as one sentence."""
    try:
        with path.open("rb"):  # which says why it cannot be read, where safetensors says that it is not there
            pass
        with safe_open(path, framework="pt") as file:
            yield file
    except _DAMAGE as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or "it does not fit into memory"
        raise PcdnetError(f"cannot read {path}: {reason}; {cure}") from None


def _unsealed(metadata: dict[str, str] | None) -> tuple[dict[str, str], str | None]:
    """The words of a file, and the checksum of all that is in it, if it has one; or a ValueError."""
    if not metadata or SEAL not in metadata:
        return metadata or {}, None
    seal = json.loads(metadata[SEAL])
    return dict(seal["words"]), str(seal["checksum"])


def _checksum(tensors: dict[str, Tensor], words: dict[str, str]) -> str:
    parts = [json.dumps(words, sort_keys=True).encode()]
    for name, value in sorted(tensors.items()):
        parts.append(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        parts.append(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return checksum(*parts)


def fill(model: torch.nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Give a model the weights of a file; what does not fit it, or is no finite number, is refused."""
    if LOOKS in tensors and getattr(model, LOOKS, ...) is None:
        _check_looks(tensors, path)
        model.register_buffer(LOOKS, tensors[LOOKS].clone())
    model.load_state_dict(fitting(model, tensors, path))


def fitting(model: torch.nn.Module, tensors: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Those of the tensors of a file that are a model's weights, if there are all of them and they fit it."""
    expected = model.state_dict()
    for name in OPTIONAL:
        if name in expected and name not in tensors:
            tensors = {**tensors, name: expected[name]}
    for name, value in expected.items():
        check_tensor(tensors, name, value, path)
    kept = {name: tensors[name] for name in expected}
    _check_field(kept, path)
    return kept


def check_tensor(tensors: dict[str, Tensor], name: str, like: Tensor, path: Path) -> None:
    """Refuse a file whose tensor of that name is not like another in shape and type, or holds no finite numbers."""
    found = tensors.get(name)
    if found is None or found.shape != like.shape or found.dtype != like.dtype:
        given, wanted = (
            "nothing" if each is None else f"{tuple(each.shape)} of {str(each.dtype).removeprefix('torch.')}"
            for each in (found, like)
        )
        raise PcdnetError(f"{path} holds {given} for {name}, not {wanted}; it belongs to another {CONFIG}")
    if not torch.isfinite(found).all():
        raise PcdnetError(f"{name} in {path} holds values that are no finite numbers; use a sound file")


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
