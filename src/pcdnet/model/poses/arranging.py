"""Arranging: which candidates explain an image, in which order of depth.

Greedy selection takes what removes most of the error first, and calls it the nearest. Where objects hide each other
that is often a shape that covers several of them. Here it begins with what leaves least where it is seen: nothing is in
front of that. Then single steps follow, each the one that leaves least of the error, until none helps: an object is
added anywhere in the order, goes, makes way for another one, or moves behind the next one that it touches. What an
object explains must be worth it, so the error counts with the least error reduction of every object.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.evidence import TINY
from pcdnet.model.geometry import Geometry
from pcdnet.model.selection import EMPTY, Selection, SelectionInput
from pcdnet.model.windows import Windows, canvas, inside_of

LEAST_CHANGE = 1e-2
"""A step must make the error less by this share of what an object must: less may be rounding."""
STEPS = 6
"""Steps after the first choice at most, for each object that an image may hold."""


@torch.no_grad()
def arranged(given: SelectionInput, start: Int[Tensor, "B N"] | None = None) -> Selection:
    """The candidates that explain images, front to back, with their colours; error reductions are to be found anew.

    It begins with candidates that are given, EMPTY-padded, where there are some. Colours are those in closed form.
    """
    B, N = len(given.images), given.plan.config.max_objects
    start = torch.full((B, N), EMPTY, device=given.images.device) if start is None else start
    if usable(given.images):
        candidate, colour = _compiled(given, start)
    else:
        parts = [_Arrangement.of(given, b).best(start[b]) for b in range(B)]
        candidate, colour = (torch.stack(each) for each in zip(*parts, strict=True))
    nothing = given.images.new_zeros(B, N)
    return Selection(candidate, colour, nothing, nothing.clone())


def _limits(given: SelectionInput) -> tuple[float, float]:
    """The smallest and the largest colour; those of the network are bounded like those in closed form."""
    return (0.0, given.plan.config.max_colour) if given.palette.limits is None else given.palette.limits


def _compiled(given: SelectionInput, start: Int[Tensor, "B N"]) -> tuple[Int[Tensor, "B N"], Float[Tensor, "B N C"]]:
    """The same by compiled loops."""
    from pcdnet.model.compiled import arranging as loops

    plan, candidates, images = given.plan, given.candidates, given.images
    seen = images.new_ones(images.shape[-2:]) if plan.seen is None else plan.seen[0, 0]
    behind = given.behind()
    behind = behind[:1] if behind.stride(0) == 0 else behind  # one for all
    pictures = as_array(images), as_array(behind), as_array(seen)
    prototype = candidates.prototype(torch.arange(candidates.row.shape[1]))
    bank = as_array(plan.tight.prototypes), as_array(plan.tight.masks), as_array(plan.boxes)
    where = as_array(candidates.row), as_array(candidates.column), as_array(candidates.exists), as_array(prototype)
    area = images.new_zeros(0, 1) if given.min_area is None else given.min_area
    least = plan.config.min_error_reduction
    rules = loops.Rules(least, LEAST_CHANGE * least, _limits(given), STEPS * plan.config.max_objects)
    found, colours = loops.arrange(pictures, bank, where, as_array(area), as_array(start), rules)
    return torch.from_numpy(found), torch.from_numpy(colours).to(images)


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """What candidates would do at one place of the order."""

    colour: Float[Tensor, "T C"]
    reduction: Float[Tensor, "T"]
    """By how much they lower the squared error; minus infinity where too little of them is visible."""
    left: Float[Tensor, "T"]
    """What they leave of it where they are seen."""


@dataclass(slots=True, eq=False)
class _Arrangement:
    """The candidates of one image, and those that are chosen."""

    numbers: Int[Tensor, "T"]
    """The candidates that exist, by their numbers in the batch."""
    planes: Float[Tensor, "1 Y X planes"]
    """The image, what is behind its objects, and 1 where something is seen."""
    windows: Windows
    masks: Float[Tensor, "T h w 1"]
    paint: Float[Tensor, "T h w 1"]
    near: Bool[Tensor, "T T"]
    """Which share a pixel of the boxes around their masks."""
    area: Float[Tensor, "T"]
    limits: tuple[float, float]
    least: float
    most: int
    """Objects that an image may hold."""
    order: list[int]
    colours: list[Tensor]

    @staticmethod
    def of(given: SelectionInput, b: int) -> _Arrangement:
        """Those of one image of a batch."""
        plan, candidates, images = given.plan, given.candidates, given.images[b : b + 1]
        numbers = candidates.exists[b].nonzero()[:, 0]
        prototype, row, column = (
            candidates.prototype(numbers),
            candidates.row[b, numbers],
            candidates.column[b, numbers],
        )
        frame = plan.tight.frame
        geometry = Geometry.touching(plan.geometry.image, frame)
        windows = Windows(geometry, torch.zeros_like(numbers), row, column)
        clear = inside_of(images, geometry, plan.seen)
        planes = torch.cat([canvas(images, geometry), canvas(given.behind()[b : b + 1], geometry)], dim=-1) * clear
        boxes, (H, W) = plan.boxes[prototype], plan.geometry.image
        top, left = row + boxes[:, 0], column + boxes[:, 1]
        bottom, right = (top + boxes[:, 2]).clamp(0, H), (left + boxes[:, 3]).clamp(0, W)
        top, left = top.clamp(0, H), left.clamp(0, W)
        near = (top[:, None] < bottom) & (top < bottom[:, None]) & (left[:, None] < right) & (left < right[:, None])
        area = torch.zeros_like(numbers).to(images) if given.min_area is None else given.min_area[b, numbers]
        return _Arrangement(
            numbers,
            torch.cat([planes, clear], dim=-1),
            windows,
            plan.tight.masks[prototype][..., None],
            plan.tight.prototypes[prototype][..., None],
            near,
            area,
            _limits(given),
            plan.config.min_error_reduction,
            plan.config.max_objects,
            [],
            [],
        )

    def best(self, start: Int[Tensor, "N"]) -> tuple[Int[Tensor, "N"], Float[Tensor, "N C"]]:
        """Numbers and colours of the candidates that explain the image."""
        numbers = self.numbers.tolist()
        self.order = [numbers.index(n) for n in start[start != EMPTY].tolist() if n in numbers]
        C = (self.planes.shape[-1] - 1) // 2
        self.colours = [self.planes.new_zeros(C) for _ in self.order]
        self._recolour()
        if not self.order and numbers:
            self._begin()
        for _ in range(STEPS * self.most if numbers else 0):
            if not self._step():
                break
        found, colours = torch.full_like(start, EMPTY), self.planes.new_zeros(len(start), C)
        for n, (t, colour) in enumerate(zip(self.order, self.colours, strict=True)):
            found[n], colours[n] = self.numbers[t], colour
        return found, colours

    def _begin(self) -> None:
        """What leaves little where it is seen, behind each other."""
        while len(self.order) < self.most:
            measured = self._measured(self.order, [])
            pays = (measured.reduction >= self.least) & self._free()
            score = torch.where(pays, measured.reduction - measured.left, -math.inf)
            t = int(score.argmax())
            if score[t] <= 0:
                break
            self.order.append(t)
            self.colours.append(measured.colour[t])

    def _step(self) -> bool:
        """The step that makes the error least; whether there is one that helps."""
        k, free, most = len(self.order), self._free(), LEAST_CHANGE * self.least
        step: tuple[str, int, int] | None = None
        worth = [self._worth(self.order[:s], self.order[s + 1 :], self.order[s], self.colours[s]) for s in range(k)]
        for s in range(k):
            if self.least - worth[s] > most:
                most, step = self.least - worth[s], ("remove", s, EMPTY)
        gains = []
        for p in range(k + 1):
            touching = self.near[self.order[p]] if p < k else torch.ones_like(free)
            if k < self.most:
                added = self._measured(self.order[:p], self.order[p:]).reduction - self.least
                gains.append(("add", p, added.where(free & touching, -math.inf)))
            if p < k:
                instead = self._measured(self.order[:p], self.order[p + 1 :]).reduction - worth[p]
                gains.append(("replace", p, instead.where(free & touching, -math.inf)))
        if gains:
            table = torch.stack([each[2] for each in gains])
            best, t = divmod(int(table.T.flatten().argmax()), len(gains))[::-1]
            if float(table[best, t]) > most:
                most, step = float(table[best, t]), (gains[best][0], gains[best][1], t)
        for s in range(k):
            q = next((q for q in range(s + 1, k) if self.near[self.order[s], self.order[q]]), EMPTY)
            if q != EMPTY:
                order, colours = self._without(s)
                measured = self._measured(order[:q], order[q:], colours)
                gain = float(measured.reduction[self.order[s]]) - worth[s]
                if gain > most:
                    most, step = gain, ("behind", s, q)
        if step is not None:
            self._take(*step)
        return step is not None

    def _take(self, kind: str, at: int, other: int) -> None:
        none = torch.zeros_like(self.planes[0, 0, 0, : (self.planes.shape[-1] - 1) // 2])
        if kind == "remove":
            del self.order[at], self.colours[at]
        elif kind == "add":
            self.order.insert(at, other)
            self.colours.insert(at, none)
        elif kind == "replace":
            self.order[at] = other
        else:
            self.order.insert(other, self.order.pop(at))
            self.colours.insert(other, self.colours.pop(at))
        self._recolour()

    def _without(self, s: int) -> tuple[list[int], list[Tensor]]:
        return self.order[:s] + self.order[s + 1 :], self.colours[:s] + self.colours[s + 1 :]

    def _free(self) -> Bool[Tensor, "T"]:
        free = torch.ones_like(self.numbers, dtype=torch.bool)
        free[self.order] = False
        return free

    def _recolour(self) -> None:
        for s, t in enumerate(self.order):
            self.colours[s] = self._measured(self.order[:s], self.order[s + 1 :]).colour[t]

    def _context(
        self, before: Sequence[int], after: Sequence[int], colours: Sequence[Tensor]
    ) -> Float[Tensor, "1 Y X planes"]:
        """What is left of the image behind some objects, what shows through them of those behind, and how much."""
        rest, under, through = (planes.clone() for planes in _split(self.planes))
        for t, colour in zip(before, colours, strict=False):
            where = self.windows[t : t + 1]
            clear = where.cut(through)
            where.paste(rest, where.cut(rest) - clear * self.masks[t] * self.paint[t] * colour)
            where.paste(through, clear * (1 - self.masks[t]))
        for t, colour in reversed(list(zip(after, colours[len(colours) - len(after) :], strict=True))):
            where, mask = self.windows[t : t + 1], self.masks[t]
            shown = where.cut(under)
            where.paste(under, shown + mask * (self.paint[t] * colour - shown))
        return torch.cat([rest, under, through], dim=-1)

    def _measured(
        self, before: Sequence[int], after: Sequence[int], colours: Sequence[Tensor] | None = None
    ) -> _Measured:
        """All candidates between some objects."""
        content = self.windows.cut(self._context(before, after, self.colours if colours is None else colours))
        rest, under, through = _split(content)
        tint = through * self.masks * self.paint
        norm = tint.square().sum((1, 2)).clamp(min=TINY)
        colour = (tint * (rest - through * (1 - self.masks) * under)).sum((1, 2)) / norm
        colour = colour.clamp(*self.limits)
        first = rest - through * under
        then = first - through * self.masks * (colour[:, None, None] * self.paint - under)
        seen = (self.masks > 0) & (through > 0)
        lower = ((first.square() - then.square()) * seen).sum((1, 2, 3))
        visible = (through * self.masks).sum((1, 2, 3))
        left = (self.masks * then.square() * seen).sum((1, 2, 3))
        return _Measured(colour, lower.where(visible >= self.area, -math.inf), left)

    def _worth(self, before: Sequence[int], after: Sequence[int], t: int, colour: Tensor) -> float:
        """By how much an object in its colour lowers the error."""
        content = self.windows[t : t + 1].cut(self._context(before, after, self.colours))[0]
        rest, under, through = _split(content)
        first = rest - through * under
        then = first - through * self.masks[t] * (colour * self.paint[t] - under)
        return float((first.square() - then.square()).sum())


def _split(planes: Float[Tensor, "*any planes"]) -> tuple[Tensor, Tensor, Tensor]:
    """What is left of an image, what is behind it, and how much shows."""
    C = (planes.shape[-1] - 1) // 2
    return planes[..., :C], planes[..., C : 2 * C], planes[..., 2 * C :]
