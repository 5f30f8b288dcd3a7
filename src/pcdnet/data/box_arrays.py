"""Box arrays: the true boxes of many scenes as a few flat arrays, as .npz files keep them; checked, and cut by scene.

`boxes` (M 4) are top, left, height and width, `box_scene` (M) says in which scene each is, `box_kind` (M) which of the
`kinds` it is, and `scored` are those of the kinds that detection scores are about. Without kinds, all are objects.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
from jaxtyping import Shaped

from pcdnet.data.notes import printable
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes

ARRAYS = ("boxes", "box_scene", "box_kind", "kinds", "scored")
"""The names of the arrays; without the first the others mean nothing."""
MOST_KINDS, LONGEST_KIND = 10_000, 200
"""More kinds than this, or longer names, are refused."""


def check_header(name: str, label: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], count: int) -> None:
    """Refuse what cannot be the array of that name, for so many boxes, before its values are read."""
    if name in ("kinds", "scored"):
        if len(shape) != 1 or shape[0] > MOST_KINDS:
            raise PcdnetError(f"{label} has shape {shape}; save a list of at most {MOST_KINDS:,} names")
        if dtype.hasobject or (shape[0] and (dtype.kind != "U" or dtype.itemsize > 4 * LONGEST_KIND)):
            raise PcdnetError(f"{label} is of type {dtype}; save names of at most {LONGEST_KIND} characters")
        return
    kinds, words, sides, form = (
        ("iuf", "numbers", (4,), "boxes x 4") if name == "boxes" else ("iu", "integers", (), "boxes")
    )
    if dtype.kind not in kinds:
        raise PcdnetError(f"{label} is of type {dtype}; save {words}")
    if shape != (count, *sides):
        raise PcdnetError(f"{label} has shape {shape}, which does not fit {count} boxes; save {form}")


def by_scene(
    arrays: Mapping[str, Shaped[np.ndarray, "*any"]], scenes: int, path: object
) -> tuple[list[Boxes], tuple[str, ...], tuple[str, ...]]:
    """The boxes of every one of so many scenes, the kinds, and those that are scored; `path` is for messages."""
    for one, other in (("boxes", "box_scene"), ("box_kind", "kinds"), ("kinds", "box_kind"), ("scored", "kinds")):
        if one in arrays and other not in arrays:
            raise PcdnetError(f"{path} has the array {one!r} but not {other!r}; save both")
    corners = arrays["boxes"].astype(np.float64)
    if not np.isfinite(corners).all() or (corners[:, 2:] <= 0).any():
        raise PcdnetError(f"'boxes' of {path} has sides that are no pixels; save finite numbers, and sides above 0")
    kinds = _words(arrays["kinds"], f"'kinds' of {path}") if "kinds" in arrays else ("object",)
    scored = _words(arrays.get("scored", np.array([], "U1")), f"'scored' of {path}")
    if not set(scored) <= set(kinds):
        raise PcdnetError(f"'scored' of {path} has {sorted(set(scored) - set(kinds))}; save names that 'kinds' has")
    numbers = arrays.get("box_kind", np.zeros(len(corners), np.int32))
    _check_range(numbers, len(kinds), f"'box_kind' of {path}", "kinds")
    corners, numbers = corners.astype(np.float32), numbers.astype(np.int32)
    _check_range(arrays["box_scene"], scenes, f"'box_scene' of {path}", "images")
    owners = arrays["box_scene"].astype(np.int64)
    order = np.argsort(owners, kind="stable")
    parts = np.split(order, np.searchsorted(owners[order], np.arange(1, scenes)))
    boxes = [Boxes(corners=corners[part], kinds=numbers[part]) for part in parts]
    return boxes, kinds, scored


def _words(values: Shaped[np.ndarray, "n"], label: str) -> tuple[str, ...]:
    """Names as they can be printed; NumPy does not check that what a file has for letters are some."""
    if values.nbytes:
        letters = np.frombuffer(values.tobytes(), np.dtype(np.uint32).newbyteorder(values.dtype.byteorder))
        if letters.max() > sys.maxunicode:
            raise PcdnetError(f"{label} has letters that do not exist; save it again with numpy.savez")
    return tuple(printable(str(value)) for value in values)


def _check_range(values: Shaped[np.ndarray, "M"], count: int, label: str, what: str) -> None:
    if values.size and not (values.min() >= 0 and values.max() < count):
        found = f"goes from {values.min()} to {values.max()}, and there are {count} {what}"
        raise PcdnetError(f"{label} {found}; save their numbers, which begin with 0")
