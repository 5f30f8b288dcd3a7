"""Letters: a folder of printed pages, to try training without a preset on.

usage: python -m benchmarks.letters FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

PAGES, HEIGHT, WIDTH = 300, 110, 200
LETTERS = "ABCEHKMRST"


def page(rng: np.random.Generator) -> Image.Image:
    """Four lines of random letters in ink of varying darkness, on paper with a little grain."""
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans-Bold.ttf"), 20)
    image = Image.new("L", (WIDTH, HEIGHT), 235)
    pen = ImageDraw.Draw(image)
    y = int(rng.integers(2, 9))
    for _ in range(4):
        x = int(rng.integers(2, 20))
        while x < WIDTH - 25:
            letter = LETTERS[rng.integers(len(LETTERS))]
            if rng.random() < 0.2:
                x += 10
                continue
            pen.text((x, y), letter, font=font, fill=int(rng.integers(20, 60)))
            x += int(pen.textlength(letter, font=font)) + 2
        y += 25
    grain = rng.normal(0, 3, (HEIGHT, WIDTH))
    return Image.fromarray((np.asarray(image) + grain).clip(0, 255).astype(np.uint8))


def main() -> None:
    """Write the pages."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for n in range(PAGES):
        page(rng).save(folder / f"{n:04d}.png")
    print(f"wrote {PAGES} pages into {folder}   next: pcdnet train --data {folder} --out runs/letters")


if __name__ == "__main__":
    main()
