"""Colouring and painting by compiled loops beside the tensors that are their reference, and their gradients."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pcdnet.model import compiled
from pcdnet.model.colour import least_squares_colours
from pcdnet.model.composition import FAINT, compose
from pcdnet.model.geometry import Geometry
from pcdnet.model.windows import Frames

pytestmark = pytest.mark.skipif(not compiled.installed(), reason="loops are compiled by Numba, the extra `fast`")
IMAGE, FRAME, IMAGES, OBJECTS = (13, 15), (6, 5), 5, 4
FEWER = torch.tensor([4, 4, 2, 0, 3])
"""Objects of every image; the other slots are empty."""
GROUNDS = ["black", "still", "own"]


def frames(rng: torch.Generator) -> Frames:
    """Places of objects that overlap, hang over every border, and are fewer than there is room for."""
    row, column = (
        torch.randint(1 - side, of, (IMAGES, OBJECTS), generator=rng) for side, of in zip(FRAME, IMAGE, strict=True)
    )
    return Frames(Geometry.touching(IMAGE, FRAME), row, column, torch.arange(OBJECTS) < FEWER[:, None])


def bank(rng: torch.Generator, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Prototypes and masks, of which some pixels are empty, and some are beyond 0 and 1 as in training."""
    prototypes = 1.2 * torch.rand(IMAGES, OBJECTS, *FRAME, generator=rng, dtype=dtype) - 0.1
    masks = 1.5 * torch.rand(IMAGES, OBJECTS, *FRAME, generator=rng, dtype=dtype) - 0.4
    return prototypes, torch.where(masks.abs() < 0.1, 0, masks)


def ground(kind: str, channels: int, rng: torch.Generator, dtype: torch.dtype) -> Tensor | None:
    """What is behind the objects: nothing, one picture for all images, or one for each."""
    count = {"black": 0, "still": 1, "own": IMAGES}[kind]
    return torch.rand(count, channels, *IMAGE, generator=rng, dtype=dtype) if count else None


def explained(
    kind: str, channels: int, max_colour: float, seed: int, dtype: torch.dtype, *, hidden: bool = False
) -> dict[str, Tensor]:
    """Colours and pictures of a random scene, and all gradients of a weighted sum of both."""
    rng = torch.Generator().manual_seed(seed)
    where, (prototypes, masks) = frames(rng), bank(rng, dtype)
    behind = ground(kind, channels, rng, dtype)
    seen = (torch.rand(1, 1, *IMAGE, generator=rng) > 0.2).to(dtype) if hidden else None
    images = torch.rand(IMAGES, channels, *IMAGE, generator=rng, dtype=dtype) * (1 if seen is None else seen)
    weights = torch.randn(images.shape, generator=rng, dtype=dtype)
    under = torch.zeros(1, channels, *IMAGE, dtype=dtype) if behind is None else behind
    inputs = [values.requires_grad_() for values in (prototypes, masks, under)]
    colour = least_squares_colours(
        images, None if behind is None else under, prototypes, masks, where, max_colour, seen
    )
    picture = compose(prototypes, masks, colour, where, under)
    total = (picture * weights).sum() + (colour * torch.randn(colour.shape, generator=rng, dtype=dtype)).sum()
    found = torch.autograd.grad(total, [*inputs, colour])
    names = "prototypes", "masks", "background", "d_colour"
    return {"colour": colour.detach(), "picture": picture.detach(), **dict(zip(names, found, strict=True))}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("kind", GROUNDS)
@pytest.mark.parametrize("channels", [1, 3])
def test_compiled_colours_pictures_and_gradients_are_those_of_tensors(
    channels: int, kind: str, dtype: torch.dtype, tolerance: float
) -> None:
    for seed, limit in enumerate((1.5, 0.5, torch.inf, 1.5, 0.7)):
        found = explained(kind, channels, limit, seed, dtype, hidden=seed > 2)
        with compiled.reference():
            expected = explained(kind, channels, limit, seed, dtype, hidden=seed > 2)
        for name, values in expected.items():
            assert values.abs().max() > 0 or name == "background", "nothing is compared"
            scale = float(values.abs().max())
            torch.testing.assert_close(found[name], values, atol=tolerance * scale, rtol=10 * tolerance, msg=name)


