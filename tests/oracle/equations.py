"""PCDNet as the paper writes it: full canvases, Fourier shifts, every candidate composed and compared.

Nothing here is shared with the engine but the sizes (`Geometry`) and the configuration. One image at a time.
Differentiable throughout, as slow as it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.geometry import Geometry

Network = Callable[[Tensor, int, int, int], Tensor]
"""From the masked image, the prototype and the position of its frame to a colour."""
DEEPER, SWEEPS, CROWD, LEAST_CHANGE = 4, 2, 8, 1e-3
REACH, LEAST_FALL = 0.25, 1e-3
ORDERINGS, OPAQUE, SAME, TIE = 3, 0.5, 1e-6, 1e-3


@dataclass
class Candidate:
    """A shifted prototype: where its frame lies, and what it paints on the full canvas."""

    prototype: int
    row: int
    column: int
    T: Tensor  # H W
    M: Tensor  # H W
    colour: Tensor | None  # C, where it does not depend on the other objects


@dataclass
class Layer:
    """A chosen candidate in its colour."""

    index: int
    colour: Tensor
    error_reduction: float


class Oracle:
    """Explains one image with a bank, by the book."""

    def __init__(
        self,
        image: Tensor,  # C H W
        prototypes: Tensor,  # P h w
        masks: Tensor,  # P h w
        background: Tensor | None,  # C H W
        config: ModelConfig,
        network: Network | None = None,
    ) -> None:
        self.I, self.P, self.M, self.config, self.network = image, prototypes, masks, config, network
        self.B = torch.zeros_like(image) if background is None else background
        H, W = image.shape[-2:]
        h, w = prototypes.shape[-2:]
        self.geometry = Geometry.for_overhang((H, W), (h, w), config.overhang)
        self.least = max(config.min_error_reduction, LEAST_CHANGE)
        self.candidates: list[Candidate] = []
        self.unrefined: list[tuple[int, int, int, Tensor]] = []

    def explain(self, *, refine: bool = True) -> tuple[list[tuple[int, int, int, Tensor]], Tensor]:
        """Objects as (prototype, row, column, colour), front to back, and the image they make."""
        self.candidates = self.propose(self.config.peaks_per_prototype)
        layers = self.select([], set())
        self.unrefined = self.objects(layers)
        layers = self.in_depth_order(layers) if refine else layers
        if refine and self.config.restarts and self.error(layers) >= self.least:
            plain, plain_candidates = layers, self.candidates
            self.candidates = self.propose(DEEPER * self.config.peaks_per_prototype)
            layers = self.in_depth_order(self.refine(self.in_depth_order(self.select([], set()))))
            if _total(layers) - _total(plain) < LEAST_CHANGE:
                layers, self.candidates = plain, plain_candidates
        layers = [x for x in layers if self.inside(self.candidates[x.index]) >= self.config.min_inside * (1 - 1e-4)]
        return self.objects(layers), self.compose(layers)

    def inside(self, c: Candidate) -> float:
        """The share of a candidate's mask that lies in the image."""
        return float(c.M.sum() / self.M[c.prototype].sum().clamp(min=1e-6))

    def objects(self, layers: list[Layer]) -> list[tuple[int, int, int, Tensor]]:
        """Layers as (prototype, row, column, colour)."""
        chosen = [(self.candidates[x.index], x.colour) for x in layers]
        return [(c.prototype, c.row, c.column, colour) for c, colour in chosen]

    # --- equation 1: where could it be? -------------------------------------------------------------------

    def localization(self, p: int) -> Tensor:
        """L, per channel, on the padded grid."""
        grid = self.geometry.grid
        what, where = self.P[p], self.I
        if self.config.template == "painted":
            what, where = what * self.M[p], where - self.B
        X = torch.fft.fft2(where, s=grid) * torch.fft.fft2(what, s=grid).conj()
        noise = 16 * torch.finfo(where.dtype).eps * where.square().sum((1, 2)).sqrt() * what.square().sum().sqrt()
        L: Tensor = torch.fft.ifft2(X / (X.abs() + noise[:, None, None] + torch.finfo(where.dtype).tiny)).real
        return L

    def propose(self, peaks: int) -> list[Candidate]:
        """The highest local maxima of every prototype's map, over the channels."""
        found = []
        (my, mx), (rows, columns), (Y, X) = self.geometry.padding, self.geometry.positions, self.geometry.grid
        for p in range(len(self.P)):
            if self.config.localization == "phase":
                maximum = self.localization(p).amax(0)
                L = maximum[[(r - my) % Y for r in range(rows)]][:, [(c - mx) % X for c in range(columns)]].tolist()
            else:
                L = [[self.lone_gain(self.candidate(p, r - my, c - mx)) for c in range(columns)] for r in range(rows)]
            tops: list[tuple[float, int, int]] = []
            for r in range(rows):
                for c in range(columns):
                    around = [(y, x) for y in (r - 1, r, r + 1) for x in (c - 1, c, c + 1) if (y, x) != (r, c)]
                    around = [(y, x) for y, x in around if 0 <= y < rows and 0 <= x < columns]
                    if all(L[r][c] > L[y][x] or (L[r][c] == L[y][x] and (r, c) < (y, x)) for y, x in around):
                        tops.append((-L[r][c], r, c))
            reach = 1 if self.config.localization == "phase" else max(1, int(REACH * min(self.geometry.frame)))
            apart: list[tuple[float, int, int]] = []
            for top in sorted(tops)[: 4 * peaks]:
                higher = sorted(tops)[: sorted(tops).index(top)]
                if reach == 1 or not any(max(abs(top[1] - y), abs(top[2] - x)) <= reach for _, y, x in higher):
                    apart.append(top)
            found += [self.candidate(p, r - my, c - mx) for _, r, c in apart[:peaks]]
        return [c for c in found if self.config.min_solid == 0 or self.solidity(c) >= self.config.min_solid]

    def alone(self, c: Candidate) -> Tensor:
        """The image with nothing but this candidate over the background, in its best colour."""
        self.candidates = [c]
        return self.paint([(c, self.try_out([], 0, [])[1])])

    def lone_gain(self, c: Candidate) -> float:
        """How much the error falls with nothing but this candidate."""
        return float((self.I - self.B).square().sum() - (self.I - self.alone(c)).square().sum())

    def solidity(self, c: Candidate) -> float:
        """The share of its mask in the image in which a candidate lowers the error by itself."""
        fall = ((self.I - self.B).square() - (self.I - self.alone(c)).square()).sum(0)
        return float(c.M[fall > LEAST_FALL * len(self.I)].sum() / c.M.sum().clamp(min=1e-6))

    def visible(self, front: list[Layer], t: int) -> bool:
        """Whether enough of a candidate is seen behind others, by the square of what they let through."""
        tau = torch.ones_like(self.I[0])
        for layer in front:
            tau = tau * (1 - self.candidates[layer.index].M)
        M = self.candidates[t].M
        return bool((tau.square() * M).sum() >= self.config.min_visible * (1 - 1e-4) * M.sum())

    # --- equation 3: the shift; and the colour module ----------------------------------------------------

    def candidate(self, p: int, row: int, column: int) -> Candidate:
        """The prototype and its mask, shifted on the full canvas by the Fourier shift theorem."""
        T, M = self.shift(self.P[p], row, column), self.shift(self.M[p], row, column)
        colour = None
        if self.config.colour == "none":
            colour = torch.ones_like(self.I[:, 0, 0])
        elif self.network is not None:
            colour = self.network(self.I * M, p, row, column)
        return Candidate(p, row, column, T, M, colour)

    def shift(self, frame: Tensor, row: int, column: int) -> Tensor:
        """The frame on a canvas with room on every side, moved by a phase factor, cropped to the image."""
        (H, W), (h, w) = self.geometry.image, self.geometry.frame
        padded = torch.zeros(H + 2 * h, W + 2 * w, dtype=frame.dtype)
        padded = torch.nn.functional.pad(frame, (w, W, h, H)) + padded
        f_y = torch.fft.fftfreq(H + 2 * h, dtype=frame.dtype)[:, None]
        f_x = torch.fft.fftfreq(W + 2 * w, dtype=frame.dtype)
        shifted = torch.fft.ifft2(torch.fft.fft2(padded) * torch.exp(-2j * torch.pi * (row * f_y + column * f_x)))
        cropped: Tensor = shifted.real[h : h + H, w : w + W]
        return cropped

    def frame(self, canvas: Tensor, row: int, column: int) -> Tensor:
        """What a canvas shows in a frame at (row, column); nothing outside the canvas."""
        h, w = self.geometry.frame
        wide = torch.nn.functional.pad(canvas, (w, w, h, h))
        return wide[..., row + h : row + 2 * h, column + w : column + 2 * w]

    # --- equation 5: dead leaves --------------------------------------------------------------------------

    def compose(self, layers: list[Layer]) -> Tensor:
        """G: painted back to front over the background."""
        return self.paint([(self.candidates[x.index], x.colour) for x in layers])

    def paint(self, layers: list[tuple[Candidate, Tensor]]) -> Tensor:
        """The same for candidates in given colours."""
        G = self.B
        for c, colour in reversed(layers):
            G = colour[:, None, None] * c.T * c.M + (1 - c.M) * G
        return G

    def error(self, layers: list[Layer]) -> float:
        """E of equation 4."""
        return float((self.I - self.compose(layers)).detach().square().sum())

    # --- algorithm 1: greedy selection --------------------------------------------------------------------

    def try_out(self, front: list[Layer], index: int, back: list[Layer]) -> tuple[float, Tensor]:
        """The error with a candidate between `front` and `back`, in its best colour; and that colour."""
        c = self.candidates[index]
        before = [(self.candidates[x.index], x.colour) for x in front]
        after = [(self.candidates[x.index], x.colour) for x in back]
        colour = c.colour
        if colour is None:
            ones = torch.ones_like(self.I[:, 0, 0])
            G_0 = self.paint([*before, (c, 0 * ones), *after])
            V = self.paint([*before, (c, ones), *after]) - G_0
            norm = V.square().sum((1, 2)).clamp(min=1e-12)
            colour = (((self.I - G_0) * V).sum((1, 2)) / norm).clamp(0, self.config.max_colour)
        return float((self.I - self.paint([*before, (c, colour), *after])).detach().square().sum()), colour

    def select(self, script: list[int], struck: set[int]) -> list[Layer]:
        """Follow the script, then add the best candidate while it pays."""
        layers: list[Layer] = []
        error = self.error(layers)
        for n in range(self.config.max_objects):
            taken = {x.index for x in layers} | struck
            free = script[n : n + 1] or [
                t for t in range(len(self.candidates)) if t not in taken and self.visible(layers, t)
            ]
            tries = [(t, *self.try_out(layers, t, [])) for t in free]
            if not tries:
                break
            t, left, colour = self.first_of_best(tries, error)
            gain = error - left
            if n >= len(script) and (gain < self.config.min_error_reduction or gain <= 0):
                break
            layers.append(Layer(t, colour, gain))
            error = left
        return layers

    def first_of_best(self, tries: list[tuple[int, float, Tensor]], error: float) -> tuple[int, float, Tensor]:
        """The try that leaves least of the error; of those that do as well the first by where it is opaque."""
        most = max(error - left for _, left, _ in tries)
        return min((x for x in tries if error - x[1] >= most - TIE * abs(most)), key=lambda x: self.place(x[0]))

    def place(self, t: int) -> tuple[int, int, int, int, list[bool], int]:
        """Top and left of the opaque part of a candidate, its shape, and the candidate's number."""
        c = self.candidates[t]
        opaque = self.M[c.prototype] > OPAQUE
        (top, left), (bottom, right) = opaque.nonzero().amin(0).tolist(), opaque.nonzero().amax(0).tolist()
        shape = opaque[top : bottom + 1, left : right + 1]
        return c.row + top, c.column + left, *shape.shape, shape.flatten().tolist(), t

    # --- refinement ----------------------------------------------------------------------------------------

    def refine(self, layers: list[Layer]) -> list[Layer]:
        """Sweeps, then restarts without each object, then with each rival in front; the best of each counts."""
        layers = self.sweep(layers)
        for restarts in (self.without_each, self.with_each_rival):
            picture = self.compose(layers)
            doubtful = [x for x in layers if self.doubtful(x, picture)]
            if self.error(layers) < self.least or len(doubtful) > CROWD:
                break
            tries = [*restarts(layers, doubtful)] or [layers]
            most = max(map(_total, tries))
            new = next(x for x in tries if _total(x) >= most - TIE * abs(most))
            if _total(new) - _total(layers) >= LEAST_CHANGE:
                layers = new
        return layers

    def without_each(self, layers: list[Layer], doubtful: list[Layer]) -> Iterator[list[Layer]]:
        """The image searched again without one of its objects; what does not touch it is kept."""
        for gone in doubtful[: self.config.restarts]:
            kept = [x.index for x in layers if not self.touch(x.index, gone.index)]
            yield self.sweep(self.select(kept, {gone.index}))

    def with_each_rival(self, layers: list[Layer], doubtful: list[Layer]) -> Iterator[list[Layer]]:
        """The image searched again behind each of the candidates that explain most in front of all objects."""
        now = self.error(layers)
        tries = [(t, *self.try_out([], t, layers)) for t in range(len(self.candidates))]
        for _ in range(min(self.config.restarts, len(tries))):
            rival = self.first_of_best(tries, now)
            tries.remove(rival)
            t = rival[0]
            if now - rival[1] >= self.least:
                kept = [x.index for x in layers if not self.touch(x.index, t)]
                yield self.sweep(self.select([t, *kept][: self.config.max_objects], set()))

    def doubtful(self, layer: Layer, picture: Tensor) -> bool:
        """Whether an error that is worth a change is left in an object's frame."""
        c = self.candidates[layer.index]
        return bool(self.frame((self.I - picture).square(), c.row, c.column).sum() >= self.least)

    def sweep(self, layers: list[Layer]) -> list[Layer]:
        """Reconsider every object in whose frame an error is left, the others fixed."""
        for _ in range(SWEEPS):
            if self.error(layers) < self.least:
                break
            script = self.reconsidered(layers)
            if script == [x.index for x in layers]:
                break
            new = self.select(script, set())
            if _total(new) - _total(layers) < LEAST_CHANGE:
                break
            layers = new
        return layers

    def reconsidered(self, layers: list[Layer]) -> list[int]:
        """The candidates after one sweep, front to back."""
        picture = self.compose(layers)
        now: list[Layer | None] = list(layers)
        for n, layer in enumerate(layers):
            if not self.doubtful(layer, picture):
                continue
            front, back = [x for x in now[:n] if x], [x for x in now[n + 1 :] if x]
            taken = {x.index for x in front + back}
            without = self.error(front + back)
            gain_now = without - self.error([*front, layer, *back])
            near = [t for t in range(len(self.candidates)) if t not in taken and self.touch(t, layer.index)]
            t, left, colour = self.first_of_best([(t, *self.try_out(front, t, back)) for t in near], without)
            gain = without - left
            if max(gain, 0) - gain_now >= self.least:
                now[n] = Layer(t, colour, gain) if gain > 0 else None
        return [x.index for x in now if x]

    # --- depth order ---------------------------------------------------------------------------------------

    def in_depth_order(self, layers: list[Layer]) -> list[Layer]:
        """Objects that overlap in the order that the pixels they share speak for, group by group."""
        for _ in range(ORDERINGS if self.config.depth_order else 0):
            edges = [
                (i, j, self.order_evidence(layers, i, j)) for j in range(len(layers)) for i in range(j)
                if self.share(layers, i, j)
            ]  # fmt: skip
            new = list(layers)
            for group in self.groups(layers):
                mine = [(i, j, e) if e > -LEAST_CHANGE else (j, i, -e) for i, j, e in edges if i in group]
                order = _consistent(group, sorted(mine, key=lambda edge: -edge[2]))
                valued = self.valued([layers[n].index for n in order])
                if order != group and all(x.error_reduction > 0 for x in valued):
                    for slot, layer in zip(group, valued, strict=True):
                        new[slot] = layer
            if [x.index for x in new] == [x.index for x in layers]:
                break
            layers = new
        return layers

    def share(self, layers: list[Layer], i: int, j: int) -> bool:
        """Whether two masks, above a half, share a pixel."""
        one, two = (self.candidates[layers[n].index].M > OPAQUE for n in (i, j))
        return self.touch(layers[i].index, layers[j].index) and bool((one & two).any())

    def order_evidence(self, layers: list[Layer], i: int, j: int) -> float:
        """What the other order of two objects adds to the error of the median pixel they share, times their number."""
        front, back = [x for n, x in enumerate(layers[:j]) if n != i], layers[j + 1 :]
        one, two = (
            Layer(layers[a].index, self.lone_colour(front, layers[a], layers[b]), 0) for a, b in ((i, j), (j, i))
        )
        orders = [*front, one, two, *back], [*front, two, one, *back]
        errors = [(self.I - self.compose(stack)).square().sum(0) for stack in orders]
        both = (self.candidates[layers[i].index].M > OPAQUE) & (self.candidates[layers[j].index].M > OPAQUE)
        rise = (errors[1] - errors[0])[both]
        rise = rise[rise.abs() > SAME]
        return float(len(rise) * (rise.median() - (-rise).median()) / 2) if len(rise) else 0.0

    def lone_colour(self, front: list[Layer], layer: Layer, other: Layer) -> Tensor:
        """The colour of least absolute error in the pixels that an object covers and the other one does not."""
        c = self.candidates[layer.index]
        if c.colour is not None:
            return layer.colour
        tau, X = torch.ones_like(c.M), self.I
        for x in front:
            f = self.candidates[x.index]
            X = X - tau * f.M * f.T * x.colour[:, None, None]
            tau = tau * (1 - f.M)
        use = (c.M > OPAQUE) & (self.candidates[other.index].M <= OPAQUE) & (tau.square() > OPAQUE) & (c.M * c.T > 0)
        weight = (c.M * c.T)[use]
        if len(weight) == 0:
            return layer.colour
        found = []
        for rest in X / tau - (1 - c.M) * self.B:
            ratio, order = (rest[use] / weight).sort()
            mass = weight[order].cumsum(0)
            found.append(ratio[int((mass < mass[-1] / 2).sum())])
        return torch.stack(found).clamp(0, self.config.max_colour)

    def valued(self, script: list[int]) -> list[Layer]:
        """Candidates in a given order, each in the best colour behind those before it."""
        layers: list[Layer] = []
        for t in script:
            left, colour = self.try_out(layers, t, [])
            layers.append(Layer(t, colour, self.error(layers) - left))
        return layers

    def groups(self, layers: list[Layer]) -> list[list[int]]:
        """Objects that touch each other, directly or through others."""
        groups: list[list[int]] = []
        for n, layer in enumerate(layers):
            near = [g for g in groups if any(self.touch(layer.index, layers[m].index) for m in g)]
            groups = [g for g in groups if g not in near] + [sorted([n, *(m for g in near for m in g)])]
        return groups

    def touch(self, s: int, t: int) -> bool:
        """Whether the boxes around two candidates' masks share a pixel."""
        spans = []
        for c in (self.candidates[s], self.candidates[t]):
            used = (self.M[c.prototype] != 0).nonzero()
            low, high = used.amin(0).tolist(), used.amax(0).tolist()
            spans.append(((c.row + low[0], c.row + high[0]), (c.column + low[1], c.column + high[1])))
        return all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(*spans, strict=True))


def _consistent(group: list[int], edges: list[tuple[int, int, float]]) -> list[int]:
    """The members of a group so that the strongest edges hold; the first that may come next does."""
    kept: list[tuple[int, int]] = []
    for front, back, _ in edges:
        behind = {back}
        for _ in group:
            behind |= {b for f, b in kept if f in behind}
        if front not in behind:
            kept.append((front, back))
    order: list[int] = []
    while len(order) < len(group):
        ready = [n for n in group if n not in order and all(f in order for f, b in kept if b == n)]
        order.append(ready[0])
    return order


def _total(layers: list[Layer]) -> float:
    return sum(x.error_reduction for x in layers)
