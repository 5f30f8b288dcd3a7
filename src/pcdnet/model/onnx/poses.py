"""Poses in ONNX: every prototype in every coarse pose is a prototype of the graph; which, is looked up at the end."""

from __future__ import annotations

import json

import numpy as np

from pcdnet.config import ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.model.onnx.graph import Graph, Value, where
from pcdnet.model.onnx.localization import as_array
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.pose import ANGLE, MIRRORED, SCALE, pose_frame
from pcdnet.model.poses.variants import VariantSearch
from pcdnet.model.selection import EMPTY

MEANING = {
    "angle": "batch x objects: degrees counter-clockwise about the middle of the prototype's frame",
    "scale": "batch x objects: how many times as large as the prototype it is",
    "mirrored": "batch x objects: whether it is a mirror image, left to right, before it is turned",
}
"""What further comes out of a graph whose objects have poses, in this order."""

MOST_BYTES, PLANES = 2**31, 8
"""No ONNX file is larger; and numbers that are stored for each pixel of a prototype at most."""


def searched(plan: SearchPlan) -> VariantSearch:
    """How images are searched for the bank of a plan in its coarse poses; refused where no file has room for them."""
    search = VariantSearch.derive(plan)
    masks = search.plan.tight.masks
    if 4 * PLANES * masks.numel() > MOST_BYTES:
        count, (h, w) = len(search.coarse), masks.shape[1:]
        raise PcdnetError(
            f"{len(plan.bank.masks)} prototypes in {count} poses of {h}x{w} pixels are too large for an ONNX file; "
            f"train with fewer rotations or scales, or use the model in Python"
        )
    return search


def as_posed(graph: Graph, found: list[Value], search: VariantSearch, config: ModelConfig) -> list[Value]:
    """The outputs of a graph that found variants, as prototypes in poses, with what `MEANING` adds to them.

    Places are those of the prototype's upright frame, about whose middle it is turned.
    """
    painted, variant, position, *rest = found
    there, R, frame = variant >= 0, len(search.coarse), config.prototype_size
    index = where(there, variant, 0)
    margins = zip(pose_frame(frame, config), frame, search.corner, strict=True)
    shift = np.array([(outer - inner) // 2 - cut for outer, inner, cut in margins])
    prototype = where(there, index // R, EMPTY)
    position = where(there.unsqueeze(-1), position + shift, 0)
    pose, poses = index - index // R * R, as_array(search.coarse)
    angle, scale = (where(there, graph.constant(poses[:, each])[pose], 0) for each in (ANGLE, SCALE))
    mirrored = there & graph.constant(poses[:, MIRRORED] > 0)[pose]
    return [painted, prototype, position, *rest, angle, scale, mirrored]


def left_out(config: ModelConfig) -> list[str]:
    """The settings with which a model finds what its file finds, and without which it finds more."""
    between = config.fine_poses and config.rotations * config.scales > 1
    return ["fine_poses = false"] * between + ["subpixel = false"] * config.subpixel


def words(config: ModelConfig, search: VariantSearch) -> dict[str, str]:
    """What the metadata say of poses."""
    fields = ("rotations", "rotation_range", "scales", "scale_range", "mirror")
    poses = [[angle, scale, mirrored > 0] for angle, scale, mirrored, *_ in search.coarse.tolist()]
    return {
        **{name: json.dumps(getattr(config, name)) for name in fields},
        "poses": json.dumps(poses),
    }
