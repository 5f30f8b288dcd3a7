"""`pcdnet export`: a run as a model for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcdnet.cli.arguments import RunFolder
from pcdnet.cli.origin import ORIGIN, Origin
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.model.network import PCDNet

EXAMPLE = """
import numpy, onnxruntime
session = onnxruntime.InferenceSession({name!r})
images = numpy.zeros({shape}, numpy.float32)  # yours: {kind}, values from 0 to 1
reconstruction, prototype, position, colour, gain, instances = session.run(None, {{"images": images}})"""
"""How the file is used, as it is printed."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write a run as an ONNX model that finds the same objects, for images of one size."""

    folder: RunFolder

    onnx: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """The .onnx file to write."""

    size: Annotated[
        tuple[int, int] | None,
        tyro.conf.arg(
            metavar="HEIGHT WIDTH",
            help_behavior_hint="(default: that of the run's background, or of the images it was trained on)",
        ),
    ] = None
    """Size of the images that the model will take."""

    batch: int = 1
    """How many images it will take in a call."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.cli.model import load_model
        from pcdnet.files import whole_file
        from pcdnet.model.onnx import require, to_onnx
        from pcdnet.names import Names

        if self.onnx.suffix != ".onnx":
            raise PcdnetError(f"{self.onnx} is no .onnx file; use {self.onnx.with_suffix('.onnx')}")
        require("onnx")
        model = load_model(self.folder)
        (H, W), config = self._size(model), model.config
        names = Names.read(self.folder, config.num_prototypes)
        content = to_onnx(model, (H, W), self.batch, names=list(names))
        with whole_file(self.onnx) as file:
            file.write(content)
        size = f"{len(content) / 1e6:.1f} MB, {self.batch} x {config.channels} x {H} x {W}, up to {config.max_objects} objects"
        print(f"wrote {self.onnx}   {size}")
        if config.restarts > 0:
            print("it chooses greedily: refinement is not in the file")
        print(self._checked(model, (H, W)))
        shape, kind = (self.batch, config.channels, H, W), "grey" if config.channels == 1 else "RGB"
        print(EXAMPLE.format(name=str(self.onnx), shape=shape, kind=kind))

    def _size(self, model: PCDNet) -> tuple[int, int]:
        """The size of the images: as it was said, or as the run knows it."""
        from pcdnet.data.tetrominoes import SIZE

        if self.size is not None:
            return self.size
        if model.background is not None:
            return model.background.shape[1], model.background.shape[2]
        known = (self.folder / ORIGIN).is_file()  # a run made in Python has none, and may be of anything
        if known and Origin.read(self.folder).data == "tetrominoes":
            return SIZE, SIZE
        raise PcdnetError(
            f"{self.folder} does not say how large its images are; give --size HEIGHT WIDTH, the size of yours"
        )

    def _checked(self, model: PCDNet, size: tuple[int, int]) -> str:
        """A sentence on how the file, read back, compares with the model on images of the model's own objects."""
        if find_spec("onnxruntime") is None:
            return "not checked, as onnxruntime is missing; run: pip install 'pcdnet[onnx]'"
        from pcdnet.model.onnx.parity import compare, sample

        parity = compare(self.onnx.read_bytes(), model, sample(model, size, self.batch))
        if not parity.as_good:
            raise PcdnetError(
                f"{self.onnx} was written, but onnxruntime finds only {parity.shared} of {parity.objects} objects in "
                f"drawn images with it; do not use it, and try another version of onnxruntime"
            )
        if parity.shared < parity.objects:
            return (
                f"checked: onnxruntime explains drawn images as well as pcdnet, with {parity.shared} of "
                f"{parity.objects} objects the same; prototypes that are alike can stand for each other"
            )
        return (
            f"checked: onnxruntime finds the same {parity.objects} objects as pcdnet in images drawn for it; "
            f"pixels differ by {parity.difference:.0e} at most"
        )
