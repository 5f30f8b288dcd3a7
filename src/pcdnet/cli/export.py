"""`pcdnet export`: a run as a model for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcdnet.cli.arguments import RunArgument

if TYPE_CHECKING:
    from pcdnet.model.onnx.parity import Parity

EXAMPLE = """
import numpy, onnxruntime
session = onnxruntime.InferenceSession({name!r})
images = numpy.zeros({shape}, numpy.float32)  # yours: {kind}, values from 0 to 1
{outputs} = session.run(None, {{"images": images}})"""
"""How the file is used, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write a run as an ONNX model that finds the same objects, for images of one size."""

    folder: RunArgument

    onnx: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The .onnx file to write."""

    size: Annotated[
        tuple[int, int] | None,
        tyro.conf.arg(metavar="HEIGHT WIDTH", help_behavior_hint="(default: that of the images it was trained on)"),
    ] = None
    """Size of the images that the model will take."""

    batch: int = 1
    """How many images it will take in a call."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.model.onnx import export_onnx
        from pcdnet.run import RunFolder

        run = RunFolder.open(self.folder)
        model = run.load_model()
        written = export_onnx(model, self.onnx, size=self.size or model.image_size or run.image_size, batch=self.batch)
        shape = " x ".join(map(str, written.shape))
        print(f"wrote {self.onnx}   {written.bytes / 1e6:.1f} MB, {shape}, up to {model.config.max_objects} objects")
        if model.config.restarts > 0:
            print("it chooses greedily: refinement is not in the file")
        if written.coarse:
            print(_coarse(model.config.poses))
        print(_checked(written.parity))
        kind = "grey" if model.config.channels == 1 else "RGB"
        print("next: use it in any program, for example")
        outputs = ", ".join(written.outputs)
        print(EXAMPLE.format(name=str(self.onnx), shape=written.shape, kind=kind, outputs=outputs))


def _coarse(poses: int) -> str:
    """A sentence on what the file of a model with poses leaves out."""
    where = "objects lie at whole pixels" + (f", each in one of {poses} poses" if poses > 1 else "")
    return f"{where}: what lies between them is not in the file"


def _checked(parity: Parity | None) -> str:
    """A sentence on how the file, read back, compares with the model on images of the model's own objects."""
    if parity is None:
        return "not checked, as onnxruntime is missing; run: pip install 'pcdnet[onnx]'"
    if parity.shared < parity.objects:
        return (
            f"checked: onnxruntime explains drawn images as well as pcdnet, with {parity.shared} of "
            f"{parity.objects} objects the same; prototypes that are alike can stand for each other"
        )
    return (
        f"checked: onnxruntime finds the same {parity.objects} objects as pcdnet in images drawn for it; "
        f"pixels differ by {parity.difference:.0e} at most"
    )
