"""Training learns, can be stopped at any moment, and says what is wrong."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pcdnet.config import Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.data import tetrominoes
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.run import RunFolder, load
from pcdnet.scene import Scenes
from pcdnet.training import loop
from pcdnet.training.evaluation import evaluate
from pcdnet.training.fit import fit
from pcdnet.training.loop import Progress
from pcdnet.training.loss import loss_of

SMALL = Config(
    model=ModelConfig(num_prototypes=6, max_objects=3, peaks_per_prototype=2, min_error_reduction=1.0),
    loss=LossConfig(mask_area=1e-3),
    train=TrainConfig(steps=24, batch=8, noise_steps=5, validate_every=10, reset_every=5),
)


def quiet_fit(data: Scenes, config: Config, **options: Any) -> PCDNet:
    """Learn without showing anything."""
    return fit(data, config, quiet=True, **options)


def scenes(count: int = 64, seed: int = 0) -> Scenes:
    made = tetrominoes.generate(count, seed)
    return Scenes(images=made.images, labels=made.labels, name="test")


def same(a: PCDNet, b: PCDNet) -> bool:
    left, right = a.state_dict(), b.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def test_training_lowers_the_error() -> None:
    config = dataclasses.replace(SMALL, train=dataclasses.replace(SMALL.train, steps=60, batch=16))
    before = evaluate(PCDNet(SMALL.model), scenes(seed=9), refined=False)
    after = evaluate(quiet_fit(scenes(200), config, validation=scenes(32, seed=5)), scenes(seed=9), refined=False)
    assert after.mse < 0.7 * before.mse


def test_the_same_seed_gives_the_same_model_and_another_seed_another() -> None:
    other = dataclasses.replace(SMALL, train=dataclasses.replace(SMALL.train, seed=1))
    first, second, third = quiet_fit(scenes(), SMALL), quiet_fit(scenes(), SMALL), quiet_fit(scenes(), other)
    assert same(first, second)
    assert not same(first, third)


@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_an_interrupted_training_ends_as_the_unbroken_one(tmp_path: Path, colour: str) -> None:
    config = dataclasses.replace(SMALL, model=dataclasses.replace(SMALL.model, colour=colour))  # type: ignore[arg-type]
    unbroken = quiet_fit(scenes(), config, out=tmp_path / "unbroken")
    steps: list[int] = []
    for stop_at in (3, 11, 17):
        with pytest.raises(Interrupted, match=f"stopped after step {stop_at} of 24; go on with resume=True"):
            quiet_fit(
                scenes(),
                config,
                out=tmp_path / "broken",
                resume=stop_at > 3,
                watch=lambda progress: steps.append(progress.step),
                stop=lambda stop_at=stop_at: bool(_done(tmp_path / "broken") == stop_at),
            )
    broken = quiet_fit(scenes(), config, out=tmp_path / "broken", resume=True)
    assert same(unbroken, broken)
    assert same(load(tmp_path / "unbroken"), load(tmp_path / "broken"))


_calls: dict[Path, int] = {}


def _done(folder: Path) -> int:
    """Count the calls of `stop`: one a step, over all parts of a run."""
    _calls[folder] = _calls.get(folder, 0) + 1
    return _calls[folder]


SCRIPT = """
import sys, torch
torch.set_num_threads(1)
from tests.training.test_loop import SMALL, scenes
import dataclasses
import pcdnet.training.loop as loop
from pcdnet.training.fit import fit
loop.SAVE_SECONDS = 0.0
config = dataclasses.replace(SMALL, train=dataclasses.replace(SMALL.train, steps=80))
fit(scenes(), config, quiet=True, out=sys.argv[1], resume=sys.argv[2] == "resume")
"""


def test_killed_at_any_moment_training_ends_as_the_unbroken_one(tmp_path: Path) -> None:
    def start(name: str, how: str) -> subprocess.Popen[bytes]:
        root = Path(__file__).parents[2]
        return subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / name), how], cwd=root)

    assert start("unbroken", "new").wait() == 0
    how = "new"
    for moment in (0.1, 0.25, 0.4):
        process = start("broken", how)
        deadline = time.monotonic() + 60
        state = tmp_path / "broken" / "state.safetensors"
        while not state.is_file() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        how = "resume"
    assert start("broken", "resume").wait() == 0
    assert same(load(tmp_path / "unbroken"), load(tmp_path / "broken"))
    steps = [line["step"] for line in RunFolder.open(tmp_path / "broken").metrics() if "loss" in line]
    assert steps == sorted(set(steps))


def test_progress_is_reported_with_the_health_of_the_bank(tmp_path: Path) -> None:
    told: list[Progress] = []
    quiet_fit(scenes(), SMALL, validation=scenes(16, seed=3), out=tmp_path / "run", watch=told.append)
    assert told[-1].step == told[-1].steps == 24
    assert told[-1].eta == 0
    assert told[-1].validation is not None
    assert 0 <= told[-1].in_use <= told[-1].num_prototypes == 6
    lines = RunFolder.open(tmp_path / "run").metrics()
    assert {"step", "loss", "learning_rate", "in_use", "images_per_second", "seconds"} <= lines[-2].keys() | lines[
        -1
    ].keys()
    assert [line["step"] for line in lines if "validation" in line] == [10, 20, 24]


def test_without_labels_the_error_decides_which_weights_are_best(tmp_path: Path) -> None:
    bare = Scenes(images=scenes().images)
    quiet_fit(bare, SMALL, validation=bare.first(16), out=tmp_path / "run")
    validation = [line["validation"] for line in RunFolder.open(tmp_path / "run").metrics() if "validation" in line]
    assert all(line["fg_ari"] is None for line in validation)
    best = evaluate(load(tmp_path / "run"), bare.first(16), refined=False).mse
    assert best == pytest.approx(min(line["mse"] for line in validation), rel=1e-4)


def test_a_background_starts_as_the_mean_of_the_images() -> None:
    config = dataclasses.replace(
        SMALL,
        model=dataclasses.replace(SMALL.model, background="still"),
        train=dataclasses.replace(SMALL.train, steps=1, learning_rate=1e-9),
    )
    model = quiet_fit(scenes(), config, validation=scenes(16, seed=3))
    assert model.background is not None
    mean = scenes().images.mean(axis=0) / 255
    np.testing.assert_allclose(model.background.detach().permute(1, 2, 0).numpy(), mean, atol=1e-5)


def test_minutes_end_the_training_early_and_in_order(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, train=dataclasses.replace(SMALL.train, steps=100_000))
    told: list[Progress] = []
    quiet_fit(scenes(), config, out=tmp_path / "run", minutes=0.02, watch=told.append)
    assert told[-1].step < 100_000
    assert told[-1].validation is not None
    assert RunFolder.open(tmp_path / "run").metrics()[-1]["step"] == told[-1].step


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": scenes(4)}, "too few scenes to learn from, 4; give at least 10"),
        (
            {"data": scenes(4), "validation": scenes(4)},
            "there are 4 scenes for batches of 8; give more, or use batch=4",
        ),
        ({"data": Scenes(images=scenes().images[..., :1])}, "have 1 channels, the model 3; use channels=1"),
        ({"data": Scenes(images=scenes().images[:, :20])}, "25x25 are larger than the images .20x35."),
        (
            {"config": SMALL.with_fields({"model.scales": 3, "model.scale_range": (0.5, 2.0)})},
            "25x25, scaled by 2, are larger than the images .35x35.; use factors up to 1.4 in scale_range, a smaller",
        ),
        ({"minutes": 0.0}, "minutes=0.0 is no time to learn in; give more than 0"),
        ({"device": "nonsense"}, "device 'nonsense' cannot be used: .*; use device='cpu'"),
        ({"out": "/dev/null/run"}, "cannot make the folder /dev/null/run"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_sentence(changes: dict[str, object], words: str) -> None:
    with pytest.raises(PcdnetError, match=words):
        fit(**{"data": scenes(), "config": SMALL, **changes})  # type: ignore[arg-type]


def test_a_training_that_cannot_start_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError):
        quiet_fit(scenes(), SMALL, out=tmp_path / "run", device="nonsense")
    assert not list(tmp_path.iterdir())


def test_a_used_folder_is_never_overwritten_by_mistake(tmp_path: Path) -> None:
    quiet_fit(scenes(), SMALL, out=tmp_path / "run")
    before = (tmp_path / "run" / "weights.safetensors").read_bytes()
    with pytest.raises(PcdnetError, match="in use; set resume=True to go on, force=True to start anew"):
        quiet_fit(scenes(), SMALL, out=tmp_path / "run")
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(PcdnetError, match="other things than a run, so force=True does not touch it"):
        quiet_fit(scenes(), SMALL, out=tmp_path / "mine", force=True)
    with pytest.raises(PcdnetError, match="is no run"):
        quiet_fit(scenes(), SMALL, out=tmp_path / "mine", resume=True)


def test_a_loss_that_is_no_number_ends_the_training_and_keeps_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = loss_of
    calls: list[int] = []

    def unsound(*arguments: Any) -> torch.Tensor:
        calls.append(1)
        return sound(*arguments) * (torch.nan if len(calls) > 12 else 1)

    monkeypatch.setattr(loop, "loss_of", unsound)
    with pytest.raises(PcdnetError, match="the loss is nan at step 12; lower .*0.01.*good weights are in"):
        quiet_fit(scenes(), SMALL, out=tmp_path / "run")
    assert torch.isfinite(load(tmp_path / "run").prototypes).all()


def test_a_run_with_damaged_weights_is_refused(tmp_path: Path) -> None:
    quiet_fit(scenes(), SMALL, out=tmp_path / "run")
    path = tmp_path / "run" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(PcdnetError, match="cannot read"):
        load(tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_text(SMALL.to_toml().replace("num_prototypes = 6", "num_prototypes = 7"))
    quiet_fit(scenes(), SMALL, out=tmp_path / "other")
    path.write_bytes((tmp_path / "other" / "weights.safetensors").read_bytes())
    with pytest.raises(PcdnetError, match="belongs to another config.toml"):
        load(tmp_path / "run")
