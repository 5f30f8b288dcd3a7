"""Laws of the JSON lines: a line an image, which is its dictionary with masks and names."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from pcdnet.output.json_lines import write
from tests.output.found import NAMES, random_records, results

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools' own


def test_a_line_is_a_decomposition_with_masks_and_names(tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    decode = importlib.import_module("pycocotools.mask").decode
    found, made = random_records(10)
    assert write(results(made), tmp_path) == [tmp_path / "decompositions.jsonl"]
    lines = (tmp_path / "decompositions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 10
    for n, (one, line) in enumerate(zip(found, lines, strict=True)):
        read = json.loads(line)
        for thing, expected in zip(read["objects"], one.objects, strict=True):
            np.testing.assert_array_equal(decode(thing.pop("mask")), expected.mask)
            assert thing.pop("name") == NAMES[expected.prototype]
        assert read == {**one.to_dict(), "name": f"image-{n}"}
