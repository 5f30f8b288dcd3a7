"""Limits: a picture of what the model cannot do, docs/pictures/limits.png.

usage: python -m benchmarks.limits

One tetromino as it was learned, turned, resized, mostly hidden, and a thing that no prototype stands for, decomposed
with the true prototypes.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from benchmarks.models import tetromino_model
from benchmarks.provenance import ROOT
from pcdnet.colours import as_rgb, coloured, instance_colours
from pcdnet.data import tetrominoes
from pcdnet.data.tetrominoes import SIZE
from pcdnet.files import whole_file

PICTURE = ROOT / "docs" / "pictures" / "limits.png"
SHAPE, OTHER = 2, 10
"""The tetromino that is changed, and the one that hides it."""
SCALE, GAP, CAPTION = 3, 6, 16

Picture = UInt8[np.ndarray, "H W 3"]


def scenes() -> dict[str, Picture]:
    """The images, by what is wrong with them."""
    plain = _sprites((SHAPE, 0, 12, 10))
    return {
        "as learned": plain,
        "turned by 10°": _turned(plain, 10),
        "turned by 45°": _turned(plain, 45),
        "1.2 times as large": _resized(plain, 1.2),
        "a third hidden": _sprites((SHAPE, 0, 12, 10), (OTHER, 1, 8, 16)),
        "one tile is left": _sprites((SHAPE, 0, 12, 10), (OTHER, 1, 7, 10), (OTHER, 1, 12, 10)),
        "unknown": _unknown(),
    }


def _sprites(*sprites: tuple[int, int, int, int]) -> Picture:
    """Sprites of a shape and a hue at a row and a column, later ones in front."""
    shapes, hues, rows, columns = np.array(sprites).T[:, None]
    image: Picture = tetrominoes.render(shapes, tetrominoes.COLOURS[hues], rows, columns).images[0]
    return image


def _turned(image: Picture, degrees: float) -> Picture:
    return np.asarray(Image.fromarray(image).rotate(degrees, Image.Resampling.BILINEAR))


def _resized(image: Picture, factor: float) -> Picture:
    side = round(SIZE * factor)
    start = (side - SIZE) // 2
    large = np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR))
    return np.ascontiguousarray(large[start : start + SIZE, start : start + SIZE])


def _unknown() -> Picture:
    """A disc of one grey."""
    image = Image.new("RGB", (SIZE, SIZE))
    ImageDraw.Draw(image).ellipse((9, 9, 25, 25), fill=(160, 0, 0))
    return np.asarray(image)


def main() -> None:
    """Draw the picture."""
    model, side, images = tetromino_model("least_squares").eval(), SCALE * SIZE, scenes()
    sheet = Image.new("RGB", (len(images) * (side + GAP) + GAP, CAPTION + 3 * (side + GAP)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for n, (name, image) in enumerate(images.items()):
        found, left = model.decompose(image), GAP + n * (side + GAP)
        pen.text((left, 1), name, fill="black", font=font)
        labels = coloured(found.instances, instance_colours(len(found)))
        for row, picture in enumerate((image, as_rgb(found.reconstruction), labels)):
            panel = Image.fromarray(np.ascontiguousarray(picture)).resize((side, side), Image.Resampling.NEAREST)
            sheet.paste(panel, (left, CAPTION + row * (side + GAP)))
        print(f"{name}: {found!r}")
    with whole_file(PICTURE) as file:
        sheet.quantize(128, dither=Image.Dither.NONE).save(file, format="png", optimize=True)


if __name__ == "__main__":
    main()
