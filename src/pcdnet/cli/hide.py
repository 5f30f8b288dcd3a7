"""`pcdnet hide`: prototypes whose objects are left out of every output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from pcdnet.cli.arguments import RunArgument

Prototypes = Annotated[
    tyro.conf.Positional[tuple[int, ...]],
    tyro.conf.arg(metavar="PROTOTYPE...", help="Numbers of the prototypes, as the report shows them."),
]


@dataclass(frozen=True, kw_only=True)
class Hide:
    """Leave the objects of prototypes out of every output: what is found, but nobody wants to know of."""

    folder: RunArgument

    prototypes: Prototypes

    show: bool = False
    """Take them in again."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.run import RunFolder

        run = RunFolder.open(self.folder)
        names = run.hide(self.prototypes, hidden=not self.show)
        hidden = ", ".join(f"{p} ({names[p]})" for p in sorted(names.hidden))
        print(f"hidden from now on: {hidden or 'none'}")
