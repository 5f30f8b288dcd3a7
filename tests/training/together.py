"""One of two processes that train together: does one thing after the other, and notes what came of it.

`python -m tests.training.together FOLDER`, with the environment that torchrun gives.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from pcdnet import files
from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.errors import PcdnetError
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.training import loop, ranks
from pcdnet.training.fit import fit
from pcdnet.training.ranks import SharedBatch, open_ranks

SMALL = Config.preset("tetrominoes").with_fields(
    {
        **{"model.num_prototypes": 5, "train.steps": 16, "train.batch": 7, "train.validate_every": 6},
        **{"train.reset_every": 3, "train.noise_steps": 4},
    }
)
"""With an odd batch, so that two ranks have parts of it that are not equal."""
NETWORK = SMALL.with_fields({"model.colour": "network", "train.steps": 8})
SHAPES = SMALL.with_fields({"model.background": "still", "train.init": "shapes", "train.steps": 5, "train.batch": 2})
FIRST_RESET = 2
TIME = 0.05
"""Minutes of a training that ends by the clock."""
STOPS = (5, 11)
"""After which steps the broken training is stopped: with two ranks, then with one."""


def scenes(seed: int = 0) -> Scenes:
    """Few scenes, the same for the same seed."""
    return Scenes(images=tetrominoes.generate(40, seed).images, name="test")


def learn(folder: Path, config: Config, **options: Any) -> str:
    """Train; what went wrong, or nothing."""
    try:
        fit(options.pop("data", scenes()), config, out=folder, quiet=True, **options)
    except PcdnetError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def stop_after(steps: int) -> Callable[[], bool]:
    """What asks to stop after so many steps."""
    left = [steps]

    def stop() -> bool:
        if sys._getframe(1).f_code.co_name == "_train":
            left[0] -= 1
        return left[0] <= 0

    return stop


def alone(world: str) -> str:
    """Set how many ranks there are; how many there were."""
    former, os.environ["WORLD_SIZE"] = os.environ["WORLD_SIZE"], world
    return former


def forbidden(*_: object, **__: object) -> None:
    raise AssertionError("not to be called here")


def learn_with_one_that_vanishes(which: int) -> str:
    """Meet the others, of whom one ends without a word; what is then said."""
    ranks.LAST_WORDS = 0.2
    try:
        with open_ranks(lambda: False) as met:
            met.meet()  # or the other may not be connected yet
            if met.rank == which:
                os._exit(0)
            met.meet()
    except PcdnetError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def threads() -> list[str]:
    """The threads of this process by name, where the system tells."""
    return sorted(path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm"))


def main(folder: Path) -> None:
    """Everything, in the same order on both ranks."""
    rank = int(os.environ["RANK"])
    told: dict[str, Any] = {}
    for name in ("broadcast_object_list", "all_gather_object", "gather_object", "scatter_object_list"):
        setattr(dist, name, forbidden)
    torch.save = torch.load = forbidden
    if rank > 0:
        files.whole_file = forbidden  # type: ignore[assignment]
        RunFolder.log = RunFolder._save = forbidden  # type: ignore[method-assign]
    loop.FIRST_RESET = FIRST_RESET
    for name, config in (("closed", SMALL), ("network", NETWORK), ("shapes", SHAPES)):
        told[name] = learn(folder / name, config)
    told["timed"] = learn(folder / "timed", SMALL.with_fields({"train.steps": 10**6}), minutes=TIME)
    never = stop_after(1000)
    told["stopped"] = learn(folder / "broken", SMALL, stop=stop_after(STOPS[0]) if rank == 1 else never)
    if rank == 0:
        world = alone("1")
        learn(folder / "broken", SMALL, resume=True, stop=stop_after(STOPS[1] - STOPS[0]))
        alone(world)
    told["resumed"] = learn(folder / "broken", SMALL, resume=True)
    model = fit(scenes(), SMALL, out=folder / "broken", resume=True, quiet=True)
    told["learned"] = float(sum(value.double().sum() for value in model.state_dict().values()))
    told["images"] = learn(folder / "other", SMALL, data=scenes(seed=rank))
    told["rows"] = learn(folder / "other", SMALL.with_fields({"train.batch": 1}))
    if rank == 1:
        error = SharedBatch.error
        SharedBatch.error = lambda self, squares: error(self, squares * torch.nan)  # type: ignore[method-assign]
    told["diverged"] = learn(folder / "diverged", SMALL)
    try:
        with open_ranks(lambda: False) as met:
            if rank == 1:
                raise ZeroDivisionError("a bug")
            met.meet()
    except (PcdnetError, ZeroDivisionError) as error:
        told["bug"] = f"{type(error).__name__}: {error}"
    told["threads"] = threads()
    if rank == 1:
        told["vanished"] = learn_with_one_that_vanishes(0)
    (folder / f"told-{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    if rank == 0:
        learn_with_one_that_vanishes(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
