"""The engine is compared with the oracle as it runs for users: without a check of every shape."""

from __future__ import annotations

import jaxtyping
import pytest


@pytest.fixture(autouse=True)
def unchecked_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes are checked in the tests of the model; checked here too, they would take half of the time."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
