"""Opening: the Scenes that a name, a path or an array stands for, all of them or those for one purpose.

Generated scenes have a seed for each purpose. A folder that has folders `train`, `val` and `test` instead of images is
a data set: `train` is learned from, the best weights are chosen on `val`, and whoever just opens it gets `test`, or
`val` where there is no `test`. Of other files and folders the last scenes are kept apart from training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path

import numpy as np
from jaxtyping import Num
from numpy.typing import NDArray

from pcdnet.data import folder, remote
from pcdnet.data.intake import Header, all_in_eight_bits, check_stack, check_type
from pcdnet.data.notes import noted, printable, to_stderr
from pcdnet.data.sources import (
    FETCHED,
    GENERATED,
    TRAINING_SEED,
    VALIDATION_SEED,
    Source,
    is_generated,
    source_of,
    usable,
)
from pcdnet.data.tiles import FEWEST, apart, chosen_side
from pcdnet.data.values import MOST_IMAGES, value_range
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.pixels import PixelStore
from pcdnet.progress import counting, phase
from pcdnet.scene import Scenes

MOST_SCENES = 2**31
"""Scenes of a file that are used where nobody says how many: all, as what does not fit in memory is kept on disk."""
GENERATED_SCENES = 1000
"""Scenes that are generated where nobody says how many."""
LARGE = 1000
"""Images with more pixels a side are cut into tiles for training."""
VALIDATION_SCENES = 320
"""Scenes of a file that are kept apart from training at most; of short files a tenth."""


_Images = Callable[[int], Iterable[tuple[int, Num[np.ndarray, "H W C"]]]]  # every n-th image with its number


def open_data(name: str | Path, *, count: int, seed: int, view: View = UNCHANGED) -> Scenes:
    """Return at most `count` scenes of what a name or path stands for; what is odd or skipped is reported on stderr.

    `seed` is for generated scenes, of which there are as many as that.
    """
    if count < 1:
        raise PcdnetError(f"{count} scenes were asked for; give a count of at least 1")
    name = _here(name)
    source = _source(name)
    with phase(printable(f"{'making' if source.generated else 'reading'} {name}")):
        return _read(name, source, count, seed, view)


def _read(name: str | Path, source: Source, count: int, seed: int, view: View) -> Scenes:
    """Read or make the scenes."""
    if not source.generated:
        place = name if source.shards else _opened_part(Path(name))
        source = _source(place)
        # A picture has many tiles, or none.
        limit = None if (view.tiles and not source.strided) or count >= MOST_SCENES else count
        return source.read(place, limit=limit, view=view).first(count)
    if view.stride != 1:
        raise PcdnetError(f"{name} is made by seed, so no scene can be skipped; leave out ", Setting("stride"))
    return view.scenes(source.generate(str(name), count=count, seed=seed))


def to_scenes(
    data: str | Path | NDArray[np.generic] | Scenes,
    *,
    count: int | None = None,
    seed: int = 0,
    view: View = UNCHANGED,
) -> Scenes:
    """Return whatever a Python caller has as Scenes: a name or path, an array, or Scenes; at most `count` of them.

    An array is images x height x width, with or without 1 or 3 channels at the end; uint8, or uint16 or floats (of 0 to
    1 unless the view has values). Without a count all that is in memory is used, at most MOST_SCENES of a file, and
    GENERATED_SCENES are generated.
    """
    if isinstance(data, str | Path):
        usual = GENERATED_SCENES if is_generated(data) else MOST_SCENES
        return open_data(data, count=usual if count is None else count, seed=seed, view=view)
    if isinstance(data, np.ndarray):
        data = Scenes(images=_pixels(data, view.values), name="an array")
    if not isinstance(data, Scenes):
        raise PcdnetError(f"images of type {type(data).__name__} were given; give a NumPy array, Scenes, or {usable()}")
    return view.scenes(data.part(slice(0, view.chosen(count).stop)))


def training_data(name: str | Path, *, seed: int, view: View = UNCHANGED) -> tuple[Scenes, Scenes]:
    """Return scenes for training and, apart from them, for validation; `seed` is that of the training."""
    name = _here(name)
    source, parts = _source(name), _parts(name)
    if source.training is not None:
        counts = zip(source.training, (TRAINING_SEED, VALIDATION_SEED), strict=True)
        train, valid = (open_data(name, count=count, seed=start + seed, view=view) for count, start in counts)
        return train, valid
    if parts and "train" not in parts:
        raise PcdnetError(f"{name} has no folder train to learn from; name the folder of images itself")
    scenes = open_data(parts.get("train", name), count=MOST_SCENES, seed=seed, view=view)
    if "val" in parts:
        return _alike(scenes, open_data(parts["val"], count=MOST_SCENES, seed=seed, view=view))
    return split_scenes(scenes)


def training_view(
    data: str | Path | NDArray[np.generic] | Scenes, view: View = UNCHANGED, *, split: bool = True
) -> View:
    """Return how data are looked at in training: what `view` leaves open of values and tiles is chosen, and reported.

    Images of more than 8 bits get one range of values for all. They are cut into tiles if they are of several sizes, if
    they have more than LARGE pixels a side, or if they are to be `split` and are fewer than FEWEST; films and games
    never are.
    """
    told = printable(str(data)) if isinstance(data, str | Path) else "the images"
    with phase(f"looking through {told}"):
        headers, images = _overview(data)
    deep = sum(header.deep for header in headers.values())
    if deep and view.values is None:
        stride = -(-deep // MOST_IMAGES) if deep == len(headers) else 1
        seen = counting(images(stride), deep if stride == 1 else None, "reading which values are black and white")
        low, high = value_range(image for number, image in seen if headers[number].deep)
        to_stderr(f"{deep} images have more than 8 bits: in all of them {low:g} becomes black and {high:g} white")
        view = replace(view, values=(low, high))
    sizes = [view.size(header.size) for header in list(headers.values())[view.chosen(None)]]
    several, large = len(set(sizes)) > 1, any(max(size) > LARGE for size in sizes)
    if view.tiles is not None or not (several or large or (split and 0 < len(sizes) < FEWEST)):
        return view
    side = chosen_side(sizes)
    if side is None:
        return view
    (height, width), count = sizes[0], len(sizes)
    pictures = f"{count} pictures of several sizes are" if several else f"a picture of {height}x{width} is"
    if count > 1 and not several:
        pictures = f"{count} pictures of {height}x{width} are"
    to_stderr(f"{pictures} cut into tiles of {side}x{side}, which overlap")
    return replace(view, tiles=side)


def _overview(data: object) -> tuple[dict[int, Header], _Images]:
    """What images say of themselves, by number, and a way to go through every n-th of them."""
    if isinstance(data, str | Path):
        data = _here(data)
        path = _parts(data).get("train", data)
        source = _source(path)
        place = path if source.shards else Path(path)
        headers = source.headers(place)
        last = max(headers, default=0)
        return headers, lambda stride: noted(
            takewhile(lambda pair: pair[0] <= last, source.images(place, stride=stride))
        )
    images = data.images if isinstance(data, Scenes) else data
    if isinstance(images, PixelStore):
        N, H, W, C = images.shape
        return dict.fromkeys(range(N), Header(size=(H, W), channels=C, deep=False)), lambda _: ()
    if not isinstance(images, np.ndarray) or images.ndim not in (3, 4):  # what is wrong is reported when it is opened
        return {}, lambda _: ()
    N, H, W, *_ = images.shape
    stack = images.reshape(N, H, W, -1)
    header = Header(size=(H, W), channels=stack.shape[3], deep=images.dtype == np.uint16)
    return dict.fromkeys(range(N), header), lambda stride: zip(range(0, N, stride), stack[::stride], strict=True)


def split_scenes(scenes: Scenes) -> tuple[Scenes, Scenes]:
    """Return all but the last scenes for training, and the last, a tenth at most, for validation.

    Tiles of both do not overlap, where that is possible.
    """
    kept = min(VALIDATION_SCENES, len(scenes) // 10)
    if kept == 0:
        problem = f"{scenes.name} holds too few scenes to learn from, {len(scenes)}"
        raise PcdnetError(f"{problem}; give at least {FEWEST}, or larger pictures")
    if scenes.places is not None:
        learned, held = apart(scenes.places, scenes.images.shape[1], kept)
        return scenes.part(learned), scenes.part(held, f"{kept} of {scenes.name}")
    rest = len(scenes) - kept
    return scenes.first(rest), scenes.part(slice(rest, None), f"the last {kept} of {scenes.name}")


def held_out_data(name: str | Path, *, count: int, seed: int, view: View = UNCHANGED) -> Scenes:
    """Return at most `count` scenes that a training on `name` did not learn from.

    Generated ones are those of `seed`, which must not be a training's: begin at TEST_SEED. Of a folder with parts they
    are `test`, or `val` where there is no `test`; of all else what `training_data` keeps for validation.
    """
    name = _here(name)
    if _source(name).generated or _parts(name).keys() & {"test", "val"}:
        return open_data(name, count=count, seed=seed, view=view)
    return to_scenes(training_data(name, seed=seed, view=view)[1], count=count)


def _pixels(images: NDArray[np.generic], values: tuple[float, float] | None) -> NDArray[np.uint8]:
    """The images as 8 bits with their channels last."""
    check_stack(images.shape, "the array")
    if images.ndim == 3 and images.shape[2] in (1, 3):  # far more likely than a stack of images so narrow
        raise PcdnetError(f"the array has shape {images.shape}, which looks like one image; give a stack, array[None]")
    check_type(images.dtype, "the array")
    return all_in_eight_bits(images, values, "the array").reshape(*images.shape[:3], -1)


def _here(name: str | Path) -> str | Path:
    """A name as it is or, of what is far away and cannot be read shard by shard, the copy that is fetched."""
    if not remote.is_remote(name) or _source(name).shards:
        return name
    with phase(printable(f"fetching {name}")):
        return remote.local(str(name), FETCHED)


def _source(name: str | Path) -> Source:
    """The source of a name or path; one that has none is refused with what can be used."""
    source = source_of(name)
    if source is None:
        raise PcdnetError(_unknown(str(name)))
    return source


def _parts(name: str | Path) -> dict[str, Path]:
    """The parts of a folder; none of anything else."""
    return folder.parts(name) if _source(name).name == "folder" else {}


def _opened_part(path: Path) -> Path:
    """The folder of images that a folder stands for: itself, or one of its parts; a file is itself."""
    parts = _parts(path)
    if list(parts) == ["train"]:
        to_stderr(f"{path} has neither a folder test nor val, so these are scenes for training")
    return parts.get("test") or parts.get("val") or parts.get("train") or path


def _alike(train: Scenes, valid: Scenes) -> tuple[Scenes, Scenes]:
    """Both, if one model can look at both."""
    if train.images.shape[1:] != valid.images.shape[1:]:
        one, other = ("x".join(map(str, scenes.images.shape[1:])) for scenes in (train, valid))
        raise PcdnetError(
            f"the images of {train.name} are {one} (height, width, channels), those of {valid.name} {other}; use ",
            *(Setting("resize"), ", ", Setting("crop"), " or ", Setting("grey", True), " to make them alike"),
        )
    return train, valid


def _unknown(name: str) -> str:
    """Why a name opens nothing, in a sentence."""
    path, there = Path(name), False
    with suppress(OSError):  # too long for a name, for example
        there = path.exists()
    known = [source.name for source in GENERATED]
    alike = [] if there else get_close_matches(name.lower().replace("_", "-"), known, n=1, cutoff=0.75)
    missing = not there and not alike and (path.suffix or len(path.parts) > 1)
    cure = f"did you mean {alike[0]}?" if alike else f"use {usable()}"
    return f"{name[:200]!r} {'does not exist' if missing else 'is no data known here'}; {cure}"
