"""What a preset would say is read off the images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pcdnet.cli import main
from pcdnet.config import Config
from pcdnet.errors import PcdnetError
from pcdnet.training.automatic import choose
from tests.runs import ENDED
from tests.training.blobs import frames
from tests.training.posed_blobs import heart, hook, posed_blob, triangle

Capture = pytest.CaptureFixture[str]


def test_sizes_and_numbers_are_those_of_the_things_in_the_images() -> None:
    images = frames(80)
    model = choose(images, seed=3).config.model
    assert model.channels == 3
    assert model.background == "still"
    assert 2 <= model.num_prototypes <= 6  # two shapes, and perhaps some in which they touch
    assert 5 + 4 <= model.prototype_size[1] <= 20
    assert 4 + 4 <= model.prototype_size[0] <= 20
    assert 4 <= model.max_objects <= 8
    assert model.peaks_per_prototype >= 2


def test_the_choice_trains_and_explains_and_says_why() -> None:
    choice = choose(frames(80), seed=3)
    assert choice.config.train.seed == 3
    assert choice.config.train.init == "shapes"
    assert any("40x50" in reason for reason in choice.reasons)
    assert Config.from_toml(choice.config.to_toml()) == choice.config


def test_images_on_black_need_no_background() -> None:
    images = np.zeros((20, 30, 30, 1), np.uint8)
    for n in range(20):
        images[n, 3 + n % 15 : 9 + n % 15, 5:12] = 200
    config = choose(images, seed=0).config
    assert config.model.background == "black"
    assert config.model.channels == 1


def test_images_in_which_nothing_changes_are_refused() -> None:
    with pytest.raises(PcdnetError, match="stands out"):
        choose(np.full((20, 30, 30, 3), 90, np.uint8), seed=0)


def test_a_folder_trains_without_a_preset(tmp_path: Path, capsys: Capture) -> None:
    folder, out = tmp_path / "photos", tmp_path / "run"
    folder.mkdir()
    for n, image in enumerate(frames(30)):
        Image.fromarray(image).save(folder / f"{n}.png")
    steps = ["--train.steps", "3", "--train.batch", "4", "--model.num-prototypes", "3"]
    assert main(["train", "--data", str(folder), "--out", str(out), *steps]) in ENDED
    printed, said = capsys.readouterr()
    assert "everything is chosen from the images" in said
    assert "model.localization='error_reduction'" in said
    assert f"next: pcdnet report {out}" in printed
    config = Config.load(out / "config.toml")
    assert (config.train.steps, config.train.batch, config.model.num_prototypes) == (3, 4, 3)
    assert config.train.init == "shapes"
    assert main(["eval", str(out)]) == 0


def page(rng: np.random.Generator) -> np.ndarray:
    """Plain paper with a hundred and fifty small signs of two shapes."""
    image = np.full((120, 160, 1), 230, np.uint8)
    for row in range(4, 110, 11):
        for column in range(4, 150, 10):
            mark = image[row : row + 6, column : column + 5]
            mark[:, 1:3] = 20
            if rng.random() < 0.5:
                mark[3:5] = 20
    return image


def test_images_of_too_many_objects_are_cut_into_tiles() -> None:
    rng = np.random.default_rng(0)
    images = np.stack([page(rng) for _ in range(12)])
    choice = choose(images, seed=0)
    assert choice.config.model.background == "plain"
    assert choice.tiles is not None
    assert 30 <= choice.tiles <= 90
    assert choose(images, seed=0, tiles=True).tiles is None
    assert choose(images[:, :40, :40], seed=0).tiles is None


def test_panels_and_bars_that_hide_things_are_told() -> None:
    rng = np.random.default_rng(0)
    ground = rng.integers(60, 90, (60, 70, 3)).astype(np.uint8)
    images = np.repeat(ground[None], 300, axis=0)
    for n, image in enumerate(images):
        row, column = n % 62 - 6, 3 * n % 60
        image[max(0, row) : row + 8, column : column + 6] = (230, 200, 40)
        row, column = 10 * (n % 5), n % 76 - 6
        image[row : row + 6, max(0, column) : max(0, column + 6)] = (40, 200, 230)
    images[:, :, :9], images[:, 30:33] = ground[:, :9], ground[30:33]
    reasons = choose(images, seed=0).reasons
    assert "things are cut off around 60x61 pixels at row 0, column 9, and looked for in there" in reasons
    assert "rows 30, 31, 32 hide what passes behind them" in reasons


@pytest.mark.parametrize("turned", [True, False])
def test_symbols_in_four_turns_are_learned_with_poses_and_upright_ones_as_ever(turned: bool) -> None:
    rng, images = np.random.default_rng(0), np.zeros((80, 50, 50, 1), np.uint8)
    symbols = [posed_blob(shape, 0, 7, rng).mask for shape in (heart, hook, triangle)]
    for n, image in enumerate(images):
        for m, corner in enumerate((4, 27)):
            shape = np.rot90(symbols[(n + m) % 3], int(rng.integers(4)) if turned else 0)
            image[corner : corner + len(shape), corner : corner + shape.shape[1]][shape] = 200
    choice = choose(images, seed=0)
    model = choice.config.model
    assert (model.rotations, model.fine_poses, model.num_prototypes) == (4, False, 3) if turned else not model.posed
    assert any("3 shapes in 4 turns" in reason for reason in choice.reasons) == turned
