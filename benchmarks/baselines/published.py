"""Published: the table of the paper (object discovery on Tetrominoes), for comparison with what is measured here.

The figures are of the genuine data set after training on GPUs, and images/s are of an RTX 3090: neither the data nor
the machine are those of this benchmark.
"""

from __future__ import annotations

PUBLISHED: tuple[dict[str, str | float | None], ...] = (
    {"model": "Slot MLP", "fg_ari": 0.351, "parameters": None, "images_per_second": None},
    {"model": "Slot Attention", "fg_ari": 0.995, "parameters": 229_188, "images_per_second": 18.36},
    {"model": "ULID", "fg_ari": 0.996, "parameters": 659_755, "images_per_second": 52.31},
    {"model": "IODINE", "fg_ari": 0.992, "parameters": 408_036, "images_per_second": 16.64},
    {"model": "PCDNet", "fg_ari": 0.997, "parameters": 28_130, "images_per_second": 58.96},
)
"""A row of the paper's table 1 each; None where it has no figure."""
