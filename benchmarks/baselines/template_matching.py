"""Template matching: masked, normalised cross-correlation with given templates, and non-maximum suppression.

Templates are pictures with masks, as our training learns them. Pixels under a mask are compared after their mean and
their brightness are taken out, so that a template fits its object in every colour; what lies outside the mask does not
count. What fits well enough takes its pixels, the best first, and what finds most of its own taken is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int32, UInt8
from scipy.ndimage import maximum_filter
from torch import Tensor
from torch.nn.functional import conv2d

from pcdnet.metrics import Matches, found_objects, mask_iou, match_scene
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.geometry import support

LEAST_FIT = 0.8
"""Least correlation that counts: the threshold of OpenCV's own tutorial."""
MOST_TAKEN = 0.3
"""Largest share of an object's pixels that better ones may have taken already."""
FLAT = 1e-6
"""Variance below which a window has no pattern that could be compared."""


@dataclass(frozen=True, slots=True)
class Template:
    """One thing to look for."""

    weights: Float[Tensor, "h w"]
    """The picture under the mask, without its mean and of norm one."""
    mask: Float[Tensor, "h w"]
    """Ones where it is compared."""

    @staticmethod
    def of(bank: PrototypeBank) -> list[Template]:
        """The templates of a bank, cut to their masks above one half; those without any pixel or pattern are none."""
        masks, made = (bank.masks > 0.5).float(), []
        for picture, mask, box in zip(bank.prototypes, masks, support(masks), strict=True):
            part = slice(box.top, box.top + box.height), slice(box.left, box.left + box.width)
            mask, picture = mask[part], picture[part]
            centred = (picture - (picture * mask).sum() / mask.sum().clamp(min=1)) * mask
            if centred.square().sum() > FLAT:
                made.append(Template(centred / centred.norm(), mask))
        return made


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in one image: labels, the template of every object, and how well it fits."""

    labels: Int32[np.ndarray, "H W"]
    templates: Int32[np.ndarray, "n"]
    fits: Float[np.ndarray, "n"]

    def matches(self, true: UInt8[np.ndarray, "H W"]) -> Matches:
        """Which objects are which true ones, by their masks."""
        seen = found_objects(self.labels, self.templates, self.fits)
        return match_scene(seen, mask_iou(true, self.labels).T)


def correlation(image: Float[Tensor, "H W"], template: Template) -> Float[Tensor, "rows columns"]:
    """How well the template fits at every place inside the image: 1 is the same up to brightness and contrast."""
    planes = torch.stack([image, image.square()])[:, None]
    sums, squares = conv2d(planes, template.mask[None, None])[:, 0]
    product = conv2d(image[None, None], template.weights[None, None])[0, 0]
    variance = squares - sums.square() / template.mask.sum()
    return torch.where(variance > FLAT, product / variance.clamp(min=FLAT).sqrt(), 0)


def find(image: UInt8[np.ndarray, "H W C"], templates: list[Template], least: float = LEAST_FIT) -> Found:
    """The objects of one image, the best fit first; colours are looked at as one grey."""
    grey = torch.from_numpy(image.astype(np.float32).mean(axis=2) / 255)
    places = []
    for number, template in enumerate(templates):
        if template.mask.shape[0] > grey.shape[0] or template.mask.shape[1] > grey.shape[1]:
            continue
        fits = correlation(grey, template).numpy()
        tops = np.argwhere((fits >= least) & (fits == maximum_filter(fits, 3)))
        places += [(float(fits[row, column]), number, int(row), int(column)) for row, column in tops]
    return _suppressed(sorted(places, key=lambda place: -place[0]), templates, (image.shape[0], image.shape[1]))


def _suppressed(places: list[tuple[float, int, int, int]], templates: list[Template], size: tuple[int, int]) -> Found:
    """Of places in the order of how well they fit, those whose pixels are mostly free."""
    labels, kept = np.zeros(size, np.int32), []
    for fit, number, row, column in places:
        mask: Bool[np.ndarray, "h w"] = templates[number].mask.numpy() > 0
        under = labels[row : row + mask.shape[0], column : column + mask.shape[1]]
        free = mask & (under == 0)
        if free.sum() < (1 - MOST_TAKEN) * mask.sum():
            continue
        kept.append((number, fit))
        under[free] = len(kept)
    return Found(labels, np.array([n for n, _ in kept], np.int32), np.array([fit for _, fit in kept], np.float32))
