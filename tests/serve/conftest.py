"""A run with the true prototypes of Tetrominoes, and a real server for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import torch

from pcdnet.config import Config, ModelConfig
from pcdnet.data import tetrominoes
from pcdnet.data.source import TEST_SEED, open_data
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes
from pcdnet.serve.app import create_app
from pcdnet.serve.server import address, bind, make_server
from pcdnet.serve.workbench import Workbench
from pcdnet.training.run import Run, load
from tests.oracle.scenes import random_bank, random_scene


def make_run(folder: Path) -> Path:
    """A run folder that needed no training."""
    config = Config.preset("tetrominoes")
    prototypes, masks = tetrominoes.true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    Run.create(folder, config).save_weights(PCDNet.from_bank(bank, config.model))
    return folder


def make_workbench(run: Path) -> Workbench:
    """The workbench of a run on Tetrominoes, with six samples."""
    return Workbench(folder=run, model=load(run), samples=open_data("tetrominoes", count=6, seed=TEST_SEED))


def make_grey_workbench(folder: Path) -> Workbench:
    """The workbench of a grey model with soft masks and a background, and with three samples."""
    rng = torch.Generator().manual_seed(5)
    bank = random_bank(rng, 4, (12, 10), (1, 40, 56), torch.float32)
    config = ModelConfig(
        prototypes=4, prototype_size=(12, 10), objects=5, peaks=3, channels=1, background=True, min_gain=0.1
    )
    Run.create(folder, Config(model=config)).save_weights(PCDNet.from_bank(bank, config))
    images = torch.stack([random_scene(rng, bank, (40, 56), 1, 4, 0.0) for _ in range(3)])
    pixels = (255 * images).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
    return Workbench(folder=folder, model=load(folder), samples=Scenes(images=pixels, name="grey"))


@contextmanager
def serving(workbench: Workbench, *, local: bool = True) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    with bind("127.0.0.1", 0) as bound:
        server = make_server(create_app(workbench, local=local))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield address(bound).rstrip("/")
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder."""
    return make_run(tmp_path_factory.mktemp("runs") / "true")


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
