"""Parts: everything on the results page, in the order in which it is measured; each a benchmark and its arguments.

A part is as small as can be measured alone, so that little is lost when a run is interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.provenance import ROOT, command_of

PICTURES = "PICTURES"
"""Stands in arguments for the folder of pictures beside the page."""
ABLATIONS = {
    "train.reset_every=0": "without resets",
    "train.noise_steps=0": "without noise on prototypes at the start",
    "model.peaks_per_prototype=1": "K = 1 peak per prototype",
    "model.peaks_per_prototype=6": "K = 6 peaks",
    'model.colour="network"': "colours by the paper's network",
}
"""Changes to the preset `tetrominoes` that are measured, and what they are called."""


@dataclass(frozen=True, slots=True)
class Part:
    """One benchmark with its arguments."""

    name: str
    """What it is called on the command line, and its log."""
    benchmark: str
    """The module in `benchmarks`, or any module by its full name."""
    arguments: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """What `python -m` runs."""
        return self.benchmark if "." in self.benchmark else f"benchmarks.{self.benchmark}"

    def given(self, out: Path) -> list[str]:
        """The arguments, for a page in a folder; paths are from the root of the project, where they are in it."""
        pictures = (out / "pictures").resolve()
        place = pictures.relative_to(ROOT) if pictures.is_relative_to(ROOT) else pictures
        return [str(place) if argument == PICTURES else argument for argument in self.arguments]

    def command(self, out: Path) -> str:
        """As it is told in the closing line."""
        return command_of(self.module, self.given(out))


def _learning(preset: str, seeds: Sequence[int], *more: str) -> list[Part]:
    return [
        Part(f"learning-{preset}-{seed}", "learning", ("--preset", preset, "--seeds", str(seed), *more))
        for seed in seeds
    ]


PARTS = [
    Part("speed", "speed"),
    Part("quality", "quality", ("12",)),
    *_learning("tetrominoes", range(10), "--pictures", PICTURES),
    *_learning("tetrominoes-paper", range(3), "--pictures", PICTURES),
    *(
        Part(f"ablation-{n}-{seed}", "learning", ("--preset", "tetrominoes", "--seeds", str(seed), "--set", change))
        for n, change in enumerate(ABLATIONS)
        for seed in range(2)
    ),
    *(Part(f"real-{data}", "real", ("--data", data)) for data in ("space-invaders", "us101-a", "us101-b")),
    *(
        Part(
            f"real-paper-{data}-{seed}",
            "real",
            ("--data", data, "--paper", "--seed", str(seed), "--pictures", PICTURES),
        )
        for data, seeds in {"space-invaders": range(3), "us101-a": [0], "us101-b": [0]}.items()
        for seed in seeds
    ),
    *(Part(f"own-{name}", "own", (name,)) for name in ("icons", "sheet", "coins", "text", "spots", "film", "overlap")),
    *(Part(f"atari-{game}", "atari", (game,)) for game in ("pong", "freeway", "asterix", "seaquest", "skiing")),
    Part("baselines", "baselines"),
    Part("large", "large"),
    Part("decompose", "decompose"),
    Part("serve", "serve"),
]
"""What `make results` measures: hours."""

_LITTLE = ("--scenes", "50", "--train-scenes", "4000")
QUICK = [
    Part("speed", "speed", ("--without-growth",)),
    Part("quality", "quality", ("1", "--scenes", "100")),
    *_learning("tetrominoes", [0], *_LITTLE, "--steps", "100", "--pictures", PICTURES),
    *_learning("tetrominoes-paper", [0], *_LITTLE, "--steps", "50", "--pictures", PICTURES),
    Part(
        "real-space-invaders",
        "real",
        ("--data", "space-invaders", "--steps", "20", "--frames", "30", "--pictures", PICTURES),
    ),
    Part("real-us101-a", "real", ("--data", "us101-a", "--steps", "10", "--frames", "30")),
    Part("own-coins", "own", ("coins", "--minutes", "0.2")),
    Part("atari-pong", "atari", ("pong", "--minutes", "0.2")),
    Part("baselines", "baselines", ("--minutes", "0.2", "--scenes", "50", "--train-scenes", "2000")),
    Part("large", "large", ("1000",)),
    Part("serve", "serve", ("5",)),
]
"""What `make results-quick` measures, to try the whole path in minutes; the figures mean nothing."""
