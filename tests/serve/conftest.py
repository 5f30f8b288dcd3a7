"""A run with the true prototypes of Tetrominoes, and a real server for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from benchmarks.serve import serving

from pcdnet.config import Background, Config, ModelConfig
from pcdnet.data.opening import open_data
from pcdnet.data.sources import TEST_SEED
from pcdnet.data.strip import SceneStrip
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.origin import Origin
from pcdnet.run import load
from pcdnet.scene import Scenes
from pcdnet.serve.workbench import Workbench
from tests.model.poses.letters import letters
from tests.oracle.scenes import random_bank, random_scene
from tests.runs import run_of, true_run
from tests.serve.pages import CHROMIUM, READY, Watch


def make_workbench(run: Path) -> Workbench:
    """The workbench of a run on Tetrominoes, with six pictures."""
    return Workbench(
        folder=run, model=load(run), pictures=SceneStrip(open_data("tetrominoes", count=6, seed=TEST_SEED))
    )


def make_grey_workbench(folder: Path) -> Workbench:
    """The workbench of a grey model with soft masks and a background, and with three pictures."""
    rng = torch.Generator().manual_seed(5)
    bank = random_bank(rng, 4, (12, 10), (1, 40, 56), torch.float32)
    config = ModelConfig(
        num_prototypes=4,
        prototype_size=(12, 10),
        max_objects=5,
        peaks_per_prototype=3,
        channels=1,
        background="still",
        min_error_reduction=0.1,
    )
    run = run_of(folder, bank, Config(model=config), Origin())
    images = torch.stack([random_scene(rng, bank, (40, 56), 1, 4, 0.0) for _ in range(3)])
    pixels = (255 * images).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
    return Workbench(folder=folder, model=run.load_model(), pictures=SceneStrip(Scenes(images=pixels, name="grey")))


def make_own_workbench(folder: Path, kind: Background) -> Workbench:
    """The workbench of a grey model whose backgrounds differ from picture to picture, and with three pictures.

    Behind their objects are parts of one large picture: a slow slope or, for a camera to know its way, noise.
    """
    rng = torch.Generator().manual_seed(5)
    bank = random_bank(rng, 4, (12, 10), (1, 60, 80), torch.float32)
    whole = torch.rand(1, 60, 80, generator=rng) / 2 if kind == "moving" else bank.background
    assert whole is not None
    config = ModelConfig(
        num_prototypes=4,
        prototype_size=(12, 10),
        max_objects=4,
        peaks_per_prototype=3,
        channels=1,
        background=kind,
        min_error_reduction=0.5,
    )
    parts = [dataclasses.replace(bank, background=whole[:, 9 * n : 9 * n + 40, 7 * n : 7 * n + 56]) for n in range(3)]
    images = torch.stack([random_scene(rng, part, (40, 56), 1, 2, 0.0) for part in parts])
    pixels = (255 * images).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
    learned = dataclasses.replace(bank, background=whole if kind == "moving" else None)
    run = run_of(folder, learned, Config(model=config), Origin())
    return Workbench(folder=folder, model=run.load_model(), pictures=SceneStrip(Scenes(images=pixels, name=kind)))


def make_posed_workbench(folder: Path, **fields: Any) -> Workbench:
    """The workbench of a model of an L and an F in poses, with two pictures of both."""
    masks, poses = (
        letters(),
        {"rotations": 8, "scales": 2, "scale_range": (0.8, 1.25), "mirror": True, "subpixel": True},
    )
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=(15, 15),
        max_objects=4,
        peaks_per_prototype=3,
        channels=3,
        background="black",
        localization="error_reduction",
        min_error_reduction=2.0,
        **(fields or poses),
    )
    run = run_of(folder, PrototypeBank(torch.ones_like(masks), masks), Config(model=config), Origin())
    model, pixels = run.load_model(), []
    for angle in (0, 35) if not fields else (0, 0):
        scene = Decomposition.from_dict(
            {
                "size": [48, 56],
                "name": "",
                "objects": [
                    {"prototype": 0, "position": [6, 8], "colour": [0.9, 0.3, 0.2], "angle": angle, "scale": 1.0},
                    {"prototype": 1, "position": [22, 30.5], "colour": [0.2, 0.7, 0.9], "angle": angle, "scale": 1.0},
                ],
            },
            3,
        )
        pixels.append((255 * model.render(scene).clip(0, 1)).round().astype("uint8"))
    return Workbench(folder=folder, model=model, pictures=SceneStrip(Scenes(images=np.stack(pixels), name="posed")))


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder."""
    return true_run(tmp_path_factory.mktemp("runs") / "true").path


@pytest.fixture(scope="package")
def workbench(run: Path) -> Workbench:
    """Its workbench."""
    return make_workbench(run)


@pytest.fixture(scope="package")
def site(workbench: Workbench) -> Iterator[str]:
    """The address of its server."""
    with serving(workbench) as where:
        yield where


@pytest.fixture(scope="package")
def client(site: str) -> Iterator[httpx.Client]:
    """A client of it; it takes longer to make one than most answers take."""
    with httpx.Client(base_url=site, timeout=60) as made:
        yield made


@pytest.fixture(scope="package")
def grey_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server for a grey model with a background."""
    with serving(make_grey_workbench(tmp_path_factory.mktemp("runs") / "grey")) as where:
        yield where


@pytest.fixture(scope="package")
def plain_workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """The workbench of a model of plain backgrounds."""
    return make_own_workbench(tmp_path_factory.mktemp("runs") / "plain", "plain")


@pytest.fixture(scope="package")
def plain_site(plain_workbench: Workbench) -> Iterator[str]:
    """The address of its server."""
    with serving(plain_workbench) as where:
        yield where


@pytest.fixture(scope="package")
def posed_workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """The workbench of a model of poses."""
    return make_posed_workbench(tmp_path_factory.mktemp("runs") / "posed")


@pytest.fixture(scope="package")
def posed_site(posed_workbench: Workbench) -> Iterator[str]:
    """The address of its server."""
    with serving(posed_workbench) as where:
        yield where


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, from the extra dev")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with playwright.sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield made
        made.close()


@pytest.fixture(scope="package")
def watch(browser: Any) -> Watch:
    """Its windows."""
    return Watch(browser)


@pytest.fixture
def visit(watch: Watch, site: str, grey_site: str, plain_site: str, workbench: Workbench) -> Iterator[Any]:
    """Opens the page; fails if anything went elsewhere, or if a script complained."""
    watch.asked.clear()
    watch.troubles.clear()
    places, pages = [site, grey_site, plain_site], []

    def opened(where: str = site, *, narrow: bool = False, fresh: bool = False) -> Any:
        places.append(where.rstrip("/"))
        page = watch.fresh(narrow=narrow) if fresh else watch.window(narrow=narrow)
        pages.append(page)
        page.mouse.move(0, 0)
        page.goto(where)
        page.wait_for_selector(READY)
        page.wait_for_selector("#objects .row")
        return page

    yield opened
    for page in pages:
        if page.is_closed():
            continue
        page.evaluate("window.pcdnet?.keeping.settled()")
        if not page.url.startswith(site):
            page.goto("about:blank")  # its server may end before the page asks again
    workbench.discard_edits()
    assert watch.troubles == []
    assert watch.asked
    ours = tuple(f"{kind}{where}/" for kind in ("", "blob:") for where in places)
    assert all(url.startswith(ours) for url in watch.asked)
