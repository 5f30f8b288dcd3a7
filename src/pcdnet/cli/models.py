"""`pcdnet models`: the trained models that come with the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcdnet.errors import PcdnetError
from pcdnet.trained import HOME, NAMES, models

if TYPE_CHECKING:
    from pcdnet.trained import Card

Name = Annotated[
    tyro.conf.Positional[str | None],
    tyro.conf.arg(metavar="[NAME]", help="One of them, to see its card.", help_behavior_hint="(default: all)"),
]
Copy = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="(default: nothing is copied)")]


@dataclass(frozen=True, kw_only=True)
class Models:
    """List the trained models that come with the package; their names stand wherever a run is asked for."""

    model: Name = None

    out: Copy = None
    """Copy the model that is named into a folder, to name or merge its prototypes there; one of the Hub, too."""

    json: bool = False
    """Print one JSON object instead: every model's card by its name."""

    def run(self) -> None:
        """Run the command."""
        if self.model is not None and self.model not in NAMES and not self._copies_from_hub():
            raise PcdnetError(f"there is no trained model {self.model!r:.60}; use one of {', '.join(NAMES)}")
        if self.out is not None:
            if self.model is None:
                raise PcdnetError(f"one model is copied at a time, and none was named; name one of {', '.join(NAMES)}")
            return self._copied(self.model, self.out)
        known = models()
        if self.json:
            print(json.dumps({name: card.to_dict() for name, card in known.items() if self.model in (None, name)}))
        elif self.model is None:
            print("\n\n".join(summary(card) for card in known.values()))
            print("\nnext: pcdnet models NAME, pcdnet decompose NAME --out results, or pcdnet serve NAME")
        else:
            print(details(known[self.model]))
        return None

    def _copies_from_hub(self) -> bool:
        from pcdnet.hub import is_address

        return self.out is not None and is_address(self.model)

    def _copied(self, name: str, out: Path) -> None:
        from pcdnet.run import RunFolder

        RunFolder.check_free(out)  # before a model is fetched
        source = RunFolder.at(HOME / name) if name in NAMES else RunFolder.open(name)
        source.copy(out)
        print(f"wrote {out}   next: pcdnet serve {out}")


def summary(card: Card) -> str:
    """A model in a few lines."""
    scores = ", ".join(f"{name} {number}" for name, number in _scores(card)[:3])
    return f"{card.name}\n  {card.finds}\n  {card.prototypes} prototypes; {scores} on {card.scenes:,} scenes"


def details(card: Card) -> str:
    """Everything on a model's card."""
    H, W = card.size
    rows = [
        ("finds", card.finds),
        ("images", f"{H}x{W}, {'grey' if card.channels == 1 else 'coloured'}"),
        ("prototypes", f"{card.prototypes}; {card.naming}"),
        ("trained by", f"{card.command} (commit {card.commit}, {card.minutes:.1f} minutes of one core)"),
        *(("" if n else "limits", limit) for n, limit in enumerate(card.limits)),
        *(
            ("" if n else f"{card.scenes:,} scenes", f"{name} {number}")
            for n, (name, number) in enumerate(_scores(card))
        ),
        ("pictures", str(card.samples)),
        ("run", str(card.folder)),
    ]
    width = max(len(name) for name, _ in rows) + 2
    lines = "\n".join(f"  {name:<{width}}{text}" for name, text in rows)
    return f"{card.name}\n{lines}\nnext: pcdnet decompose {card.name} --out results, or pcdnet serve {card.name}"


def _scores(card: Card) -> list[tuple[str, str]]:
    """The scores by the names that people know, the most telling first."""
    from pcdnet.output.scores import known_scores

    return [(score.name, f"{number} {score.unit}".rstrip()) for score, number in known_scores(card.scores)]
