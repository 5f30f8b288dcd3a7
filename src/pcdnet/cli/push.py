"""`pcdnet push`: a run on the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from pcdnet.cli.arguments import RunArgument

Repository = Annotated[
    tyro.conf.Positional[str],
    tyro.conf.arg(metavar="OWNER/NAME", help="The repository, which is made if need be; you must be logged in there."),
]
Licence = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help="What the card says that the model may be used for, as the Hub spells it, for example mit.",
        help_behavior_hint="(default: nothing is said)",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Push:
    """Put a run on the Hugging Face Hub, with a card; hf:OWNER/NAME is then a run anywhere."""

    folder: RunArgument

    to: Repository

    private: bool = False
    """Make a repository that its owner alone can see."""

    licence: Licence = None

    scores: bool = False
    """Score the run first, as `pcdnet eval` does, for the card."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.hub import Address
        from pcdnet.output.push import push
        from pcdnet.run import RunFolder
        from pcdnet.training.evaluation import evaluate

        address, run = Address.parse(self.to), RunFolder.open(self.folder)
        scores = evaluate(run) if self.scores else None
        print(f"wrote {push(run, self.to, private=self.private, licence=self.licence, scores=scores)}")
        print(f"next: pcdnet decompose {address} PATH... --out results, with this address wherever a run is asked for")
