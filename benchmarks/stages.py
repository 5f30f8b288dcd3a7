"""Stages: what the model makes of one frame of Space Invaders, stage by stage, for docs/how-it-works.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from pcdnet.colours import as_rgb, coloured, instance_colours, prototype_colours
from pcdnet.decomposition import Decomposition
from pcdnet.model.inspection import Inspection, Proposal, inspect, locate
from pcdnet.model.network import PCDNet
from pcdnet.output.figures import save_figure, tight_frame
from pcdnet.run import RunFolder

RUN, FRAME = "space-invaders", 7
"""The run, and which of the frames that it did not learn from."""
SHOWN = 3
"""Prototypes whose localization maps are shown."""
DOTS = 110
INK, RING = "#333333", "#00c2ff"
PICTURES = ("bank", "maps", "candidates", "steps", "composition")
"""What is drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """The frame, the model, and what the model makes of it."""

    model: PCDNet
    pixels: UInt8[np.ndarray, "H W C"]
    found: Decomposition
    walk: Inspection

    @property
    def image(self) -> Tensor:
        """The frame as the model takes it."""
        return torch.from_numpy(self.pixels).permute(2, 0, 1) / 255


def stages(folder: Path, run: str | Path = RUN) -> list[Path]:
    """Draw all stages into a folder; the paths of the pictures."""
    source = RunFolder.open(run)
    model, pixels = source.load_model(), np.asarray(source.held_out(count=FRAME + 1).images[FRAME])
    walk = inspect(model, torch.from_numpy(pixels).permute(2, 0, 1) / 255)
    subject = Subject(model=model, pixels=pixels, found=model.decompose(pixels), walk=walk)
    drawn = {"bank": bank, "maps": maps, "candidates": candidates, "steps": steps, "composition": composition}
    paths = []
    for name in PICTURES:
        paths.append(folder / f"stages-{name}.png")
        save_figure(drawn[name](subject), paths[-1])
    return paths


