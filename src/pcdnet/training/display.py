"""Display: how training goes, on stderr; a live line in a terminal, plain lines every few seconds elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import TaskID, TextColumn
from rich.table import Column

from pcdnet.progress import Phase, clock, own_teller
from pcdnet.training.evaluation import small
from pcdnet.training.events import in_words

if TYPE_CHECKING:
    from pcdnet.training.loop import Progress

Line = TypeVar("Line", bound="LiveLine")


class LiveLine:
    """A line that tells how far it is, within a `with` block that ends it, and lines that stay."""

    def __init__(self) -> None:
        self._teller = own_teller()
        self._now = Phase("", self._teller, dots=False)
        self._told = False

    def __enter__(self: Line) -> Line:
        self._now.__enter__()
        self._now("getting ready ...")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._now.__exit__()

    def update(self, words: str, *, seconds: float, eta: float, stays: bool = False) -> None:
        """Show how far it is, by the time that it took and will take; elsewhere than in a terminal not too often."""
        self._now(words, seconds / max(seconds + eta, 1e-9), stays=stays or not self._told)
        self._told = True

    def say(self, words: str) -> None:
        """Print a line that stays."""
        if self._teller is not None:
            self._teller.say(words)


class LiveLines:
    """A line for each of several trainings that run side by side, within a `with` block that ends them.

    Elsewhere than in a terminal every line that is shown stays, with the name of the training before it.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar: Bar | None = None
        self._tasks: dict[str, TaskID] = {}
        if self._console.is_terminal:
            whole = TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
            )
            self._bar = Bar(whole, console=self._console, transient=True)

    def __enter__(self) -> LiveLines:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, name: str, words: str) -> None:
        """Show how far a training is."""
        text = f"{name}  {words}"
        if self._bar is None:
            self.say(name, words)
        elif name in self._tasks:
            self._bar.update(self._tasks[name], description=text)
        else:
            self._tasks[name] = self._bar.add_task(text, total=None)

    def end(self, name: str) -> None:
        """Take the line of a training away."""
        if self._bar is not None and name in self._tasks:
            self._bar.remove_task(self._tasks.pop(name))

    def say(self, name: str, words: str) -> None:
        """Print a line that stays."""
        self._console.print(f"{name}  {words}", soft_wrap=True, markup=False)


class TrainingDisplay(LiveLine):
    """To be called with the progress of training, within a `with` block that ends the live line."""

    def __call__(self, progress: Progress) -> None:
        """Show how far it is; events and validations get lines that stay."""
        # By time, not by steps: training may be given minutes, and then ends before its last step.
        self.update(line(progress), seconds=progress.seconds, eta=progress.eta, stays=progress.eta <= 0)
        events = [
            {"step": progress.step, "event": event.kind, "prototype": event.prototype, "source": event.source}
            for event in progress.events
        ]
        for step, words in in_words(events):
            self.say(f"step {step}  {words}")
        if progress.validation is not None:
            self.say(f"step {progress.step}  validation  {progress.validation}")


def line(progress: Progress) -> str:
    """The state of training in one line."""
    return "  ".join(
        [
            f"step {progress.step}",
            f"loss {small(progress.loss)}",
            f"prototypes in use {progress.in_use}/{progress.num_prototypes}",
            f"{progress.images_per_second:.0f} images/s",
            f"ETA {clock(progress.eta)}",
        ]
    )
