"""Laws of the run folder: one owner of every file, who knows what was learned from and what was kept apart."""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

import pcdnet
from pcdnet.cli import main, parse
from pcdnet.cli.train import Train
from pcdnet.config import PRESETS, RENAMED, Config
from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.names import Names
from pcdnet.origin import MARK, Origin, fingerprint, in_words
from pcdnet.run import FILES, HELD_OUT, TENSORBOARD, RunFolder
from tests.runs import ENDED, grey_run, true_run

Capture = pytest.CaptureFixture[str]
TINY: dict[str, Any] = {
    "train.steps": 4,
    "train.batch": 4,
    "train.validate_every": 2,
    "model.num_prototypes": 3,
    "model.restarts": 0,
}
"""Changes to the preset `tetrominoes` with which training takes a moment."""
OPTIONS = [
    *("--preset", "tetrominoes", "--train.steps", "4", "--train.batch", "4", "--train.validate-every", "2"),
    *("--model.num-prototypes", "3", "--model.restarts", "0"),
]
"""The same as options."""
sizes = st.tuples(st.integers(1, 999), st.integers(1, 999))
views: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "crop": st.none() | st.tuples(*[st.integers(0, 99)] * 2, *[st.integers(1, 99)] * 2),
        "resize": st.none() | sizes,
        "stride": st.integers(1, 99),
        "grey": st.booleans(),
        "values": st.none() | st.tuples(st.integers(-99, 99) | st.floats(-99, 99), st.floats(100, 1e9)),
        "tiles": st.none() | st.just(0) | st.integers(32, 512),
        "ignore": st.none() | st.tuples(*[st.integers(0, 99)] * 2, *[st.integers(1, 99)] * 2),
    }
)


@contextmanager
def numbered(folder: Path, count: int) -> Iterator[str]:
    """A file of that many images, whose four pixels spell their numbers."""
    path = folder / "numbered.npz"
    np.savez(path, image=np.arange(count, dtype=np.uint32).view(np.uint8).reshape(count, 2, 2, 1)[..., 0])
    yield str(path)
    path.unlink()


def numbers(images: np.ndarray) -> list[int]:
    """Which of the numbered images these are."""
    found: list[int] = np.ascontiguousarray(images[..., 0]).reshape(-1).view(np.uint32).tolist()
    return found


def photos(folder: Path, count: int, seed: int = 1) -> Path:
    """A folder of pictures of scenes."""
    folder.mkdir(parents=True)
    for n, image in enumerate(generate(count, seed=seed).images):
        Image.fromarray(image).save(folder / f"{n:03}.png")
    return folder


def complaint_of(capsys: Capture, *arguments: object) -> str:
    """What a command that must fail says, in its one line."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 1
    printed, said = capsys.readouterr()
    assert printed == ""
    assert said.count("\n") == 1
    return said


NAMED = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""Characters that the name of a file can have."""


