"""ONNX: the model as one file that any ONNX runtime can run, for images of one size; it needs the extra `onnx`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import whole_file, with_ending
from pcdnet.model.network import PCDNet
from pcdnet.progress import phase

if TYPE_CHECKING:
    from pcdnet.model.onnx.parity import Parity


@dataclass(frozen=True, kw_only=True, slots=True)
class OnnxExport:
    """An ONNX file that was written."""

    path: Path
    """Where it is."""
    bytes: int
    """How large it is."""
    shape: tuple[int, int, int, int]
    """Images a call, channels, height and width that it takes."""
    outputs: tuple[str, ...]
    """What it gives, in this order; docs/onnx.md says what each of them is."""
    coarse: bool
    """Whether the model finds poses, or fractions of a pixel, that lie between those which the file knows."""
    parity: Parity | None
    """How it compares with the model on images drawn for it; None where onnxruntime is missing."""


def export_onnx(model: PCDNet, path: str | Path, *, size: tuple[int, int] | None = None, batch: int = 1) -> OnnxExport:
    """Write the model as an ONNX file that finds the same objects, and compare the file with the model.

    The file chooses greedily, as the model does with `restarts = 0` and `depth_order = False`, in evaluation mode.
    Where objects have poses it knows the coarse ones alone, at whole pixels: `fine_poses = False`, `subpixel = False`.

    Parameters
    ----------
    model
        The model; the names of its prototypes go into the file's metadata.
    path
        The .onnx file to write.
    size
        Height and width of the images that the file will take; by default those of the model's background.
    batch
        How many images it will take in a call.

    Returns
    -------
    OnnxExport
        What was written, and how it compares with the model.

    Examples
    --------
    >>> import tempfile
    >>> from pcdnet import ModelConfig, PCDNet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(PCDNet(ModelConfig(num_prototypes=2)), f"{folder}/model.onnx", size=(35, 35)).shape
    (1, 3, 35, 35)
    """
    path, size = with_ending(path, ".onnx"), size or model.image_size
    if size is None:
        raise PcdnetError("the model does not say how large its images are; give ", Setting("size"))
    with phase("making the ONNX graph"):
        content = to_onnx(model, size, batch)
    with whole_file(path) as file:
        file.write(content)
    from pcdnet.model.onnx.file import meaning_of
    from pcdnet.model.onnx.poses import left_out

    parity = None
    if find_spec("onnxruntime") is not None:
        from pcdnet.model.onnx.parity import compare, sample

        with phase("comparing onnxruntime's results with the model's"):
            parity = compare(path.read_bytes(), model, sample(model, size, batch))
        if not parity.as_good:
            raise PcdnetError(
                f"{path} was written, but onnxruntime finds only {parity.shared} of {parity.objects} objects in "
                f"drawn images with it; do not use it, and try another version of onnxruntime"
            )
    return OnnxExport(
        path=path,
        bytes=len(content),
        shape=(batch, model.config.channels, *size),
        outputs=tuple(meaning_of(model.config))[1:],
        coarse=bool(left_out(model.config)),
        parity=parity,
    )


def to_onnx(model: PCDNet, size: tuple[int, int], batch: int = 1) -> bytes:
    """The ONNX file that finds the model's objects in `batch` images of height and width `size`."""
    require("onnx")
    from pcdnet.model.onnx.file import written

    return written(model, size, batch)


def require(package: str) -> None:
    """Refuse to go on where a package of the extra `onnx` is missing."""
    if find_spec(package) is None:
        raise PcdnetError(f"ONNX files need {package}, which is missing; run: pip install 'pcdnet[onnx]'")
