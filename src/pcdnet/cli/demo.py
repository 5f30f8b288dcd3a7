"""`pcdnet demo`: everything once, in minutes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pcdnet.errors import PcdnetError
from pcdnet.progress import began, phase

SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Learn the objects of generated scenes (re-created Tetrominoes), score and draw the result, in minutes."""

    out: Path = Path("demo")
    """Folder for the run and the pictures; it is made, and an earlier demo in it is replaced."""

    seed: int = 0
    """Seed of everything random."""

    minutes: float = 3.0
    """Time for all of it, about; less is quicker and worse."""

    def run(self) -> None:
        """Run the command."""
        import numpy as np

        from pcdnet.cli.evaluate import table
        from pcdnet.cli.signals import stop_on_signal
        from pcdnet.data.sources import TEST_SEED
        from pcdnet.files import folder
        from pcdnet.output.figures import decomposition_sheet, prototype_sheet, save_figure
        from pcdnet.output.report import report
        from pcdnet.run import RunFolder
        from pcdnet.training.fit import fit

        if not self.minutes > 0:
            raise PcdnetError(f"the demo was given {self.minutes:g} minutes; give it more than 0, 3 for a good result")
        out = folder(self.out)
        changes = {"train.seed": self.seed}
        with stop_on_signal() as stop:
            model = fit(
                "tetrominoes",
                changes=changes,
                out=out / "run",
                force=True,
                minutes=self.minutes,
                stop=stop,
                began=began(),
                reported=1000,
            )
        run = RunFolder.open(out / "run")
        page = report(run, seed=TEST_SEED + self.seed)
        fresh = np.asarray(run.held_out(count=SHOWN, seed=TEST_SEED + self.seed).images)
        with phase("drawing scenes and prototypes"):
            scenes = decomposition_sheet(fresh.astype("float32") / 255, model.decompose_all(fresh))
            bank = prototype_sheet(model.bank().to_numpy())
            figures = {out / "decompositions.png": scenes, out / "prototypes.png": bank}
            for path, figure in figures.items():
                save_figure(figure, path)
        print(table(f"learned from generated scenes, scored on {page.data}", page.scores))
        print(f"\nwrote {', '.join(map(str, figures))} and {page.path}")
        print("next: look at them, then use the run, or train one of your own:")
        print(f"      pcdnet eval {run.path}")
        print(f"      pcdnet serve {run.path}")
        print("      pcdnet train --data FOLDER --out runs/mine")
