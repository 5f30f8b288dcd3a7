"""Laws of the records: a record is its decomposition with masks, and is one again."""

from __future__ import annotations

import json

import numpy as np

from pcdnet.decomposition import Decomposition
from pcdnet.output.record import records
from tests.output.found import random_records


def test_a_record_is_its_decomposition_with_masks_and_a_name() -> None:
    found, made = random_records(8)
    for n, (one, record) in enumerate(zip(found, made, strict=True)):
        masks = [thing.pop("mask") for thing in record["objects"]]
        assert record == {**one.to_dict(), "name": f"image-{n}"}
        assert all(mask["size"] == record["size"] for mask in masks)


def test_a_record_survives_json_and_is_a_decomposition_again() -> None:
    for one, record in zip(*random_records(8), strict=True):
        again = Decomposition.from_dict(json.loads(json.dumps(record)))
        np.testing.assert_array_equal(again.prototype_ids, one.prototype_ids)
        np.testing.assert_array_equal(again.positions, one.positions)
        np.testing.assert_array_equal(again.colours, one.colours)
        assert again.error == one.error


def test_no_image_makes_no_record() -> None:
    assert records([], []) == []
