"""The public names are documented where they stand, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import pcdnet

METHODS = ("decompose", "decompose_all", "render", "recompose", "save", "from_bank")
"""What users call of a model."""


def modules() -> list[str]:
    """Every module of the package; `__main__` runs when it is imported."""
    found = pkgutil.walk_packages(pcdnet.__path__, "pcdnet.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def public_functions() -> Iterator[tuple[str, Any]]:
    """The public functions, and the methods of a model that users call."""
    for name in pcdnet.__all__:
        if inspect.isfunction(getattr(pcdnet, name)):
            yield name, getattr(pcdnet, name)
    for name in METHODS:
        yield f"PCDNet.{name}", getattr(pcdnet.PCDNet, name)


@pytest.mark.parametrize("name", modules())
def test_every_example_prints_what_it_says(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize(("name", "function"), list(public_functions()))
def test_every_public_function_has_parameters_returns_and_an_example(name: str, function: Any) -> None:
    text = inspect.getdoc(function) or ""
    parts = ("Parameters", "Examples") if inspect.signature(function).parameters else ("Examples",)
    missing = [f"{part}\n{'-' * len(part)}" for part in parts]
    if inspect.signature(function).return_annotation not in (None, "None"):
        missing.append("Returns\n-------")
    assert [part.split()[0] for part in missing if part not in text] == []
    undescribed = [
        argument
        for argument in inspect.signature(function).parameters
        if argument != "self" and f"\n{argument}\n" not in text and f"\n{argument}, " not in text
        if not any(argument in line.split(", ") for line in text.splitlines())
    ]
    assert undescribed == []
