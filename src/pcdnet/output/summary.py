"""Summary: what many results say together, in a few lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from pcdnet.data.notes import printable
from pcdnet.kinds import Kinds
from pcdnet.output.record import Results

WORST = 5
"""Badly explained images that are named."""
LEAST_ERROR = 1e-3
"""A squared error per pixel below this is never bad: a hundredth of it per channel is hardly seen."""
SPREADS = 6.0
"""An image is explained badly if its error is so many spreads (median deviations, scaled) above the median."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The results of many images in numbers."""

    images: int
    """How many images."""
    kinds: Kinds
    """The kinds that can be found."""
    used: tuple[int, ...]
    """How often each kind was found."""
    typical: float
    """The median of the images' squared errors per pixel."""
    limit: float
    """The error per pixel above which an image counts as badly explained."""
    bad: int
    """How many are."""
    worst: tuple[tuple[str, float], ...]
    """The worst of them, with their errors per pixel."""

    @staticmethod
    def from_results(results: Results) -> Summary:
        """Go through the records, and keep only numbers and the names of the worst."""
        used, errors = [0] * len(results.kinds), []
        worst: list[tuple[str, float]] = []
        for record in results.named():
            errors.append(record["error"] / (record["size"][0] * record["size"][1]))
            worst = sorted([*worst, (record["name"], errors[-1])], key=lambda pair: -pair[1])[:WORST]
            for thing in record["objects"]:
                used[thing["kind"]] += 1
        limit = bad_from(np.array(errors))
        return Summary(
            images=len(errors),
            kinds=results.kinds,
            used=tuple(used),
            typical=float(np.median(errors)) if errors else 0.0,
            limit=limit,
            bad=sum(error > limit for error in errors),
            worst=tuple((name, error) for name, error in worst if error > limit),
        )

    def text(self) -> str:
        """The summary for people, with all kinds but for colours that were not found."""
        total = sum(self.used)
        lines = [f"{self.images:,} images  {total / max(1, self.images):.2f} objects per image  {total:,} objects", ""]
        shown = [kind for kind in self.kinds if self.used[kind.id] or kind.colour is None]
        width = max((len(kind.name) for kind in shown), default=0)
        for kind in sorted(shown, key=lambda kind: -self.used[kind.id]):
            count = self.used[kind.id]
            lines.append(f"  {kind.name:<{width}}{count:>11,}{100 * count / max(1, total):>8.1f} %")
        if self.bad:
            errors = f"error per pixel above {self.limit:.2g}, typical {self.typical:.2g}"
            lines += ["", f"{self.bad:,} explained badly: {errors}"]
            lines += [f"  {printable(name)}  {error:.2g}" for name, error in self.worst]
        return "\n".join(lines)


def bad_from(errors: Float64[np.ndarray, "n"]) -> float:
    """The error above which an image stands out from the others; few bad images do not move it."""
    if len(errors) == 0:
        return LEAST_ERROR
    middle = float(np.median(errors))
    spread = 1.4826 * float(np.median(np.abs(errors - middle)))  # as the standard deviation of a bell curve
    return max(LEAST_ERROR, middle + SPREADS * spread)
