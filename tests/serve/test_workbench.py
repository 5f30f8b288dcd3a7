"""Laws of the workbench: which pictures a run is served with, and what can be asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from pcdnet.data.strip import GENERATED_PICTURES, SceneStrip
from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.origin import Origin
from pcdnet.run import RunFolder, load
from pcdnet.scene import Scenes
from pcdnet.serve import messages
from pcdnet.serve.messages import Array
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.workbench import Workbench
from tests.runs import true_run
from tests.serve.conftest import make_grey_workbench


def test_pictures_are_of_the_data_of_the_run(run: Path) -> None:
    browsing = Workbench.for_run(RunFolder.open(run)).browsing
    assert len(browsing) == GENERATED_PICTURES
    assert browsing.pixels(3).shape == (35, 35, 3)


@pytest.mark.parametrize("known", [True, False])
def test_without_its_data_a_run_is_served_without_pictures(known: bool, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.npz")
    run = true_run(tmp_path / "run", Origin(data=gone if known else None))
    workbench = Workbench.for_run(run)
    assert workbench.pictures is None
    assert workbench.size is None
    assert workbench.describe(renaming=True).use is None
    with pytest.raises(PcdnetError, match="there is no picture 0; there are 0"):
        workbench.browsing.pixels(0)
    with pytest.raises(PcdnetError, match="gone.npz"):
        Workbench.for_run(run, gone)


def test_pictures_are_looked_at_as_the_training_looked(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (48, 44, 60, 3), np.uint8)
    np.savez(tmp_path / "seen.npz", image=images)
    make_grey_workbench(tmp_path / "run")
    origin = Origin(data=str(tmp_path / "seen.npz"), view=View(crop=(2, 3, 40, 56), stride=2, grey=True))
    (tmp_path / "run" / "origin.json").write_text(origin.to_json(), encoding="utf-8")
    browsing = Workbench.for_run(RunFolder.open(tmp_path / "run")).browsing
    assert len(browsing) == 24
    luma = images[::2, 2:42, 3:59] @ np.array([0.299, 0.587, 0.114])
    for number in (0, 11, 23):
        assert np.abs(browsing.pixels(number)[..., 0] - luma[number]).max() <= 1


def test_generated_pictures_have_no_stride(tmp_path: Path) -> None:
    run = true_run(tmp_path / "run", Origin(data=str(tmp_path / "gone.npz"), view=View(stride=4)))
    assert len(Workbench.for_run(run, "tetrominoes").browsing) == GENERATED_PICTURES


def test_pictures_have_the_channels_of_the_model(run: Path) -> None:
    model = RunFolder.open(run).load_model()
    grey = SceneStrip(Scenes(images=np.zeros((3, 40, 50, 1), np.uint8)))
    bench = Workbench(folder=run, model=model, pictures=grey)
    assert bench.browsing.pixels(2).shape == (40, 50, 3)
    assert bench.size == (40, 50)


def test_a_large_picture_is_decomposed_whole_and_shown_smaller(workbench: Workbench) -> None:
    scenes = generate(400, seed=1).images
    sheet = scenes.reshape(20, 20, 35, 35, 3).transpose(0, 2, 1, 3, 4).reshape(700, 700, 3)
    model = load(workbench.folder)
    model.learned_size = (35, 35)
    bench = Workbench(folder=workbench.folder, model=model)
    answer = bench.decompose(messages.Picture(image=Array.from_numpy(sheet), name="sheet"))
    assert answer.shrunk == 2
    assert answer.scene["size"] == [700, 700]
    assert len(answer.scene["objects"]) > 1100, "nearly three a scene"
    assert answer.image is not None
    assert answer.image.shape == answer.reconstruction.shape == [350, 350, 3]
    labels = answer.instances.values()
    assert labels.shape == (350, 350)
    for n in (1, 500, 1000):
        top, left, height, width = answer.scene["objects"][n - 1]["box"] or (0, 0, 0, 0)
        rows, columns = np.nonzero(labels == n)
        assert ((2 * rows >= top - 1) & (2 * rows <= top + height)).all()
        assert ((2 * columns >= left - 1) & (2 * columns <= left + width)).all()
    with pytest.raises(Refusal, match="700x700 pixels are more than 262,144"):
        bench.inspect(messages.Question(image=Array.from_numpy(sheet)))


def turned(**pose: Any) -> messages.Scene:
    """A scene of one object in a pose."""
    thing = {"prototype": 0, "position": [9.5, 8], "colour": [1.0, 0.0, 0.0], **pose}
    return messages.Scene.model_validate({"size": [35, 35], "objects": [thing]})


def test_objects_may_be_turned_scaled_mirrored_and_moved_by_fractions(workbench: Workbench) -> None:
    (thing,) = workbench.render(turned(angle=-30, scale=1.5, mirrored=True)).scene["objects"]
    assert (thing["position"], thing["angle"], thing["scale"], thing["mirrored"]) == ([9.5, 8], 330, 1.5, True)
    assert thing["pixels"] > 0
    (upright,) = workbench.render(turned(position=(9, 8))).scene["objects"]
    assert "angle" not in upright


def test_poses_beyond_all_measure_are_refused(workbench: Workbench) -> None:
    for pose in ({"angle": 361}, {"scale": 17}, {"scale": 0}, {"position": [1e9, 0.5]}):
        with pytest.raises(ValidationError):
            turned(**pose)
    with pytest.raises(PcdnetError, match="object 0 of the scale 16 has .* pixels in a picture of 35x35"):
        workbench.render(turned(scale=16))
    many = turned(scale=15).model_copy(update={"objects": 1000 * turned(scale=15).objects})
    with pytest.raises(Refusal, match="send .* or fewer"):
        workbench.render(many)
