"""`pcdnet bench`: how fast a run decomposes images."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass

from pcdnet.cli.arguments import Device, RunArgument, RunData
from pcdnet.progress import phase

BATCH, REPEATS, SECONDS = 64, 7, 20.0


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Measure how many images a second a run decomposes."""

    folder: RunArgument

    data: RunData = None

    json: bool = False
    """Print one JSON object instead of a sentence."""

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        import numpy as np

        from pcdnet.run import RunFolder

        run = RunFolder.open(self.folder)
        model = run.load_model(self.device)
        images = np.asarray(run.held_out(self.data, count=BATCH).images)
        with phase("warming up"):
            objects = sum(map(len, model.decompose_all(images))) / len(images)
        taken: list[float] = []
        with phase("measuring") as now:
            while len(taken) < REPEATS and (not taken or sum(taken) < SECONDS):
                start = time.perf_counter()
                model.decompose_all(images)
                taken.append(time.perf_counter() - start)
                now(f"{len(taken)} of {REPEATS}", len(taken) / REPEATS)
        speed = len(images) / statistics.median(taken)
        if self.json:
            figures = {"images_per_second": speed, "objects_per_image": objects, "batch": len(images)}
            print(json.dumps({**figures, "repeats": len(taken), "device": self.device}))
        else:
            print(f"{speed:,.0f} images/s  {objects:.2f} objects per image")
            print(f"the median of {len(taken)} batches of {len(images)} images on {self.device}")
            print(f"next: pcdnet decompose {self.folder} PATH... --out results")