@given(
    view=views,
    data=st.none() | st.text(NAMED, min_size=1, max_size=20),
    minutes=st.none() | st.floats(0.001, 1e6),
    size=st.none() | sizes,
    fingerprint=st.none() | st.from_regex(MARK, fullmatch=True, alphabet=st.characters(max_codepoint=127)),
)
def test_an_origin_is_read_back_as_it_was(view: dict[str, Any], **known: Any) -> None:
    origin = Origin(view=View(**view), **known)
    assert Origin.from_json(origin.to_json()) == origin


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"data": 3}',
        '{"data": "a", "minutes": "2"}',
        '{"stride": 2.5}',
        '{"stride": 0}',
        '{"grey": 1}',
        '{"crop": [1, 2, 3]}',
        '{"resize": [0.5, 2]}',
        '{"size": "35x35"}',
        '{"values": [200]}',
        '{"values": ["a", "b"]}',
        '{"values": [300, 200]}',
        '{"tiles": 192.5}',
        '{"tiles": true}',
        '{"ignore": [0, 0, 5]}',
        '{"fingerprint": "3 images"}',
        '{"minutes": NaN}',
        '{"minutes": -1}',
        '{"tile": 192}',
    ],
)
def test_a_damaged_origin_is_reported_with_its_cure(text: str, tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    if text.startswith('{"'):
        always = {"data": None, "minutes": None, "crop": None, "resize": None, "stride": 1, "grey": False}
        text = json.dumps(always | json.loads(text))
    (run.path / "origin.json").write_text(text)
    with pytest.raises(PcdnetError, match=r"cannot read .*origin\.json: .*; delete it, and name the data with data"):
        RunFolder.open(run.path)


def test_a_run_is_opened_as_it_was_made(tmp_path: Path) -> None:
    origin = Origin(data="photos", minutes=2.5, size=(20, 30), view=View(stride=3, grey=True))
    config = Config.preset("ngsim").with_fields(TINY)
    run = RunFolder.create(tmp_path / "new" / "run", config, origin)
    assert RunFolder.open(run.path) == run == RunFolder(tmp_path / "new" / "run", config, origin)
    assert RunFolder.open(run) is run
    assert not run.has_weights
    assert not run.has_state
    assert run.metrics() == []
    with pytest.raises(PcdnetError, match="has no weights yet; train it to its first validation with resume=True"):
        run.load_model()


def test_a_folder_without_a_configuration_is_no_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(PcdnetError, match="is no run: it holds no config.toml; give a folder"):
            RunFolder.open(path)


def test_a_saved_model_is_a_run_that_knows_no_data(tmp_path: Path) -> None:
    true_run(tmp_path / "run").load_model().save(tmp_path / "saved")
    run = RunFolder.open(tmp_path / "saved")
    assert run.origin == Origin()
    assert run.image_size is None
    assert run.load_model().decompose(generate(1, seed=0).images[0]).error < 1
    for unknown in (run.held_out, run.training_scenes, lambda: pcdnet.evaluate(run), lambda: pcdnet.report(run)):
        with pytest.raises(PcdnetError, match="does not say which data"):
            unknown()
    assert pcdnet.evaluate(run, generate(4, seed=0).images).scenes == 4
    with pytest.raises(PcdnetError, match="a model alone has no scenes; give data"):
        pcdnet.evaluate(run.load_model())
    assert len(run.held_out("tetrominoes", count=3)) == 3


def test_only_a_run_is_overwritten_and_only_by_force(tmp_path: Path) -> None:
    run, other, file = grey_run(tmp_path / "run").path, tmp_path / "other", tmp_path / "file"
    other.mkdir()
    (other / "precious.txt").touch()
    file.touch()
    for path in (run, other, file):
        with pytest.raises(PcdnetError, match="is in use; set resume=True to go on, force=True to start anew, or"):
            RunFolder.check_free(path)
    for path in (other, file):
        with pytest.raises(PcdnetError, match="other things than a run, so force=True does not touch it; choose"):
            RunFolder.create(path, Config(), Origin(), force=True)
    assert RunFolder.check_free(run, force=True) == run
    (tmp_path / "empty").mkdir()
    for name in ("empty", "none"):
        assert RunFolder.check_free(tmp_path / name) == tmp_path / name
    assert {path.name for path in tmp_path.iterdir()} == {"run", "other", "file", "empty"}


def test_force_removes_every_file_of_the_run_and_nothing_else(tmp_path: Path) -> None:
    path = grey_run(tmp_path / "run").path
    for name in (*FILES, "notes.txt", f"{TENSORBOARD}/events.out.tfevents.1"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).touch()
    (path / "config.toml").write_text(Config().to_toml())
    run = RunFolder.create(path, Config.preset("ngsim"), Origin(data="photos"), force=True)
    assert {each.name for each in path.iterdir()} == {"config.toml", "origin.json", "notes.txt"}
    assert RunFolder.open(path) == run


def test_new_prototypes_do_not_inherit_the_names_of_old_ones(tmp_path: Path, capsys: Capture) -> None:
    out, data = tmp_path / "run", photos(tmp_path / "photos", 20)
    train = ["train", "--data", str(data), "--out", str(out), *OPTIONS]
    assert main(train) in ENDED
    Names(count=3, given={2: "elephant"}).write(out)
    assert main([*train, "--force", "--model.num-prototypes", "2"]) in ENDED  # a smaller bank, without an elephant
    assert list(pcdnet.load(out).names) == ["prototype 0", "prototype 1"]
    assert "elephant" not in (out / "report.html").read_text(encoding="utf-8")
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["array", "saved"])
def test_a_run_made_in_python_is_not_taken_for_tetrominoes(kind: str, tmp_path: Path, capsys: Capture) -> None:
    out, images = tmp_path / "run", generate(20, seed=1).images
    model = pcdnet.fit(images, "tetrominoes", changes=TINY, quiet=True, out=out if kind == "array" else None)
    if kind == "saved":
        model.save(out)
    reason = "the images were given in Python" if kind == "array" else "it has no origin.json"
    wrong = f"does not say which data it was trained on, as {reason}; name what to use with --data"
    figure = ["figure", out, "--kind", "segmentation", "--out", tmp_path / "a.png"]
    for command in (["eval", out], ["report", out], ["bench", out], figure):
        assert complaint_of(capsys, *command) == f"pcdnet: {out} {wrong}\n"
    np.savez(tmp_path / "own.npz", image=images[:3])
    for command in (["eval", out], ["report", out], ["bench", out], figure):
        assert main([*map(str, command), "--data", str(tmp_path / "own.npz")]) == 0
    assert "3 scenes: own.npz" in (out / "report.html").read_text(encoding="utf-8")
    assert "--data DATA " in RunFolder.open(out).command()
    if kind == "array":
        assert complaint_of(capsys, "train", "--resume", "--out", out) == f"pcdnet: {out} {wrong}\n"