@pytest.mark.parametrize("kind", GROUNDS)
@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_of_compiled_colours_are_right(channels: int, kind: str, rng: torch.Generator) -> None:
    where, (prototypes, masks) = frames(rng), bank(rng, torch.float64)
    behind = ground(kind, channels, rng, torch.float64)
    images = torch.rand(IMAGES, channels, *IMAGE, generator=rng, dtype=torch.float64)
    front = Frames(where.geometry, where.row, where.column, where.exists & (torch.arange(OBJECTS) == 0))
    for those in (front, Frames(front.geometry, where.row[:, :1], where.column[:, :1], where.exists[:, :1])):
        n = those.exists.shape[1]
        inputs = tuple(each[:, :n].clone().requires_grad_() for each in (prototypes, masks))
        # What is behind others depends on their colours too, which count as fixed: so one object an image.
        assert torch.autograd.gradcheck(
            lambda p, m, those=those: least_squares_colours(images, behind, p, m, those, 1.5), inputs
        )


@pytest.mark.parametrize("kind", ["still", "own"])
@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_of_compiled_painting_are_right(channels: int, kind: str, rng: torch.Generator) -> None:
    where, (prototypes, masks) = frames(rng), bank(rng, torch.float64)
    masks = torch.where(masks <= 0, FAINT, masks)  # else paint that nobody sees learns, too
    colour = torch.rand(IMAGES, OBJECTS, channels, generator=rng, dtype=torch.float64)
    behind = ground(kind, channels, rng, torch.float64)
    assert behind is not None
    inputs = tuple(each.requires_grad_() for each in (prototypes, masks, colour, behind))
    assert torch.autograd.gradcheck(lambda p, m, c, b: compose(p, m, c, where, b), inputs, fast_mode=True)


def test_neither_threads_nor_the_batch_change_a_bit_of_what_images_give() -> None:
    rng = torch.Generator().manual_seed(3)
    where, (prototypes, masks) = frames(rng), bank(rng, torch.float32)
    images, behind = torch.rand(IMAGES, 3, *IMAGE, generator=rng), torch.rand(1, 3, *IMAGE, generator=rng)

    def gradients(part: slice) -> list[Tensor]:
        some = Frames(where.geometry, where.row[part], where.column[part], where.exists[part])
        T, M = (each[part].clone().requires_grad_() for each in (prototypes, masks))
        picture = compose(T, M, least_squares_colours(images[part], behind, T, M, some, 1.5), some, behind)
        return [picture.detach(), *torch.autograd.grad((picture - images[part]).square().sum(), [T, M])]

    whole = gradients(slice(None))
    torch.set_num_threads(3)
    try:
        threads = gradients(slice(None))
    finally:
        torch.set_num_threads(1)
    odd = gradients(slice(1, None, 2))
    for one, two, three in zip(whole, threads, odd, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one[1::2], three)


PRINTED = "from tests.model.compiled.test_painting import digest; print(digest())"
ROOT = Path(__file__).parents[3]


def digest() -> str:
    """What was computed, to the last bit."""
    found = [explained("still", 3, 1.5, seed, torch.float32)[name] for seed in range(3) for name in ("masks", "colour")]
    return hashlib.sha256(b"".join(values.detach().numpy().tobytes() for values in found)).hexdigest()


def test_loops_compute_the_same_bits_where_they_were_compiled_and_where_they_are_loaded(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PRINTED]
    compiled_here, loaded = (subprocess.check_output(command, cwd=ROOT, env=environment) for _ in range(2))
    assert compiled_here == loaded
