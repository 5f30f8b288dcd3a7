"""pcdnet: find the repeating objects in images without labels, and explain every image as a stack of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcdnet.config import Config
    from pcdnet.decomposition import Decomposition, SceneObject
    from pcdnet.errors import PcdnetError
    from pcdnet.model.bank import PrototypeBank
    from pcdnet.model.network import PCDNet
    from pcdnet.scene import Scene, Scenes
    from pcdnet.training.loop import fit
    from pcdnet.training.run import load

    __version__: str

__all__ = [
    "Config",
    "Decomposition",
    "PCDNet",
    "PcdnetError",
    "PrototypeBank",
    "Scene",
    "SceneObject",
    "Scenes",
    "__version__",
    "fit",
    "load",
]

_HOMES = {
    "Config": "pcdnet.config",
    "Decomposition": "pcdnet.decomposition",
    "PCDNet": "pcdnet.model.network",
    "PcdnetError": "pcdnet.errors",
    "PrototypeBank": "pcdnet.model.bank",
    "Scene": "pcdnet.scene",
    "SceneObject": "pcdnet.decomposition",
    "Scenes": "pcdnet.scene",
    "fit": "pcdnet.training.loop",
    "load": "pcdnet.training.run",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first touched: torch alone takes seconds, and `--help` needs none of it."""
    if name == "__version__":
        value = import_module("importlib.metadata").version("pcdnet")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'pcdnet' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
