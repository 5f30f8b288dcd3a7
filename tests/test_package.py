"""Laws of the package as users import it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import pcdnet


def imported_by(code: str) -> set[str]:
    """The modules that are loaded after some code has run in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_neither_torch_nor_numpy() -> None:
    assert not {"torch", "numpy", "matplotlib"} & imported_by("import pcdnet, pcdnet.cli")


def test_results_and_configurations_need_no_torch() -> None:
    code = "from pcdnet import Config, Decomposition, PcdnetError, Scene, SceneObject, __version__"
    assert "torch" not in imported_by(code)


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(pcdnet.__all__) == pcdnet.__all__
    for name in pcdnet.__all__:
        assert name in dir(pcdnet)
        assert getattr(pcdnet, name).__doc__
        assert getattr(pcdnet, name) is getattr(pcdnet, name)


def test_public_classes_are_those_of_their_modules() -> None:
    from pcdnet.errors import PcdnetError
    from pcdnet.model.network import PCDNet

    assert pcdnet.PCDNet is PCDNet
    assert pcdnet.PcdnetError is PcdnetError


def test_the_version_is_that_of_the_installed_package() -> None:
    assert pcdnet.__version__ == version("pcdnet")


def test_other_names_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="'pcdnet' has no attribute 'PCDnet'"):
        pcdnet.PCDnet  # noqa: B018
