"""pcdnet: find the repeating objects in images without labels, and explain every image as a stack of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcdnet.config import Config, ModelConfig
    from pcdnet.corrections import Drawn
    from pcdnet.data.view import View
    from pcdnet.decomposition import Decomposition, SceneObject
    from pcdnet.errors import PcdnetError
    from pcdnet.model.bank import PrototypeBank
    from pcdnet.model.network import PCDNet
    from pcdnet.model.onnx import export_onnx
    from pcdnet.output.decompose import decompose_files
    from pcdnet.output.drawing import figure
    from pcdnet.output.gather import gather
    from pcdnet.output.push import push
    from pcdnet.output.report import report
    from pcdnet.output.runs import runs
    from pcdnet.output.study import study_report
    from pcdnet.run import RunFolder, load
    from pcdnet.scene import Scene, Scenes
    from pcdnet.trained import Card, models
    from pcdnet.training.evaluation import evaluate
    from pcdnet.training.fit import fit
    from pcdnet.training.relearning import Learned, adopt, learn_again, restore
    from pcdnet.training.suggestions import suggest
    from pcdnet.training.tuning import tune
    from pcdnet.training.verdict import Verdict, judge

    __version__: str

_HOMES = {
    "Card": "trained",
    "Config": "config",
    "Decomposition": "decomposition",
    "Drawn": "corrections",
    "Learned": "training.relearning",
    "ModelConfig": "config",
    "PCDNet": "model.network",
    "PcdnetError": "errors",
    "PrototypeBank": "model.bank",
    "RunFolder": "run",
    "Scene": "scene",
    "SceneObject": "decomposition",
    "Scenes": "scene",
    "Verdict": "training.verdict",
    "View": "data.view",
    "adopt": "training.relearning",
    "decompose_files": "output.decompose",
    "evaluate": "training.evaluation",
    "export_onnx": "model.onnx",
    "figure": "output.drawing",
    "fit": "training.fit",
    "gather": "output.gather",
    "judge": "training.verdict",
    "learn_again": "training.relearning",
    "load": "run",
    "models": "trained",
    "push": "output.push",
    "report": "output.report",
    "restore": "training.relearning",
    "runs": "output.runs",
    "study_report": "output.study",
    "suggest": "training.suggestions",
    "tune": "training.tuning",
}

__all__ = [
    "Card",
    "Config",
    "Decomposition",
    "Drawn",
    "Learned",
    "ModelConfig",
    "PCDNet",
    "PcdnetError",
    "PrototypeBank",
    "RunFolder",
    "Scene",
    "SceneObject",
    "Scenes",
    "Verdict",
    "View",
    "__version__",
    "adopt",
    "decompose_files",
    "evaluate",
    "export_onnx",
    "figure",
    "fit",
    "gather",
    "judge",
    "learn_again",
    "load",
    "models",
    "push",
    "report",
    "restore",
    "runs",
    "study_report",
    "suggest",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first touched: torch alone takes seconds, and `--help` needs none of it."""
    if name == "__version__":
        value = import_module("importlib.metadata").version("pcdnet")
    elif name in _HOMES:
        value = getattr(import_module(f"pcdnet.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'pcdnet' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
