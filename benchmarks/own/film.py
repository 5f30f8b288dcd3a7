"""Film: sprites that move over a textured ground, seen by a camera that moves, too."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64
from scipy.ndimage import gaussian_filter

from benchmarks.own.pictures import Pictures, Thing, compose, sign

HEIGHT, WIDTH, WORLD = 120, 160, (300, 400)
"""The view, and the ground that it moves over."""
SPRITES = {
    "♥": (225.0, 50.0, 60.0),
    "★": (250.0, 215.0, 60.0),
    "✈": (240.0, 240.0, 245.0),
    "☻": (60.0, 70.0, 200.0),
    "✚": (30.0, 25.0, 30.0),
}
"""The kinds and their colours."""
SIZE, COUNT = 28, 36
"""Size of the sprites, and how many are on the ground: about six are in the view."""


def make(count: int, seed: int) -> Pictures:
    """The frames of a film; sprites bounce at the edges of the ground, and the nearer ones hide the others."""
    rng = np.random.default_rng(seed)
    earth = ground(rng)
    kinds = rng.permutation(np.arange(COUNT) % len(SPRITES)).tolist()
    shapes = [sign(symbol, SIZE).alpha for symbol in SPRITES]
    paths = np.stack([_path(rng, shapes[kind].shape, count) for kind in kinds])
    made = []
    for frame, (top, left) in enumerate(camera(rng, count).tolist()):
        things = [
            Thing(kind, shapes[kind], row - top, column - left, [*SPRITES.values()][kind])
            for kind, (row, column) in zip(kinds, paths[:, frame].tolist(), strict=True)
        ]
        made.append(compose(earth[top : top + HEIGHT, left : left + WIDTH], things))
    return Pictures(
        images=[image.round().astype(np.uint8) for image, _ in made],
        ground_truth=[true for _, true in made],
        kinds=tuple(SPRITES),
    )


def ground(rng: np.random.Generator) -> Float64[np.ndarray, "H W 3"]:
    """Smooth random texture, coarse and fine."""
    made = np.empty((*WORLD, 3))
    coarse, fine = (_texture(rng, sigma) for sigma in (9.0, 2.5))
    for channel, level in enumerate((112.0, 128.0, 92.0)):
        made[..., channel] = level + 18 * coarse + 10 * fine + 6 * _texture(rng, 5.0)
    return made.clip(0, 255)


def camera(rng: np.random.Generator, count: int) -> Int64[np.ndarray, "count 2"]:
    """Top row and left column of the view in every frame, in whole pixels: to and fro at two slow rhythms."""
    time = np.arange(count)
    path = []
    for size, view, period in zip(WORLD, (HEIGHT, WIDTH), rng.uniform((90, 130), (120, 170)), strict=True):
        swing = np.sin(2 * np.pi * time / period + rng.uniform(0, 2 * np.pi))
        path.append(((size - view) * (0.5 + 0.5 * swing)).round())
    return np.stack(path, axis=1).astype(np.int64)


def _texture(rng: np.random.Generator, sigma: float) -> Float64[np.ndarray, "H W"]:
    """Noise of standard deviation 1 that is smooth over so many pixels."""
    noise = gaussian_filter(rng.normal(size=WORLD), sigma, mode="wrap")
    smooth: np.ndarray = noise / noise.std()
    return smooth


def _path(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> Int64[np.ndarray, "count 2"]:
    """The places of a sprite that moves evenly and is reflected at the edges of the ground."""
    room = np.array(WORLD) - shape
    speed = rng.uniform(0.5, 2.0, 2) * rng.choice([-1, 1], 2)
    way = (rng.uniform(0, room) + speed * np.arange(count)[:, None]) % (2 * room)
    path: np.ndarray = np.minimum(way, 2 * room - way).round().astype(np.int64)
    return path
