"""Text: pages of random words in proportional lower-case letters of two fonts, in uneven light, with noise."""

from __future__ import annotations

import string

import numpy as np
from jaxtyping import Float64

from benchmarks.own.pictures import GroundTruth, Pictures, Thing, advance, compose, sign

HEIGHT, WIDTH, SIZE, PITCH, MARGIN = 300, 400, 16, 26, 12
FONTS = ("DejaVuSans", "DejaVuSerif")
FREQUENCIES = (
    *(8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2.0, 6.1, 7.0, 0.2, 0.8, 4.0, 2.4),
    *(6.7, 7.5, 1.9, 0.1, 6.0, 6.3, 9.1, 2.8, 1.0, 2.4, 0.2, 2.0, 0.1),
)
"""How often the letters a to z occur in English, in per cent."""
PAPER, INK, NOISE = 235.0, 25.0, 4.0


def make(count: int, seed: int) -> Pictures:
    """Pages, each in one of the fonts; a letter is of the same kind in both."""
    made = [_page(np.random.default_rng([seed, n])) for n in range(count)]
    return Pictures(
        images=[image for image, _ in made],
        ground_truth=[true for _, true in made],
        kinds=tuple(string.ascii_lowercase),
    )


def light(rng: np.random.Generator) -> Float64[np.ndarray, "H W"]:
    """Light from one side that falls to a half on the other, and to the corners by a third more."""
    rows, columns = np.linspace(-1, 1, HEIGHT)[:, None], np.linspace(-1, 1, WIDTH)[None]
    angle = rng.uniform(0, 2 * np.pi)
    slope = (np.sin(angle) * rows + np.cos(angle) * columns) / (abs(np.sin(angle)) + abs(np.cos(angle)))
    vignette = 1 - rng.uniform(0.25, 0.35) * (rows**2 + columns**2) / 2
    lit: np.ndarray = (0.75 + 0.25 * slope) * vignette
    return lit


def _page(rng: np.random.Generator) -> tuple[np.ndarray, GroundTruth]:
    font = FONTS[rng.integers(len(FONTS))]
    page, true = compose(np.full((HEIGHT, WIDTH, 1), PAPER), _letters(rng, font))
    image = page[..., 0] * light(rng) + rng.normal(0, NOISE, (HEIGHT, WIDTH))
    return image.clip(0, 255).round().astype(np.uint8), true


def _letters(rng: np.random.Generator, font: str) -> list[Thing]:
    """Lines of words, as many as fit on a page."""
    chances = np.array(FREQUENCIES) / sum(FREQUENCIES)
    things: list[Thing] = []
    for baseline in range(MARGIN + SIZE, HEIGHT - MARGIN, PITCH):
        pen = MARGIN
        while True:
            word = rng.choice(list(string.ascii_lowercase), size=rng.integers(2, 10), p=chances)
            steps = [advance(letter, SIZE, font) for letter in word]
            if pen + sum(steps) > WIDTH - MARGIN:
                break
            for letter, step in zip(word, steps, strict=True):
                shape = sign(letter, SIZE, font)
                kind = string.ascii_lowercase.index(letter)
                things.append(Thing(kind, shape.alpha, baseline + shape.top, pen + shape.left, (INK,)))
                pen += step
            pen += advance(" ", SIZE, font)
    return things