def test_a_run_that_was_interrupted_early_never_ends_without_weights(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def asking() -> Iterator[Any]:
        yield lambda: True

    out, data = tmp_path / "run", photos(tmp_path / "photos", 20)
    with monkeypatch.context() as patch:
        patch.setattr("pcdnet.cli.signals.stop_on_signal", asking)
        assert main(["train", "--data", str(data), "--out", str(out), *OPTIONS]) == 130
    run = RunFolder.open(out)
    assert run.has_state
    assert not run.has_weights
    capsys.readouterr()
    assert main(["train", "--resume", "--out", str(out), "--minutes", "0.000001"]) in ENDED  # they are over already
    assert capsys.readouterr().out.startswith("held-out scenes  ")
    assert run.has_weights
    assert run.report.is_file()
    assert main(["eval", str(out)]) == 0


def test_bench_uses_the_data_of_the_run(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    data = photos(tmp_path / "photos", 30)
    run = true_run(tmp_path / "run", Origin(data=str(data)))
    seen: list[np.ndarray] = []
    real = pcdnet.PCDNet.decompose_all

    def noted(model: pcdnet.PCDNet, images: np.ndarray) -> object:
        seen.append(images)
        return real(model, images)

    monkeypatch.setattr(pcdnet.PCDNet, "decompose_all", noted)
    assert main(["bench", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["batch"] == 3
    for images in seen:
        np.testing.assert_array_equal(images, generate(30, seed=1).images[27:])


def test_eval_and_report_score_the_same_images_and_none_of_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = photos(tmp_path / "photos", 30), tmp_path / "run"
    assert main(["train", "--data", str(data), "--out", str(out), *OPTIONS]) in ENDED
    scored: list[np.ndarray] = []
    real = pcdnet.evaluate

    def noted(model: pcdnet.PCDNet, scenes: pcdnet.Scenes) -> object:
        scored.append(scenes.images)
        return real(model, scenes)

    for module in ("pcdnet.training.evaluation", "pcdnet.output.report"):
        monkeypatch.setattr(f"{module}.evaluate", noted)
    for command in ("eval", "report"):
        assert main([command, str(out)]) == 0
    np.testing.assert_array_equal(scored[0], scored[1])
    assert pcdnet.evaluate(out).mse == pcdnet.report(out).scores.mse == real(pcdnet.load(out), scored[0]).mse
    learned = {image.tobytes() for image in RunFolder.open(out).training_scenes()[0].images}
    assert len(learned) == 27
    assert len(scored[0]) == 3
    assert not learned & {image.tobytes() for image in scored[0]}


@settings(deadline=None, max_examples=60)
@given(count=st.integers(10, 4000), trained=st.integers(1, 4), asked=st.integers(1, 9), limit=st.integers(1, 500))
def test_whatever_part_is_asked_for_no_scene_of_the_training_is_held_out(
    count: int, trained: int, asked: int, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    assume(count >= 10 * trained)
    with numbered(folder, count) as data:
        config = Config.preset("tetrominoes")
        run = RunFolder(folder, config, Origin(data=data, view=View(stride=trained, grey=False)))
        learned, validation = (numbers(scenes.images) for scenes in run.training_scenes())
        found = numbers(run.held_out(count=limit, view=View(stride=asked)).images)
    assert learned + validation == list(range(0, count, trained))
    step = -(-asked // trained) if asked > 1 else 1
    assert found == validation[::step][:limit]
    assert not set(found) & set(learned)


def test_held_out_scenes_of_a_folder_with_parts_are_its_test_scenes(tmp_path: Path) -> None:
    for part, count, seed in (("train", 12, 1), ("val", 4, 2), ("test", 5, 3)):
        photos(tmp_path / "photos" / part, count, seed)
    run = RunFolder(tmp_path, Config.preset("tetrominoes"), Origin(data=str(tmp_path / "photos")))
    learned, validation = run.training_scenes()
    np.testing.assert_array_equal(learned.images, generate(12, seed=1).images)
    np.testing.assert_array_equal(validation.images, generate(4, seed=2).images)
    np.testing.assert_array_equal(run.held_out().images, generate(5, seed=3).images)


def test_generated_scenes_are_held_out_by_their_seed(tmp_path: Path) -> None:
    run = true_run(tmp_path / "run")
    assert len(run.held_out()) == HELD_OUT
    np.testing.assert_array_equal(run.held_out(count=3, seed=9).images, generate(3, seed=9).images)
    with pytest.raises(PcdnetError, match="leave out stride"):
        run.held_out(view=View(stride=2))


def test_own_data_are_known_however_they_are_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos(tmp_path / "photos", 20)
    monkeypatch.chdir(tmp_path)
    run = RunFolder(tmp_path, Config.preset("tetrominoes"), Origin(data="photos"))
    for name in (None, "photos", "./photos/", str(tmp_path / "photos")):
        assert len(run.held_out(name)) == 2
    shutil.copytree("photos", "others")
    assert len(run.held_out("others")) == 20


def test_other_data_are_seen_as_the_training_was_but_not_thinned() -> None:
    view = View(stride=5, grey=True, resize=(8, 9))
    run = RunFolder(Path("run"), Config.preset("tetrominoes"), Origin(data="film.mp4", view=view))
    assert run.view_of(None) == run.view_of("film.mp4") == view
    assert run.view_of("tetrominoes") == View(grey=True, resize=(8, 9))
    assert run.view_of("film.mp4", View(stride=2, resize=(4, 4))) == View(stride=2, resize=(4, 4), grey=True)
    assert run.view_of("other.mp4", View(crop=(0, 0, 9, 9))).crop == (0, 0, 9, 9)
    view = View(values=(200, 1100), tiles=192, ignore=(0, 0, 9, 9))
    run = RunFolder(Path("run"), Config.preset("tetrominoes"), Origin(data="scans", view=view))
    assert run.view_of("others") == view
    other = View(values=(0, 9), tiles=0, ignore=(0, 0, 5, 5))
    assert run.view_of("others", other) == other


def test_models_of_one_channel_see_grey(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    assert run.view_of("tetrominoes").grey
    assert run.held_out("tetrominoes", count=2).images.shape == (2, 35, 35, 1)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_command_of_a_run_trains_the_same_again(preset: str) -> None:
    base = Config.preset(preset)
    changes = {"model.prototype_size": (7, 9), "model.min_error_reduction": 1e-5, "loss.l1": 1e-7, "train.seed": 11}
    config = base.with_fields({**changes, "model.background": "plain", "train.settle": True})
    view = View(
        crop=(1, 2, 30, 31), resize=(20, 21), stride=3, grey=True, values=(-2.5, 1100), tiles=64, ignore=(1,) * 4
    )
    for origin in (Origin(data="it's.npz", minutes=2.5, view=view), Origin(data="tetrominoes")):
        words = shlex.split(RunFolder(Path("a b"), config, origin).command())
        assert words.pop(0) == "pcdnet"
        train = parse(words)
        assert isinstance(train, Train)
        assert train.preset is not None
        assert Config.preset(train.preset).with_fields(train.changes()) == config
        assert (train.out, train.data, train.minutes, train.view()) == (
            *(Path("a b"), origin.data, origin.minutes, origin.view),
        )


def test_the_size_of_the_images_is_remembered_where_it_is_known(tmp_path: Path) -> None:
    config = Config.preset("tetrominoes")
    for origin, size in (
        (Origin(), None),
        (Origin(data="film.mp4"), None),
        (Origin(size=(20, 30)), (20, 30)),
        (Origin(data="tetrominoes"), (35, 35)),  # a run of version 0.1, whose images can be made again
        (Origin(data="tetrominoes", view=View(resize=(40, 50))), (40, 50)),
    ):
        assert RunFolder(tmp_path, config, origin).image_size == size


def test_metrics_are_read_up_to_where_they_were_cut_off_and_forgotten_after_a_step(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    for step in (1, 2, 3):
        run.log(step=step, loss=1 / step)
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert [line["step"] for line in run.metrics()] == [1, 2, 3]
    run.rewind(2)
    assert run.metrics() == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]
    run.log(step=3, loss=0.25)
    assert run.metrics()[-1] == {"step": 3, "loss": 0.25}


def test_a_state_is_read_back_as_it_was(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    tensors, words = {"a": torch.arange(3.0), "b": torch.tensor([[True]])}, {"step": 3, "best": -float("inf")}
    run.save_state(tensors, words)
    found, read = run.load_state()
    assert read == words
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert not list(run.path.glob("*.partial"))


def test_names_that_people_gave_come_with_the_model(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    Names(count=2, given={1: "ball"}).write(run.path)
    assert list(run.load_model().names) == list(pcdnet.load(run.path).names) == ["prototype 0", "ball"]


def test_colours_come_with_the_model_and_go_with_it(tmp_path: Path) -> None:
    run = true_run(tmp_path / "run")
    names = Names(count=19, given={2: "S"}, colours={2: ((0.9, 0.1, 0.1), (0.1, 0.2, 0.9))})
    run.keep_names(names)
    model = run.load_model()
    assert model.names == names
    assert [kind.name for kind in model.kinds][2:5] == ["S red", "S blue", "prototype 3"]
    model.save(tmp_path / "saved")
    assert pcdnet.load(tmp_path / "saved").names == names


def test_colours_of_other_images_are_refused_before_any_work(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    Names(count=2, colours={0: ((0.9, 0.1, 0.1), (0.1, 0.2, 0.9))}).write(run.path)
    with pytest.raises(PcdnetError, match="has colours of 3 values for a model of 1 channels; remove them"):
        run.load_model()


def test_merged_prototypes_are_one_kind_from_then_on(tmp_path: Path) -> None:
    run = true_run(tmp_path / "run")
    assert run.merge([3, 7, 9])[9] == "prototype 3"
    assert run.merge((9, 5), "spade").first[[3, 7, 9, 5]].tolist() == [3, 3, 5, 5]
    kinds = RunFolder.open(run.path).load_model().kinds
    assert len(kinds) == 17
    assert [kind.name for kind in kinds if len(kind.prototypes) > 1] == ["prototype 3", "spade"]
    with pytest.raises(PcdnetError, match="there is no prototype 19"):
        run.merge([3, 19])


def test_a_folder_that_cannot_be_written_is_reported_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PcdnetError, match="cannot make the folder .*; choose another place"):
        RunFolder.create(tmp_path / "file" / "run", Config(), Origin())
    run = grey_run(tmp_path / "run")
    shutil.rmtree(run.path)
    with pytest.raises(PcdnetError, match="make room, then go on with resume=True"):
        run.log(step=1)
    with pytest.raises(PcdnetError, match="make room, then go on with resume=True"):
        run.save_state({"a": torch.zeros(1)}, {})


OLD_CONFIG = """[model]
prototypes = 2
prototype_size = [5, 5]
localization = "gain"
objects = 2
peaks = 2
channels = 1
colour = "solve"
background = true
min_gain = 0.5
refinement = 0
overhang = 0.25
brightest = 1.25
min_visible = 0.0
min_solid = 0.0

[loss]
l1 = 0.0
tv = 0.0
mask_area = 0.01

[train]
steps = 6
batch = 4
learning_rate = 0.01
background_pace = 0.2
decay = 1.0
decay_epochs = 5
cooldown = 0.25
start = "images"
noise = 0.5
noise_probability = 0.8
noise_steps = 150
mask_noise = 0.5
mask_noise_until = 0.95
heal_every = 40
heal_until = 0.7
validate_every = 3
seed = 4
"""
"""The configuration of a run as version 0.1 wrote it."""
OLD_METRICS = (
    {"step": 25, "loss": 0.1, "learning_rate": 0.01, "in_use": 2, "images_per_second": 200.0, "seconds": 62.0},
    {"step": 25, "event": "split", "prototype": 1, "source": 0},
    {"step": 25, "validation": {"scenes": 8, "fg_ari": 0.5, "ari": 0.4, "perfect": 0.0, "mse": 0.04, "objects": 1.5}},
)
"""Lines of its metrics."""
OLD_RECORD = {
    "format": "pcdnet-decomposition-1",
    "name": "s.npz#0",
    "size": [20, 30],
    "error": 1.5,
    "objects": [
        {
            "prototype": 1,
            "position": [-2, 12],
            "colour": [1.25],
            "depth": 0,
            "gain": 47.0,
            "box": [0, 12, 3, 5],
            "pixels": 15,
            "mask": {"size": [20, 30], "counts": "]=13050h00C0@0"},
            "name": "prototype 1",
        }
    ],
}
"""A line of its `decompositions.jsonl`."""


def old_run(folder: Path) -> RunFolder:
    """A run folder as version 0.1 left it, opened."""
    path = grey_run(folder).path
    (path / "config.toml").write_text(OLD_CONFIG)
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in OLD_METRICS))
    words = {"data": "tetrominoes", "minutes": None, "crop": None, "resize": [20, 30], "stride": 1, "grey": True}
    (path / "origin.json").write_text(json.dumps(words))
    return RunFolder.open(path)


def test_a_run_of_version_0_1_is_read(tmp_path: Path, capsys: Capture) -> None:
    run = old_run(tmp_path / "run")
    assert all(f"{old.partition('.')[2]} = " in OLD_CONFIG for old in RENAMED)
    model, train = run.config.model, run.config.train
    assert (model.num_prototypes, model.max_objects, model.peaks_per_prototype, model.restarts) == (2, 2, 2, 0)
    assert (model.min_error_reduction, model.max_colour, model.overhang) == (0.5, 1.25, 0.25)
    assert (model.localization, model.colour) == ("error_reduction", "least_squares")
    assert (train.background_lr_scale, train.init, train.reset_every, train.reset_until) == (0.2, "images", 40, 0.7)
    assert run.origin == Origin(data="tetrominoes", view=View(resize=(20, 30), grey=True))
    assert run.metrics() == list(OLD_METRICS)
    assert main(["eval", str(run.path), "--limit", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenes"] == 4
    words = shlex.split(run.command())[1:]
    command = parse(words)
    assert isinstance(command, Train)
    assert Config.preset(command.preset or "").with_fields(command.changes()) == run.config


def test_the_report_of_a_run_of_version_0_1_shows_its_training(tmp_path: Path) -> None:
    run = old_run(tmp_path / "run")
    pcdnet.report(run, count=4)
    text = run.report.read_text(encoding="utf-8")
    assert "25 steps in 1:02" in text
    assert "prototype 1 was hardly needed" in text


def test_a_run_of_version_0_1_is_resumed(tmp_path: Path) -> None:
    images = generate(20, seed=1).images
    run = tmp_path / "run"
    whole = pcdnet.fit(images, "tetrominoes", changes=TINY, quiet=True)
    asked = iter([False, False, True])
    with pytest.raises(PcdnetError, match="stopped after step 3"):
        pcdnet.fit(images, "tetrominoes", changes=TINY, quiet=True, out=run, stop=lambda: next(asked))
    text = (run / "config.toml").read_text().partition("\n")[2]  # without the checksum
    for old, new in RENAMED.items():
        text = text.replace(f"\n{new} = ", f"\n{old.partition('.')[2]} = ")
    (run / "config.toml").write_text(text.replace('"least_squares"', '"solve"'))
    (run / "origin.json").unlink()
    model = pcdnet.fit(images, quiet=True, out=run, resume=True)
    assert torch.equal(model.prototypes, whole.prototypes)
    assert torch.equal(model.masks, whole.masks)


def test_a_line_of_version_0_1_is_read_and_painted(tmp_path: Path) -> None:
    found = pcdnet.Decomposition.from_dict(json.loads(json.dumps(OLD_RECORD)))
    assert (found.name, found.error, found.instances.shape) == ("s.npz#0", 1.5, (20, 30))
    (thing,) = found.objects
    assert (thing.prototype, thing.position, thing.colour, thing.error_reduction) == (1, (-2, 12), (1.25,), 47.0)
    painted = old_run(tmp_path / "run").load_model().recompose(found)
    assert (painted.instances > 0).sum() == 15
    new = {**painted.to_dict()["objects"][0], "gain": 47.0}  # how much that was, only the image could say
    assert new.items() <= OLD_RECORD["objects"][0].items()  # type: ignore[index]


def test_every_field_of_an_origin_is_kept_when_a_run_goes_on(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    origin = Origin(data="photos", minutes=3, size=(20, 30), view=View(stride=2))
    assert run.with_origin(origin) == RunFolder.open(run.path) == dataclasses.replace(run, origin=origin)


def test_a_run_on_one_picture_is_scored_on_tiles_that_it_did_not_learn_from(tmp_path: Path, capsys: Capture) -> None:
    sheet = np.zeros((35 * 20, 35 * 24, 3), np.uint8)
    for n, image in enumerate(generate(480, seed=1).images):
        row, column = divmod(n, 24)
        sheet[35 * row : 35 * row + 35, 35 * column : 35 * column + 35] = image
    Image.fromarray(sheet).save(tmp_path / "sheet.png")
    out = tmp_path / "run"
    arguments = ["train", "--data", str(tmp_path / "sheet.png"), "--out", str(out), *OPTIONS, "--tiles", "105"]
    assert main(arguments) in ENDED
    run = RunFolder.open(out)
    assert (run.origin.view, run.origin.size) == (View(tiles=105), (105, 105))
    learned, kept = run.training_scenes()
    held = run.held_out()
    np.testing.assert_array_equal(held.images, kept.images)
    assert not set(learned.names) & set(held.names)
    assert main(["eval", str(out)]) == 0
    assert f"{len(held)} scenes" in capsys.readouterr().out
    Image.fromarray(sheet[:140, :140]).save(tmp_path / "other.png")
    assert run.held_out(tmp_path / "other.png").images.shape[1:] == (105, 105, 3)
    Image.fromarray(sheet[:50, :60]).save(tmp_path / "small.png")
    assert run.held_out(tmp_path / "small.png").images.shape == (1, 50, 60, 3)
    whole = run.held_out(view=View(tiles=0))
    np.testing.assert_array_equal(whole.images, sheet[None])
    assert whole.name == "sheet.png, whole, with the parts that were learned from"
    assert run.load_model().learned_size == (105, 105)


def test_a_run_keeps_the_values_that_it_learned_with(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    for n, image in enumerate(generate(20, seed=1).images):
        Image.fromarray(image[..., 0].astype(np.uint16) * 4 + 200).save(folder / f"{n}.tif")
    config = Config.preset("tetrominoes").with_fields({**TINY, "model.channels": 1})
    model = pcdnet.fit(folder, config, out=tmp_path / "run", quiet=True)
    run = RunFolder.open(tmp_path / "run")
    assert model.values == run.origin.view.values == run.load_model().values == (200, 1220)
    np.testing.assert_array_equal(run.held_out().images[0, ..., 0], generate(20, seed=1).images[18, ..., 0])
    picture = generate(20, seed=1).images[3, ..., :1]
    found = [model.decompose(image) for image in (folder / "3.tif", picture.astype(np.uint16) * 4 + 200, picture)]
    assert found[0].error == found[1].error == found[2].error
    model.save(tmp_path / "saved")
    assert pcdnet.load(tmp_path / "saved").values == (200, 1220)
    pcdnet.fit(resume=True, out=tmp_path / "run", quiet=True)
    assert RunFolder.open(tmp_path / "run").origin == run.origin


def test_a_fingerprint_is_that_of_every_pixel_and_of_the_split() -> None:
    scenes = generate(6, seed=1)
    first = fingerprint(scenes.first(4), scenes.part(slice(4, None)))
    assert in_words(first) == "4 images of 35x35x3 and 2 for validation"
    assert first == fingerprint(*(pcdnet.Scenes(images=part.copy()) for part in np.split(scenes.images, [4])))
    others = [fingerprint(scenes.first(5), scenes.part(slice(5, None))), fingerprint(scenes.first(4), scenes.first(2))]
    changed = scenes.images.copy()
    changed[3, 34, 34, 2] ^= 1
    others.append(fingerprint(pcdnet.Scenes(images=changed[:4]), scenes.part(slice(4, None))))
    assert len({first, *others}) == 4


def test_what_a_killed_start_leaves_is_free_and_weights_are_not(tmp_path: Path) -> None:
    for names in ((), ("train.lock",), ("origin.json.partial",), ("origin.json", "config.toml.partial", "train.lock")):
        folder = tmp_path / "-".join(names or ["none"])
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        assert RunFolder.check_free(folder) == folder
        run = RunFolder.create(folder, Config(), Origin())
        assert {path.name for path in run.path.iterdir()} - {"train.lock"} == {"config.toml", "origin.json"}
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "weights.safetensors").touch()
    with pytest.raises(PcdnetError, match="is in use"):
        RunFolder.check_free(tmp_path / "lost")
    assert RunFolder.check_free(tmp_path / "lost", force=True)
    (tmp_path / "lost" / "precious.txt").touch()
    with pytest.raises(PcdnetError, match="holds other things than a run"):
        RunFolder.check_free(tmp_path / "lost", force=True)
