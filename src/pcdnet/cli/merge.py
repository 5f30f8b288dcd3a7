"""`pcdnet merge`: prototypes that stand for the same thing, made one kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from pcdnet.cli.arguments import RunArgument

Prototypes = Annotated[
    tyro.conf.Positional[tuple[int, ...]],
    tyro.conf.arg(metavar="PROTOTYPE...", help="Numbers of the prototypes, two or more, as the report shows them."),
]
Name = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help="What to call them.",
        help_behavior_hint="(default: as the first of them that has a name, or else by the number of the first)",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Give prototypes one name: their objects are then one kind in every output."""

    folder: RunArgument

    prototypes: Prototypes

    name: Name = None

    def run(self) -> None:
        """Run the command."""
        from pcdnet.run import RunFolder

        names = RunFolder.open(self.folder).merge(self.prototypes, self.name)
        name = names[self.prototypes[0]]
        *most, last = [str(prototype) for prototype, other in enumerate(names) if other == name]
        print(f"prototypes {', '.join(most)} and {last} are one kind now: {name}   next: pcdnet report {self.folder}")
