"""ONNX: the model as one file that any ONNX runtime can run, for images of one size; it needs the extra `onnx`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet


def to_onnx(model: PCDNet, size: tuple[int, int], batch: int = 1, *, names: Sequence[str] = ()) -> bytes:
    """The ONNX file that finds the model's objects in `batch` images of height and width `size`.

    It chooses greedily, as the model does with `refinement = 0`, and in evaluation mode. `names` are those of the
    prototypes, for the file's metadata.
    """
    require("onnx")
    from pcdnet.model.onnx.file import written

    return written(model, size, batch, names)


def require(package: str) -> None:
    """Complain where a package of the extra `onnx` is missing."""
    if find_spec(package) is None:
        raise PcdnetError(f"ONNX files need {package}, which is missing; run: pip install 'pcdnet[onnx]'")
