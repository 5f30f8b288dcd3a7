"""`pcdnet gather`: the parts of `pcdnet decompose --shard`, put together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pcdnet.errors import PcdnetError

Parts = Annotated[
    tyro.conf.Positional[tuple[Path, ...]],
    tyro.conf.arg(metavar="DIR...", help="The folders of all shards, as `pcdnet decompose --shard I/N` made them."),
]


@dataclass(frozen=True, kw_only=True)
class Gather:
    """Put the shards of a decomposition together; the files are those of one that was not sharded."""

    paths: Parts

    out: Path
    """Folder for the results, another one than those of the shards."""

    force: bool = False
    """Write into the folder even if it holds other things."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.output.gather import gather

        done = gather(self.paths, self.out, force=self.force)
        print(done.summary.text())
        files = [f"{path.name}/" if path.is_dir() else path.name for path in done.files]
        print(f"\nwrote {self.out}: {' '.join(files)}   next: open them")
        if done.failed:
            raise PcdnetError(
                f"{len(done.failed)} of {done.inputs} files could not be used, or not in full, as reported "
                f"when the shards were made; the results of the others are in {self.out}"
            )
