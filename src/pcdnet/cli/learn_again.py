"""`pcdnet learn-again`: a run learns again from what people corrected."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pcdnet.cli.arguments import Device, RunArgument, RunData
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.corrections import Drawn
    from pcdnet.run import RunFolder
    from pcdnet.training.loop import Progress

Boxes = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="PICTURE:TOP,LEFT,HEIGHT,WIDTH[:NAME]", help_behavior_hint="(can be given several times)"),
]
Removed = Annotated[
    tyro.conf.UseAppendAction[tuple[int, ...]],
    tyro.conf.arg(metavar="PROTOTYPE", help_behavior_hint="(can be given several times)"),
]


@dataclass(frozen=True, kw_only=True)
class LearnAgain:
    """Learn again from drawn boxes and removed prototypes, for a minute; the run stays as it is until that is adopted.

    What was drawn and removed in the browser counts, too.
    """

    folder: RunArgument

    draw: Boxes = ()
    """A box around a thing in a picture file that the model misses: it becomes a prototype; boxes of one name are of
    one kind."""

    remove: Removed = ()
    """A prototype that is no object, by its number, as the report shows it."""

    minutes: float = 1.0
    """Time for training."""

    data: RunData = None

    adopt: bool = False
    """Have what was learned take the place of the run's model at once; the former one is kept in former/."""

    adopt_only: bool = False
    """Adopt what was learned before, and learn nothing."""

    discard: bool = False
    """Discard what was learned before, and learn nothing."""

    restore: bool = False
    """Take the last adoption back: the former model returns, with its names."""

    json: bool = False
    """Print JSON lines instead: how training goes, and what came of it at the end."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        from pcdnet.run import RunFolder

        run = RunFolder.open(self.folder)
        run.check_changeable()
        if sum((self.adopt_only, self.discard, self.restore, self.adopt)) > 1:
            raise PcdnetError("only one of --adopt, --adopt-only, --discard and --restore can be done at a time")
        if self.adopt_only or self.discard or self.restore:
            return self._settle(run)
        return self._learn(run)

    def _settle(self, run: RunFolder) -> None:
        """Do what needs no training."""
        from pcdnet.succession import CANDIDATE, discard
        from pcdnet.training.relearning import adopt, restore

        if self.discard:
            with run.locked(run.path):
                discard(run.path, CANDIDATE)
            print(f"discarded what {run.path} had learned again")
            return
        kept = restore(run) if self.restore else adopt(run)
        what = "the former model is back in" if self.restore else "what was learned again is now"
        print(f"{what} {run.path}; what it was is in {kept}   next: pcdnet serve {run.path}")

    def _learn(self, run: RunFolder) -> None:
        from pcdnet.cli.signals import stop_on_signal
        from pcdnet.training.relearning import adopt, learn_again

        with stop_on_signal(quiet=self.json) as stop:
            learned = learn_again(
                run,
                [drawn_box(run, each) for each in self.draw],
                self.remove,
                minutes=self.minutes,
                data=self.data,
                device=self.device,
                quiet=self.json,
                watch=_print_progress if self.json else None,
                stop=stop,
            )
        if self.json:
            words = {**dataclasses.asdict(learned), "numbers": sorted(learned.numbers.items())}
            print(json.dumps({"state": "done", "run": str(run.path), **words}), flush=True)
        else:
            print(learned)
            for reason in learned.reasons:
                print(f"  {reason}")
        if self.adopt:
            kept = adopt(run)
            if not self.json:
                print(f"wrote {run.path}; what it was is in {kept}   next: pcdnet serve {run.path}")
        elif not self.json:
            print(f"wrote {run.candidate}   next: pcdnet learn-again {run.path} --adopt-only, or --discard")


def drawn_box(run: RunFolder, words: str) -> Drawn:
    """The box that a word of the command line names, with its picture as the run looks at it."""
    from pcdnet.corrections import Drawn
    from pcdnet.data.intake import fitted
    from pcdnet.data.pictures import read_picture

    found = re.fullmatch(r"(.+):(\d+),(\d+),(\d+),(\d+)(?::(.*))?", words)
    if found is None:
        raise PcdnetError(f"{words!r:.100} is no box; write --draw photo.png:TOP,LEFT,HEIGHT,WIDTH, in pixels")
    top, left, height, width = (int(found[n][:9]) for n in range(2, 6))
    image = run.view_of(None).image(read_picture(found[1]), found[1])
    image = fitted(image, channels=run.config.model.channels)
    return Drawn(image, (top, left, height, width), found[6] or "")


def _print_progress(progress: Progress) -> None:
    words: dict[str, Any] = {name: getattr(progress, name) for name in ("step", "steps", "loss", "seconds", "eta")}
    print(json.dumps({"state": "running", **words}), flush=True)
