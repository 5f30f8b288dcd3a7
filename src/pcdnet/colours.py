"""Colours: those of prototypes and objects in pictures, pictures as 8-bit colours; colours compared, and in words."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int32, Integer, UInt8

# fmt: off
_HEX = (
    "e69f00", "56b4e9", "009e73", "f0e442", "0072b2", "d55e00", "cc79a7", "6024ff",
    "00ff90", "6078ff", "48ffff", "d82448", "a8f0c0", "a82478", "ffa860", "ff7890",
    "904800", "7890f0", "f06048", "c000a8", "7824d8", "48d8f0", "904860", "f0a8c0",
    "d8a878", "9048d8", "2460ff", "c0f060", "d82424", "ff00c0", "f0c000", "d8a8d8",
)
# fmt: on
PALETTE: UInt8[np.ndarray, "32 3"] = np.array([tuple(bytes.fromhex(text)) for text in _HEX], dtype=np.uint8)
"""Colours of the prototypes, far apart from each other, from black, white and grey, for the colour-blind too.

The first seven are those of Okabe and Ito; each of the others lies farthest from all before it, as people with
normal sight, protanopia and deuteranopia see them.
"""

SEEN = 0.1
"""Colours nearer than this, as `comparable` has them, look the same: a tenth of full scale."""

_DARKEST = 0.25  # the hue of what is darker than this counts less, as little is known of it
_HUES = {15: "red", 45: "orange", 70: "yellow", 165: "green", 200: "cyan", 260: "blue", 300: "purple", 345: "pink"}


def prototype_colours(kinds: Integer[np.ndarray, "*any"]) -> UInt8[np.ndarray, "*any 3"]:
    """The colour of every prototype; after 32 of them colours come again."""
    colours: UInt8[np.ndarray, "*any 3"] = PALETTE[kinds % len(PALETTE)]
    return colours


def instance_colours(count: int) -> UInt8[np.ndarray, "count 3"]:
    """Pastel colours for the first objects of any image, so that they are not mistaken for prototypes'."""
    # Steps of the golden ratio never come back to a hue, and neighbours lie far apart.
    hues = [(0.56 + n * 0.618034) % 1 for n in range(count)]
    colours = [colorsys.hsv_to_rgb(hue, 0.45, (1.0, 0.86)[n // 8 % 2]) for n, hue in enumerate(hues)]
    return np.round(255 * np.array(colours).reshape(count, 3)).astype(np.uint8)


def as_rgb(picture: Float[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 3"]:
    """A picture of values in [0, 1], grey or RGB, as 8-bit RGB."""
    colours = np.round(255 * picture.clip(0, 1)).astype(np.uint8)
    return np.broadcast_to(colours, (*colours.shape[:2], 3))


def coloured(labels: Int32[np.ndarray, "H W"], colours: UInt8[np.ndarray, "n 3"]) -> UInt8[np.ndarray, "H W 3"]:
    """Labels as a picture: the background, 0, is black, and label n has the n-th colour."""
    picture: UInt8[np.ndarray, "H W 3"] = np.concatenate([np.zeros((1, 3), np.uint8), colours])[labels]
    return picture


def as_hex(colour: UInt8[np.ndarray, "3"]) -> str:
    """A colour as HTML has it."""
    return f"#{bytes(colour).hex()}"


def comparable(colours: Float[np.ndarray, "n C"]) -> Float[np.ndarray, "n D"]:
    """Colours as points whose distances say how different they look; brightness counts half as much as hue.

    Where an object is half hidden or does not quite fit, its colour comes out darker, but of the same hue.
    """
    if colours.shape[1] == 1:
        return colours
    mean, most = colours.mean(axis=1, keepdims=True), colours.max(axis=1, keepdims=True)
    return np.concatenate([(colours - mean) / np.maximum(most, _DARKEST), mean / 2], axis=1)


def colour_words(colours: Sequence[Sequence[float]]) -> list[str]:
    """A word for every colour, grey or RGB, no word twice: where two are `red`, one is `dark red`, one `light red`."""
    words = [_word(colour) for colour in colours]
    for word in set(words):
        same = sorted((n for n, other in enumerate(words) if other == word), key=lambda n: sum(colours[n]))
        if len(same) > 1:
            marked = (
                [f"dark {word}", f"light {word}"] if len(same) == 2 else [f"{word} {n + 1}" for n in range(len(same))]
            )
            for n, better in zip(same, marked, strict=True):
                words[n] = better
    return words


def _word(colour: Sequence[float]) -> str:
    """The basic colour term that fits best."""
    red, green, blue = (min(max(value, 0.0), 1.0) for value in (colour if len(colour) == 3 else [*colour] * 3))
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if value < 0.15:
        return "black"
    if saturation < 0.2:
        return "white" if value > 0.8 else "grey"
    word = next((word for end, word in _HUES.items() if 360 * hue < end), "red")
    return "brown" if word == "orange" and value < 0.6 else word
