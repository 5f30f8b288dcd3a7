"""Models for the tests of ONNX files, and the question whether a file finds what its model finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import torch
from onnx import helper
from torch import Tensor

from pcdnet.config import Background, ModelConfig
from pcdnet.decomposition import POSE
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import to_onnx
from pcdnet.model.onnx.file import IR, OPSET
from pcdnet.model.onnx.graph import BOOL, FLOAT, INT, Graph, Value
from pcdnet.model.onnx.parity import run
from pcdnet.model.poses.pose import ANGLE, MIRRORED, SCALE
from pcdnet.model.poses.sprites import upright_positions
from pcdnet.model.poses.variants import variants_of
from tests.model import models
from tests.oracle.scenes import random_bank, random_scene, random_weights

SIZE, FRAME = (30, 27), (11, 9)
KINDS = {"f": FLOAT, "i": INT, "b": BOOL}


def random_model(
    seed: int, channels: int = 3, background: Background = "black", **fields: Any
) -> tuple[PCDNet, list[Tensor]]:
    """A model of random prototypes, and scenes of them that overlap each other and the border."""
    rng = torch.Generator().manual_seed(seed)
    bank = random_bank(rng, 4, FRAME, (channels, *SIZE) if background != "black" else None, torch.float32)
    scenes = [random_scene(rng, bank, SIZE, channels, count % 5, noise=0.01) for count in range(10)]
    config: dict[str, Any] = {
        "max_objects": 4,
        "peaks_per_prototype": 3,
        "min_error_reduction": 0.05,
        "restarts": 0,
        "depth_order": False,
        **fields,
    }
    sizes: dict[str, Any] = {
        "num_prototypes": 4,
        "prototype_size": FRAME,
        "channels": channels,
        "background": background,
    }
    model = PCDNet.from_bank(bank, ModelConfig(**sizes, **config))
    if model.colour is not None:
        random_weights(rng, model.colour)
        torch.nn.init.constant_(model.colour.head.bias, 0.7)  # untrained, but not so dim that nothing is ever chosen
    return model, scenes


def posed_model(
    seed: int, channels: int = 3, background: Background = "black", **fields: Any
) -> tuple[PCDNet, list[Tensor]]:
    """The same of prototypes in any of the coarse poses; by default two angles in two sizes, mirrored or not."""
    poses = {"rotations": 2, "rotation_range": (-20.0, 25.0), "scales": 2, "scale_range": (0.8, 1.2), "mirror": True}
    model, _ = random_model(seed, channels, background, **{"fine_poses": False, **poses, **fields})
    rng, bank = torch.Generator().manual_seed(seed), variants_of(model.weights().map(Tensor.detach), model.config)
    return model, [random_scene(rng, bank, SIZE, channels, count % 5, noise=0.01) for count in range(10)]


def true_model(**fields: Any) -> PCDNet:
    """A model of the true prototypes of Tetrominoes that chooses greedily, as files do."""
    return models.true_model(restarts=0, depth_order=False, **fields)


def agree(model: PCDNet, images: Tensor) -> int:
    """Check that the file finds the same in the same order as the model; how many objects that were."""
    found = run(to_onnx(model, (images.shape[2], images.shape[3]), len(images)), images)
    with torch.inference_mode():
        layers = model(images)
    where = layers.placement
    assert torch.equal(found["prototype"], where.prototype)
    positions = upright_positions(where, model.config)
    assert torch.equal(found["position"], positions.long() * where.exists[..., None])
    assert torch.equal(positions, positions.round())
    if model.config.posed:
        poses = torch.stack([found[name].float() for name in POSE], dim=-1)
        assert torch.equal(poses, where.pose[..., [ANGLE, SCALE, MIRRORED]])
    torch.testing.assert_close(found["reconstruction"], layers.reconstruction, atol=1e-4, rtol=0)
    torch.testing.assert_close(found["colour"], layers.colour, atol=1e-4, rtol=0)
    torch.testing.assert_close(found["gain"], where.error_reduction, atol=1e-3, rtol=1e-4)
    assert torch.equal(found["instances"], layers.instances().long())
    return int(where.exists.sum())


def evaluate(graph: Graph, outputs: list[Value], **inputs: np.ndarray) -> list[np.ndarray]:
    """What onnxruntime makes of values of a graph, whose inputs are given by name."""
    given = [helper.make_tensor_value_info(name, KINDS[x.dtype.kind], x.shape) for name, x in inputs.items()]
    named = [helper.make_tensor_value_info(each.name, each.dtype, None) for each in outputs]
    proto = helper.make_model(
        graph.proto("test", given, named), opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR
    )
    session: Any = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run([each.name for each in outputs], inputs)
    return found
