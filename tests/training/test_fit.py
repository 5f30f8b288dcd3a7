"""Laws of `fit`: whatever images are given and however they are configured, one call learns from them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import pcdnet
from pcdnet.config import Config
from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.origin import Origin, fingerprint
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.fit import fit
from pcdnet.training.loop import Progress
from pcdnet.training.verdict import kept_verdict
from tests.runs import GREY, grey_run
from tests.training.blobs import frames

Capture = pytest.CaptureFixture[str]
TINY: dict[str, Any] = {
    "train.steps": 4,
    "train.batch": 4,
    "train.validate_every": 2,
    "model.num_prototypes": 3,
    "model.restarts": 0,
}
"""Changes to the preset `tetrominoes` with which training takes a moment."""
SMALL = Config.preset("tetrominoes").with_fields(TINY)
"""The preset with them."""
IMAGES = generate(20, seed=1).images
"""Images to learn from."""


def learned(data: Any = IMAGES, config: Config | str | None = SMALL, **options: Any) -> PCDNet:
    """What is learned while nothing is shown."""
    return fit(data, config, quiet=True, **options)


def same(one: PCDNet, other: PCDNet) -> bool:
    """Whether two models have the same configuration and the same weights."""
    weights = other.state_dict()
    return one.config == other.config and all(torch.equal(a, weights[name]) for name, a in one.state_dict().items())


@pytest.fixture(scope="module")
def expected() -> PCDNet:
    """What is learned from the images."""
    return learned()


def written(folder: Path, images: np.ndarray = IMAGES) -> Path:
    """The images as pictures in a folder."""
    folder.mkdir()
    for n, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{n:03}.png")
    return folder


@pytest.mark.parametrize("kind", ["folder", "file", "name", "fractions", "scenes"])
def test_the_same_images_teach_the_same_however_they_are_given(kind: str, expected: PCDNet, tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", image=IMAGES)
    given: dict[str, Any] = {
        "folder": written(tmp_path / "photos"),
        "file": tmp_path / "images.npz",
        "name": str(tmp_path / "images.npz"),
        "fractions": IMAGES.astype(np.float32) / 255,
        "scenes": Scenes(images=IMAGES),
    }
    model = learned(given[kind])
    assert same(model, expected)
    assert not model.training
    assert len(model.decompose(IMAGES[0])) <= 3


@pytest.mark.parametrize(
    ("config", "changes"),
    [("tetrominoes", TINY), (Config.preset("tetrominoes"), TINY), (SMALL, None), (SMALL, {"train.steps": 4})],
)
def test_a_preset_and_a_configuration_are_changed_by_name(
    config: Config | str, changes: dict[str, Any] | None, expected: PCDNet
) -> None:
    assert same(learned(config=config, changes=changes), expected)


def test_a_change_that_is_none_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=r"there is no field 'model\.objects'"):
        learned(changes={"model.objects": 3}, out=tmp_path / "run")
    with pytest.raises(PcdnetError, match="^steps=0 cannot be used; use 1 or more"):
        learned(changes={"train.steps": 0}, out=tmp_path / "run")
    with pytest.raises(PcdnetError, match="there is no preset 'tetris'"):
        learned(config="tetris", out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_data_that_have_a_preset_are_learned_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def opened(name: str, **options: Any) -> tuple[Scenes, Scenes]:
        asked.update(name=name, **options)
        return Scenes(images=IMAGES[:16]), Scenes(images=IMAGES[16:])

    monkeypatch.setattr("pcdnet.training.task.training_data", opened)
    changes = {name: value for name, value in TINY.items() if name != "model.num_prototypes"} | {"train.seed": 7}
    model = learned("tetrominoes", None, changes=changes)
    assert model.config == dataclasses.replace(Config.preset("tetrominoes").model, restarts=0)
    assert asked == {"name": "tetrominoes", "seed": 7, "view": View()}


def test_without_a_preset_everything_is_chosen_from_the_images(capsys: Capture, tmp_path: Path) -> None:
    images = frames(30)
    changes = {"train.steps": 2, "train.batch": 4, "train.seed": 3}
    fit(images, changes=changes, out=tmp_path / "run")
    said = capsys.readouterr().err
    assert "everything is chosen from the images" in said
    assert "30 images of 40x50" not in said  # some of them are kept for validation
    assert "train.steps=2" in said
    config = RunFolder.open(tmp_path / "run").config
    assert (config.model.channels, config.model.background, config.train.init) == (3, "still", "shapes")
    assert (config.train.steps, config.train.batch, config.train.seed) == (2, 4, 3)


def test_progress_is_shown_unless_it_must_be_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Progress] = []
    learned(watch=seen.append)
    assert capfd.readouterr() == ("", "")
    assert seen[-1].step == 4
    fit(IMAGES, SMALL)
    printed, said = capfd.readouterr()
    assert printed == ""
    assert "step 4  loss" in said
    assert said.splitlines()[-1].startswith(("verdict: failed: ", "verdict: partial: "))


def test_a_view_is_how_images_are_looked_at() -> None:
    view = View(crop=(0, 0, 30, 31), stride=2)
    images = np.concatenate([IMAGES, IMAGES])
    model = learned(images, view=view)
    assert same(model, learned(np.ascontiguousarray(images[::2, :30, :31])))
    assert model.learned_size == (30, 31)


def test_models_of_one_channel_look_at_grey_images() -> None:
    grey = Config(model=dataclasses.replace(SMALL.model, channels=1), train=SMALL.train)
    model = learned(IMAGES, grey, validation=Scenes(images=IMAGES[:3]))
    assert model.config.channels == 1
    with pytest.raises(PcdnetError, match="the scenes have 1 channels, the model 3; use channels=1"):
        learned(view=View(grey=True))


def test_the_best_weights_are_chosen_on_the_scenes_for_validation(expected: PCDNet) -> None:
    validation = Scenes(images=IMAGES[18:])
    assert same(learned(IMAGES[:18], validation=validation), expected)
    assert same(learned(IMAGES[:5], validation=validation), learned(IMAGES[:5], validation=validation))
    with pytest.raises(PcdnetError, match="too few scenes to learn from, 5; give at least 10"):
        learned(IMAGES[:5])


def test_a_training_starts_from_another_model(expected: PCDNet) -> None:
    still = {"train.learning_rate": 1e-9, "train.noise_steps": 0, "train.mask_noise": 0.0, "train.steps": 1}
    before = {name: value.clone() for name, value in expected.state_dict().items()}
    model = learned(changes=still, start=expected)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], atol=1e-6, rtol=0)
    assert not same(learned(changes=still), model)
    assert all(torch.equal(value, before[name]) for name, value in expected.state_dict().items())
    assert not expected.training


@pytest.mark.parametrize("data", ["tetrominoes", "array"])
def test_a_model_to_start_from_brings_its_configuration(
    data: str, expected: PCDNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Scenes(images=IMAGES[:16]), Scenes(images=IMAGES[16:])
    monkeypatch.setattr("pcdnet.training.task.training_data", lambda *_, **__: parts)
    changes = {"train.steps": 1, "train.batch": 4, "model.max_objects": 2}
    model = learned("tetrominoes" if data == "tetrominoes" else IMAGES, None, changes=changes, start=expected)
    assert model.config == dataclasses.replace(expected.config, max_objects=2)


def test_a_grey_model_to_start_from_looks_at_grey_images(tmp_path: Path) -> None:
    start = grey_run(tmp_path / "run").load_model()
    images = np.repeat(frames(30)[:, :20, :30, :1], 3, axis=3)
    model = learned(images, None, changes={"train.steps": 1, "train.batch": 4}, start=start)
    assert model.config == GREY
    with pytest.raises(PcdnetError, match=r"background of another size than the images, 35x35; use resize=\(20, 30\)"):
        learned(IMAGES, Config(model=GREY, train=SMALL.train), start=start)


@pytest.mark.parametrize(
    ("name", "value"),
    [("num_prototypes", 4), ("prototype_size", (9, 9)), ("background", "still"), ("colour", "network")],
)
def test_sizes_other_than_those_of_the_model_to_start_from_are_refused(name: str, value: Any, expected: PCDNet) -> None:
    with pytest.raises(PcdnetError, match=f"the model to start from has {name}=.*, not {name}=.*; leave that out"):
        learned(changes={f"model.{name}": value}, start=expected)


def test_a_run_is_kept_where_it_is_wanted_and_nowhere_else(
    expected: PCDNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("images.npz", image=IMAGES)
    learned()
    assert [path.name for path in tmp_path.iterdir()] == ["images.npz"]
    learned(out="array")
    learned("images.npz", out=Path("file"), minutes=5)
    assert same(pcdnet.load("array"), expected)
    mark = fingerprint(Scenes(images=IMAGES[:18]), Scenes(images=IMAGES[18:]))
    assert RunFolder.open("array").origin == Origin(size=(35, 35), fingerprint=mark)
    assert RunFolder.open("file").origin == Origin(data="images.npz", minutes=5, size=(35, 35), fingerprint=mark)


def test_a_run_goes_on_to_the_same_end_with_what_it_knows(expected: PCDNet, tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", image=IMAGES)
    for name, data in (("file", tmp_path / "images.npz"), ("array", IMAGES)):
        asked = iter([False, False, True])
        with pytest.raises(Interrupted, match=rf"stopped after step 3 of 4; go on with resume=True out='.*{name}'"):
            learned(data, out=tmp_path / name, stop=lambda asked=asked: next(asked))
    assert same(learned(None, None, out=tmp_path / "file", resume=True), expected)
    assert same(learned(IMAGES, None, out=tmp_path / "array", resume=True), expected)
    assert same(learned(IMAGES, SMALL, out=tmp_path / "array", resume=True), expected)  # there is nothing left to do
    with pytest.raises(PcdnetError, match="does not say which data"):
        learned(None, None, out=tmp_path / "array", resume=True)


def test_a_run_is_judged_when_it_ends_and_not_before(tmp_path: Path) -> None:
    learned(out=tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    first = kept_verdict(run)
    assert first is not None
    assert first == kept_verdict(run)
    longer = {"train.steps": 6}
    with pytest.raises(Interrupted):
        learned(IMAGES, SMALL.with_fields(longer), out=tmp_path / "run", force=True, stop=lambda: True)
    assert kept_verdict(run) is None
    learned(IMAGES, None, out=tmp_path / "run", resume=True)
    assert kept_verdict(run) is not None


def test_without_a_folder_an_interruption_keeps_nothing() -> None:
    with pytest.raises(Interrupted, match="stopped after step 1 of 4; nothing was kept, as there is no out"):
        learned(stop=lambda: True)


def test_force_starts_anew_and_nothing_else_does(expected: PCDNet, tmp_path: Path) -> None:
    learned(changes={"train.seed": 1}, out=tmp_path / "run")
    with pytest.raises(PcdnetError, match="is in use; set resume=True to go on, force=True to start anew"):
        learned(out=tmp_path / "run")
    learned(out=tmp_path / "run", force=True)
    assert same(pcdnet.load(tmp_path / "run"), expected)


def test_contradictions_are_reported_with_their_cure(tmp_path: Path) -> None:
    learned(out=tmp_path / "run")
    for options, words in (
        ({"resume": True}, "resume=True needs the folder of the run; give out"),
        ({"resume": True, "out": tmp_path / "none"}, "is no run"),
        ({"resume": True, "force": True, "out": tmp_path / "run"}, "give one of them"),
        (
            {"resume": True, "out": tmp_path / "run", "changes": {"train.seed": 4}},
            "with seed=0, not seed=4 and goes on",
        ),
        ({"resume": True, "out": tmp_path / "run", "config": "ngsim"}, "num_prototypes=3, not num_prototypes=30"),
        ({"minutes": 0.0}, "minutes=0.0 is no time to learn in; give more than 0"),
        ({"device": "abacus"}, "use device='cpu'"),
        ({"data": None}, "there is nothing to learn from; give data"),
        ({"data": "tetris"}, "'tetris' is no data known here"),
        ({"data": IMAGES[0]}, "looks like one image"),
        ({"changes": {"train.batch": 64}}, "there are 18 scenes for batches of 64; give more, or use batch=18"),
        ({"changes": {"model.prototype_size": (40, 20)}}, r"use prototype_size=\(35, 20\)"),
    ):
        with pytest.raises(PcdnetError, match=words):
            learned(**options)


def paddles(count: int = 24) -> np.ndarray:
    """Images with a paddle, each second one in another colour."""
    images = np.zeros((count, 24, 24, 3), np.uint8)
    for n, image in enumerate(images):
        image[3 + n % 9 : 13 + n % 9, 4 + n % 11 : 7 + n % 11] = (214, 130, 74) if n % 2 else (92, 186, 92)
    return images


def test_the_colours_that_a_shape_comes_in_are_found_and_kept_with_the_run(tmp_path: Path) -> None:
    changes = {**TINY, "model.num_prototypes": 1, "model.prototype_size": (13, 7), "train.init": "images"}
    model = learned(paddles(), "tetrominoes", changes=changes, out=tmp_path / "run")
    assert sorted(kind.name for kind in model.kinds) == ["prototype 0 green", "prototype 0 orange"]
    assert RunFolder.open(tmp_path / "run").names() == pcdnet.load(tmp_path / "run").names == model.names
    assert learned(paddles(), "tetrominoes", changes=changes).names == model.names
    bare = {**changes, "model.colour": "none"}
    assert not learned(paddles(), "tetrominoes", changes=bare, out=tmp_path / "run", force=True).names.colours
    assert not pcdnet.load(tmp_path / "run").names.colours


def test_names_that_people_gave_while_training_stood_still_are_kept(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        learned(out=tmp_path / "run", stop=lambda: True)
    RunFolder.open(tmp_path / "run").merge([0, 2], "spade")
    assert learned(data=IMAGES, config=None, out=tmp_path / "run", resume=True).names[2] == "spade"


def half_way(out: Path, data: Any = IMAGES, **options: Any) -> Path:
    """A run that was stopped after three of its four steps."""
    asked = iter([False, False, True])
    with pytest.raises(Interrupted):
        learned(data, out=out, stop=lambda: next(asked), **options)
    return out


def test_a_run_does_not_go_on_with_other_images(expected: PCDNet, tmp_path: Path) -> None:
    run, others = half_way(tmp_path / "run", written(tmp_path / "photos")), generate(20, seed=2).images
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    then = "run learned from 18 images of 35x35x3 and 2 for validation, and these are"
    for data, words in (
        (written(tmp_path / "others", others), f"{then} others, as many and as large; name the same images with data"),
        (IMAGES[:11], f"{then} 10 images of 35x35x3 and 1 for validation; name the same images with data, or start"),
        (IMAGES[::-1], "others, as many"),
    ):
        with pytest.raises(PcdnetError, match=words):
            learned(data, None, out=run, resume=True)
    with pytest.raises(PcdnetError, match="18 images of 35x35x3 and 2 for validation, and these are others"):
        learned(IMAGES[:18], None, validation=Scenes(images=others[:2]), out=run, resume=True)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    (tmp_path / "photos").rename(tmp_path / "moved")
    assert same(learned(tmp_path / "moved", None, out=run, resume=True), expected)
    assert RunFolder.open(run).data == str(tmp_path / "moved")


def test_images_that_changed_in_their_folder_are_noticed(tmp_path: Path) -> None:
    run, photos = half_way(tmp_path / "run", written(tmp_path / "photos")), tmp_path / "photos"
    Image.fromarray(IMAGES[0] ^ 1).save(photos / "000.png")
    with pytest.raises(PcdnetError, match="these are others, as many and as large; name the same images"):
        learned(None, None, out=run, resume=True)
    Image.fromarray(IMAGES[0]).save(photos / "000.png")
    (photos / "019.png").unlink()
    with pytest.raises(PcdnetError, match="these are 18 images of 35x35x3 and 1 for validation"):
        learned(None, None, out=run, resume=True)


def test_a_run_of_which_the_origin_is_gone_asks_for_the_data_and_goes_on(tmp_path: Path) -> None:
    deep = written(tmp_path / "deep", IMAGES[..., 0].astype(np.uint16) * 4 + 200)
    grey = SMALL.with_fields({"model.channels": 1})
    whole = learned(deep, grey)
    run = half_way(tmp_path / "run", deep, config=grey)
    (run / "origin.json").unlink()
    with pytest.raises(PcdnetError, match=r"which data it was trained on, as it has no origin\.json; name what to use"):
        learned(None, None, out=run, resume=True)
    others = written(tmp_path / "others", generate(20, seed=2).images[..., 0].astype(np.uint16) * 4 + 200)
    with pytest.raises(PcdnetError, match="18 images of 35x35x1 and 2 for validation, and these are others"):
        learned(others, None, out=run, resume=True)
    assert not (run / "origin.json").exists()
    again = learned(deep, None, out=run, resume=True)  # and looks at them as it did before
    assert same(again, whole)
    assert again.values == whole.values == (200, 1220)


def test_two_trainings_do_not_share_a_folder(expected: PCDNet, tmp_path: Path) -> None:
    out = half_way(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with RunFolder.locked(out):
        for options in ({"resume": True, "config": None}, {"force": True}):
            with pytest.raises(PcdnetError, match=f"another process is writing to {out}; wait for it, or choose"):
                learned(out=out, **options)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    with RunFolder.locked(tmp_path / "new"), pytest.raises(PcdnetError, match="another process is writing to"):
        learned(out=tmp_path / "new")
    assert same(learned(IMAGES, None, out=out, resume=True), expected)


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_start_that_was_killed_leaves_a_folder_that_can_be_used(
    writes: int, expected: PCDNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real, left = tmp_path / "run", Path.replace, iter([True] * writes)

    def killed(path: Path, target: Path) -> Path:
        if not next(left, False):
            os._exit(9)
        return real(path, target)

    pid = os.fork()
    if pid == 0:  # no handler runs and nothing is cleaned up, as if the power was cut
        monkeypatch.setattr(Path, "replace", killed)
        monkeypatch.setattr("pcdnet.training.fit.Trainer", lambda *_: os._exit(9))
        try:
            learned(out=out)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    names = {path.name for path in out.iterdir()}
    assert names > {"train.lock"}
    if writes < 2:
        with pytest.raises(PcdnetError, match=r"is no run: it holds no config\.toml"):
            learned(IMAGES, None, out=out, resume=True)
        assert same(learned(out=out), expected)
    else:
        with pytest.raises(PcdnetError, match="is in use; set resume=True to go on"):
            learned(out=out)
        assert same(learned(IMAGES, None, out=out, resume=True), expected)
    assert not [path for path in out.iterdir() if path.suffix in (".partial", ".lock")]


def test_a_run_killed_between_settling_and_its_verdict_is_judged_when_it_goes_on(tmp_path: Path) -> None:
    settled = SMALL.with_fields({"train.settle": True})
    whole = learned(IMAGES, settled, out=tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    verdict = kept_verdict(run)
    run.save_verdict(None)
    assert same(learned(IMAGES, None, out=run.path, resume=True), whole)
    assert verdict == kept_verdict(run)
    assert run.names() == whole.names


def test_metrics_of_steps_that_were_never_saved_are_forgotten(tmp_path: Path) -> None:
    run = RunFolder.open(half_way(tmp_path / "run"))
    (run.path / "state.safetensors").unlink()
    (run.path / "weights.safetensors").unlink()
    run.log(step=1, loss=7.0)
    learned(IMAGES, None, out=run.path, resume=True)
    steps = [line["step"] for line in run.metrics() if "validation" in line]
    assert steps == [2, 4]
    assert not [line for line in run.metrics() if line.get("loss") == 7.0]
