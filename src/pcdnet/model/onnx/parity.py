"""Parity: whether an ONNX file finds what the model finds; it needs onnxruntime."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.model.composition import compose
from pcdnet.model.engine import Layers
from pcdnet.model.geometry import Geometry
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import require
from pcdnet.model.poses.pose import ANGLE, MIRRORED, SCALE
from pcdnet.model.poses.sprites import upright_positions
from pcdnet.model.poses.variants import in_coarse_poses, in_images, variants_of
from pcdnet.model.windows import Frames

SAME_ERROR = 1e-3
"""Explanations are as good as each other where their squared errors differ by less than this share of the images."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parity:
    """What an ONNX file found, beside what the model finds without what files leave out."""

    objects: int
    """How many objects the model found."""
    shared: int
    """How many of them the file found too, in the same image, of the same prototype, in the same place and pose."""
    difference: float
    """The largest difference between pixels of their reconstructions."""
    as_good: bool
    """Whether both explain the images equally well, be it with the same objects or, where objects tie, with others."""


def run(content: bytes, images: Float[Tensor, "B C H W"]) -> dict[str, Tensor]:
    """What an ONNX file makes of a batch of its size, by name, as onnxruntime computes it on the CPU."""
    require("onnxruntime")
    import onnxruntime  # type: ignore[import-untyped]

    session: Any = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {"images": images.contiguous().numpy()})
    return {name: torch.from_numpy(array) for name, array in zip(names, found, strict=True)}


@torch.inference_mode()
def compare(content: bytes, model: PCDNet, images: Float[Tensor, "B C H W"]) -> Parity:
    """Explain images with an ONNX file and with the model it was made of, which leaves out what files do, too."""
    found = run(content, images)
    layers, config = _explained(model, images), in_coarse_poses(model.config)
    where = layers.placement
    theirs = torch.cat([found["prototype"][..., None], found["position"]], dim=-1)
    ours = torch.cat([where.prototype[..., None], upright_positions(where, config)], dim=-1)
    if config.posed:
        poses = [found[name][..., None].float() for name in ("angle", "scale", "mirrored")]
        theirs = torch.cat([theirs, *poses], dim=-1)
        ours = torch.cat([ours, where.pose[..., [ANGLE, SCALE, MIRRORED]]], dim=-1)
    pairs = zip(_objects(ours), _objects(theirs), strict=True)
    errors = [(x - images).square().sum() for x in (found["reconstruction"], layers.reconstruction)]
    return Parity(
        objects=int(where.exists.sum()),
        shared=sum(len(one & other) for one, other in pairs),
        difference=float((found["reconstruction"] - layers.reconstruction).abs().max()),
        as_good=bool((errors[0] - errors[1]).abs() <= SAME_ERROR * (images.square().sum() + 1)),
    )


def _explained(model: PCDNet, images: Float[Tensor, "B C H W"]) -> Layers:
    """What the model finds without refinement, at whole pixels and in the coarse poses."""
    model = copy.deepcopy(model).cpu().float()
    model.config = in_coarse_poses(model.config)
    return model.explain(images, None, training=False, refined=False)


@torch.inference_mode()
def sample(model: PCDNet, size: tuple[int, int], batch: int, seed: int = 0) -> Float[Tensor, "B C H W"]:
    """Images of the model's own prototypes, in poses, places and colours drawn by seed, over its background."""
    rng = torch.Generator().manual_seed(seed)
    bank, config = model.bank().map(Tensor.cpu), in_coarse_poses(model.config)
    if config.posed:
        bank, _ = in_images(variants_of(bank, config), size)
    (H, W), (h, w), shape = size, bank.frame, (batch, config.max_objects)
    index = torch.randint(len(bank.prototypes), shape, generator=rng)
    row = torch.randint(H - h + 1, shape, generator=rng)
    column = torch.randint(W - w + 1, shape, generator=rng)
    colour = 0.4 + 0.6 * torch.rand(*shape, config.channels, generator=rng)
    if config.colour == "none":
        colour = torch.ones_like(colour)
    frames = Frames(Geometry.touching(size, bank.frame), row, column, torch.ones_like(row, dtype=torch.bool))
    background = bank.behind(colour.new_zeros(config.channels, *size))
    return compose(bank.prototypes[index], bank.masks[index], colour, frames, background[None]).clamp(0, 1)


def _objects(things: Tensor) -> list[set[tuple[float, ...]]]:
    """The objects of every image."""
    return [{tuple(thing) for thing in image if thing[0] >= 0} for image in things.tolist()]
