"""Laws of the messages: arrays survive the wire, and what makes no sense is refused."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from hypothesis.strategies import sampled_from
from pydantic import ValidationError

from pcdnet.errors import PcdnetError
from pcdnet.serve.messages import PICTURE_OR_NUMBER, Array, Export, Numbered, Picture


@given(arrays(sampled_from([np.uint8, np.uint16, np.float32]), array_shapes(min_dims=0, max_dims=4, max_side=4)))
def test_an_array_survives_the_wire(values: np.ndarray) -> None:
    again = Array.model_validate_json(Array.from_numpy(values).model_dump_json()).values()
    assert again.dtype == values.dtype
    np.testing.assert_array_equal(again, values)


def test_bytes_are_little_endian_wherever_they_were_made() -> None:
    for order in ("<u2", ">u2"):
        sent = Array.from_numpy(np.array([258], order))
        assert base64.b64decode(sent.data) == b"\x02\x01"


@pytest.mark.parametrize(("data", "cure"), [("AAA=", "send all of its bytes"), ("%%%", "encode its bytes")])
def test_an_array_of_other_bytes_is_refused(data: str, cure: str) -> None:
    with pytest.raises(PcdnetError, match=cure):
        Array(shape=[3], dtype="uint8", data=data).values()


def test_what_is_decomposed_is_a_picture_or_a_number() -> None:
    picture = Picture(image=Array.from_numpy(np.zeros((2, 2), np.uint8)))
    assert PICTURE_OR_NUMBER.validate_json(picture.model_dump_json()) == picture
    assert PICTURE_OR_NUMBER.validate_json('{"picture": 3}') == Numbered(picture=3)
    for other in ('{"picture": -1}', '{"picture": 3, "fats": true}', "{}"):
        with pytest.raises(ValidationError):
            PICTURE_OR_NUMBER.validate_json(other)


def test_programs_are_shown_the_formats_that_there_are() -> None:
    formats = Export.model_json_schema()["properties"]["format"]["enum"]
    assert formats == ["json", "coco", "png", "csv", "parquet", "yolo", "label-studio"]
