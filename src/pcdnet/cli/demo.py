"""`pcdnet demo`: everything once, in minutes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pcdnet.cli.origin import Origin
from pcdnet.config import Config
from pcdnet.errors import PcdnetError

SCENES, SHOWN = 1000, 8


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Learn the objects of generated scenes (re-created Tetrominoes), score and draw the result, in minutes."""

    out: Path = Path("demo")
    """Folder for the run and the pictures; it is made, and an earlier demo in it is replaced."""

    seed: int = 0
    """Seed of everything random."""

    minutes: float = 3.0
    """Time for training; less is quicker and worse."""

    def run(self) -> None:
        """Run the command."""
        import dataclasses

        from pcdnet.cli.evaluate import table
        from pcdnet.cli.model import decompose
        from pcdnet.cli.page import PAGE, write_page
        from pcdnet.cli.train import learn
        from pcdnet.data.opening import open_data, training_data
        from pcdnet.data.sources import TEST_SEED
        from pcdnet.files import folder
        from pcdnet.output.figures import decomposition_sheet, prototype_sheet, save_figure

        preset = Config.preset("tetrominoes")
        config = dataclasses.replace(preset, train=dataclasses.replace(preset.train, seed=self.seed))
        if not self.minutes > 0:
            raise PcdnetError(f"the demo was given {self.minutes:g} minutes; give it more than 0, 3 for a good result")
        out = folder(self.out)
        run, page = out / "run", out / "run" / PAGE
        scenes, valid = training_data("tetrominoes", seed=self.seed)
        origin = Origin(data="tetrominoes", minutes=self.minutes)
        model = learn(scenes, valid, config, run, origin=origin, force=True)
        fresh = open_data("tetrominoes", count=SCENES, seed=TEST_SEED + self.seed)
        scores = write_page(run, model, fresh)
        bank = model.bank().map(lambda values: values.detach().float().cpu())
        images = fresh.images[:SHOWN]
        figures = {
            out / "decompositions.png": decomposition_sheet(images.astype("float32") / 255, decompose(model, images)),
            out / "prototypes.png": prototype_sheet(bank.prototypes.numpy(), bank.masks.numpy()),
        }
        for path, figure in figures.items():
            save_figure(figure, path)
        print(table(f"learned from generated scenes, scored on {fresh.name}", scores))
        print(f"\nwrote {', '.join(map(str, figures))} and {page}")
        print("next: look at them, then train and score with options of your own:")
        print("      pcdnet train --preset tetrominoes --data tetrominoes --out runs/first")
        print(f"      pcdnet eval {run} --data tetrominoes")
