"""Shapes and types in signatures are checked at run time in tests, and only here."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

import tests.typechecking  # noqa: F401  (the hook looks it up by name)

torch.set_num_threads(1)  # tests are small: two threads would only wait for each other
settings.register_profile("pcdnet", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("pcdnet")

with install_import_hook("pcdnet", "tests.typechecking.checked"):
    import pcdnet.data.opening
    import pcdnet.data.space_invaders
    import pcdnet.data.tetromino_records
    import pcdnet.data.video
    import pcdnet.metrics
    import pcdnet.model.inspection
    import pcdnet.model.network
    import pcdnet.model.onnx.file
    import pcdnet.model.onnx.parity
    import pcdnet.output.dataset
    import pcdnet.output.decompose
    import pcdnet.output.figures
    import pcdnet.output.formats
    import pcdnet.output.report
    import pcdnet.output.study
    import pcdnet.output.summary
    import pcdnet.progress
    import pcdnet.serve.app
    import pcdnet.serve.server
    import pcdnet.training.automatic
    import pcdnet.training.display
    import pcdnet.training.fit
    import pcdnet.training.tuning.search
    import pcdnet.training.tuning.storage  # noqa: F401

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def rng() -> torch.Generator:
    """Randomness that is the same in every run."""
    return torch.Generator().manual_seed(0)


@pytest.fixture
def shared() -> Path:
    """The folder of genuine data beside the project; tests that need it skip where it is missing."""
    if not SHARED.is_dir():
        pytest.skip("needs the genuine data in ../shared, which is not part of the project")
    return SHARED