def bank(subject: Subject) -> Figure:
    """The frame, the background, and the prototypes over their masks."""
    arrays = subject.model.bank().to_numpy()
    place = tight_frame(arrays.masks)
    count = len(arrays.masks)
    figure = _figure(11, 3.3)
    H, W = subject.pixels.shape[:2]
    tall = 0.86
    wide = tall * 3.3 / 11 * W / H
    _panel(figure, (0.005, 0.02, wide, tall), subject.pixels, "image")
    behind = arrays.background if arrays.background is not None else np.zeros_like(subject.pixels)
    _panel(figure, (0.015 + wide, 0.02, wide, tall), as_rgb(np.asarray(behind)), "background")
    left, columns = 0.035 + 2 * wide, -(-count // 2)
    cell = (0.995 - left) / columns
    for p in range(count):
        row, column = divmod(p, columns)
        for kind, pictures in enumerate((arrays.prototypes * arrays.masks, arrays.masks)):
            box = (left + column * cell, 0.685 - 0.47 * row - 0.215 * kind, cell * 0.94, 0.2)
            title = "prototypes, each over its mask" if not p and not kind else ""
            _panel(figure, box, as_rgb(pictures[p][place][..., None]), title, aligned="left")
    return figure


def maps(subject: Subject) -> Figure:
    """For the prototypes that were found most, their maps by phase and by error reduction, with the highest peaks."""
    model, arrays = subject.model, subject.model.bank().to_numpy()
    often = np.bincount(subject.found.prototype_ids, minlength=len(arrays.masks))
    place = tight_frame(arrays.masks)
    by_phase = PCDNet.from_bank(model.bank(), dataclasses.replace(model.config, localization="phase"))
    figure = _figure(11, 8.6)
    for n, p in enumerate(often.argsort(kind="stable")[::-1][:SHOWN].tolist()):
        picture = as_rgb((arrays.prototypes * arrays.masks)[p][place][..., None])
        left, wide = 0.04 + 0.325 * n, 0.3
        _panel(figure, (left, 0.86, wide, 0.1), picture, f"prototype {p}")
        for low, one, words in ((0.435, by_phase, "phase correlation"), (0.015, model, "error reduction")):
            heat = locate(one, subject.image, p)
            axes = _panel(figure, (left, low, wide, 0.4), np.sqrt(heat.heat.clamp(min=0).numpy()), cmap="magma")
            if not n:
                axes.set_ylabel(words, fontsize=10, color=INK)
            peaks = [each for each in inspect(one, subject.image).proposals if each.prototype == p]
            for each in peaks:
                y, x = (each.position[0] - heat.origin[0], each.position[1] - heat.origin[1])
                axes.add_patch(Circle((x, y), 5, fill=False, color=RING, linewidth=0.9))
    return figure


def candidates(subject: Subject) -> Figure:
    """All candidates as dots in the frame, and the best of each prototype in its colour."""
    figure = _figure(11, 4.4)
    middle = _middle(subject.model)
    dimmed = subject.pixels // 2
    axes = _panel(figure, (0.01, 0.03, 0.34, 0.87), dimmed, f"{len(subject.walk.proposals)} candidates")
    for each in subject.walk.proposals:
        colour = prototype_colours(np.array(each.prototype)) / 255
        y, x = each.position[0] + middle[0], each.position[1] + middle[1]
        axes.plot(x, y, ".", color=colour, markersize=5, markeredgewidth=0)
    best: dict[int, Proposal] = {}
    for each in sorted(subject.walk.proposals, key=lambda each: -each.error_reduction):
        best.setdefault(each.prototype, each)
    for n, each in enumerate(list(best.values())[:12]):
        row, column = divmod(n, 4)
        box = (0.385 + 0.155 * column, 0.68 - 0.315 * row, 0.13, 0.2)
        axes = _panel(figure, box, _in_colour(subject.model, each), f"prototype {each.prototype}")
        axes.set_xlabel(f"removes {each.error_reduction:.1f}", fontsize=8, color=INK, labelpad=2)
    return figure


def steps(subject: Subject) -> Figure:
    """The frame as it is painted after some of the choices."""
    chosen = [step.chosen for step in subject.walk.steps if step.chosen is not None]
    errors = [step.error for step in subject.walk.steps]
    counts = [0, 1, 2, 4, 8, len(chosen)]
    figure = _figure(11, 2.55)
    for n, count in enumerate(counts):
        scene = _scene(chosen[:count], subject.pixels.shape)
        words = {0: "nothing chosen", 1: "1 choice"}.get(count, f"{count} choices")
        axes = _panel(figure, (0.005 + 0.166 * n, 0.1, 0.16, 0.8), subject.model.render(scene), words)
        axes.set_xlabel(f"error {errors[count]:.0f}", fontsize=9, color=INK, labelpad=3)
    return figure


def composition(subject: Subject) -> Figure:
    """The frame, what the objects make, what is left over, and the label maps."""
    found, figure = subject.found, _figure(11, 2.7)
    left = np.abs(found.reconstruction - subject.pixels / 255)
    panels = {
        "image": subject.pixels,
        f"{len(found)} objects, painted": as_rgb(found.reconstruction),
        "what is left over": as_rgb(left),
        "kinds": coloured(found.instances, prototype_colours(found.prototype_ids)),
        "objects": coloured(found.instances, instance_colours(len(found))),
    }
    for n, (title, picture) in enumerate(panels.items()):
        _panel(figure, (0.005 + 0.199 * n, 0.02, 0.19, 0.87), picture, title)
    return figure


def _middle(model: PCDNet) -> tuple[float, float]:
    """The middle of a prototype's frame, in pixels from its corner."""
    h, w = model.config.prototype_size
    return h / 2, w / 2


def _in_colour(model: PCDNet, one: Proposal) -> UInt8[np.ndarray, "h w 3"]:
    """A prototype in a candidate's colour, over grey."""
    arrays = model.bank().to_numpy()
    place = tight_frame(arrays.masks)
    mask, grey = arrays.masks[one.prototype][place][..., None], arrays.prototypes[one.prototype][place][..., None]
    return as_rgb(mask * grey * np.array(one.colour) + (1 - mask) * 0.35)


def _scene(chosen: Sequence[Proposal], shape: tuple[int, ...]) -> Decomposition:
    """Choices as a decomposition, to be painted."""
    objects = [{"prototype": p.prototype, "position": list(p.position), "colour": list(p.colour)} for p in chosen]
    return Decomposition.from_dict({"objects": objects, "size": list(shape[:2])})


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), dpi=DOTS, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _panel(
    figure: Figure,
    box: tuple[float, float, float, float],
    picture: np.ndarray,
    title: str = "",
    cmap: str = "gray",
    aligned: str = "center",
) -> Axes:
    """A picture in a box of left, bottom, width and height, in shares of the figure."""
    axes = figure.add_axes(box)
    axes.imshow(picture, cmap=cmap, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    if title:
        axes.set_title(title, fontsize=10, color=INK, loc=aligned, pad=4)  # type: ignore[arg-type]
    return axes
