"""TFRecords written here, bit by bit, are read back; damaged ones are refused."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.data.tfrecord import claimed_records, parse_example, read_records
from pcdnet.errors import PcdnetError
from tests.data.records import example, frame, masked, message, varint, write

RECORDS = [b"one", b"", b"\0" * 300, bytes(range(256)) * 3]


@pytest.mark.parametrize("zipped", [False, True])
def test_what_is_written_is_read(tmp_path: Path, zipped: bool) -> None:
    assert list(read_records(write(tmp_path / "a.tfrecords", RECORDS, zipped))) == RECORDS


@pytest.mark.parametrize("zipped", [False, True])
def test_the_number_of_records_is_known_if_all_are_as_long_as_the_first(tmp_path: Path, zipped: bool) -> None:
    assert claimed_records(write(tmp_path / "a.tfrecords", [b"abc"] * 40, zipped)) == 40
    assert claimed_records(write(tmp_path / "b.tfrecords", [b""], zipped)) == 1
    with pytest.raises(PcdnetError, match="does not exist; give the path of a .tfrecords file"):
        claimed_records(tmp_path / "missing.tfrecords")
    (tmp_path / "c.tfrecords").write_bytes(gzip.compress(frame(b"abc"))[:-12])
    with pytest.raises(PcdnetError, match="is no sound .tfrecords file .*; download it again"):
        claimed_records(tmp_path / "c.tfrecords")


def test_every_truncation_but_between_records_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecords"
    records = [b"one", b"", b"three"]
    content = b"".join(map(frame, records))
    whole = {sum(len(frame(r)) for r in records[:n]): n for n in range(1, 4)}
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        if size in whole:
            assert list(read_records(path)) == records[: whole[size]]
        else:
            with pytest.raises(PcdnetError, match=r"a\.tfrecords .*; (download|give)"):
                list(read_records(path))


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecords"
    content = frame(b"one") + frame(b"second")
    for bit in range(8 * len(content)):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        with pytest.raises(PcdnetError, match=r"a\.tfrecords .*; (download|give)"):
            list(read_records(path))


def test_every_truncated_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecords"
    content = gzip.compress(frame(b"one") + frame(b"second"))
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(PcdnetError, match=r"a\.tfrecords .*; (download|give)"):
            list(read_records(path))


def test_every_flipped_bit_of_a_gzip_is_refused_or_harmless(tmp_path: Path) -> None:
    # Harmless are a few bits that carry no data: the time of writing, and padding after the last code.
    path = tmp_path / "a.tfrecords"
    content = gzip.compress(frame(b"one") + frame(b"second"))
    refused = 0
    for bit in range(8 * len(content)):
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        try:
            assert list(read_records(path)) == [b"one", b"second"]
        except PcdnetError:
            refused += 1
    assert refused > 8 * (len(content) - 10)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecords", [b"one", b"two", b"three"])
    broken = bytearray(path.read_bytes())
    broken[len(frame(b"one")) + 12] ^= 1
    path.write_bytes(broken)
    with pytest.raises(PcdnetError, match=r"record 1 of .*wrong checksum.*; download"):
        list(read_records(path))


def test_a_record_that_claims_to_be_huge_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecords"
    length = struct.pack("<Q", 2**40)
    path.write_bytes(length + masked(length))
    with pytest.raises(PcdnetError, match=f"record 0 of .* claims {2**40} bytes"):
        list(read_records(path))


@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_without_records_is_refused(tmp_path: Path, zipped: bool) -> None:
    with pytest.raises(PcdnetError, match="holds no records; give"):
        list(read_records(write(tmp_path / "a.tfrecords", [], zipped)))


def test_what_is_no_tfrecord_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="does not exist; give"):
        list(read_records(tmp_path / "missing.tfrecords"))
    with pytest.raises(PcdnetError, match=r"cannot be read .*; give"):
        list(read_records(tmp_path))
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n and so on")
    with pytest.raises(PcdnetError, match=r"image.png is no TFRecord file .*; give"):
        list(read_records(tmp_path / "image.png"))


@given(st.binary(max_size=40))
def test_bytes_read_the_same_however_they_are_split(data: bytes) -> None:
    split = b"".join(message(1, bytes([byte])) for byte in data)
    pairs = b"".join(message(1, data[at : at + 2]) for at in range(0, len(data), 2))
    for content in (split, pairs, message(1, data)):
        values = parse_example(example(a=message(1, content)))["a"]
        assert values.dtype == np.uint8
        assert values.tobytes() == data


@given(st.lists(st.floats(width=32), max_size=6))
def test_floats_read_the_same_packed_or_not(values: list[float]) -> None:
    parts = [struct.pack("<f", value) for value in values]
    packed, single = message(1, b"".join(parts)), b"".join(b"\x0d" + part for part in parts)
    for content in (packed, single):
        read = parse_example(example(a=message(2, content)))["a"]
        assert read.dtype == np.float32
        assert np.array_equal(read, np.array(values, dtype=np.float32), equal_nan=True)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6))
def test_integers_read_the_same_packed_or_not(values: list[int]) -> None:
    parts = [varint(value) for value in values]
    packed, single = message(1, b"".join(parts)), b"".join(b"\x08" + part for part in parts)
    for content in (packed, single):
        read = parse_example(example(a=message(3, content)))["a"]
        assert read.dtype == np.int64
        assert read.tolist() == values


def test_unknown_fields_are_skipped() -> None:
    unknown = b"\x48\x05" + b"\x4d1234" + b"\x4912345678" + message(9, b"xyz")
    known = message(2, message(1, struct.pack("<f", 2.5)) + unknown)
    entry = unknown + message(1, b"a") + message(2, unknown + known)
    features = parse_example(unknown + message(1, message(1, entry) + unknown))
    assert {name: values.tolist() for name, values in features.items()} == {"a": [2.5]}
    assert parse_example(example(empty=b"")) == {}
    assert parse_example(b"") == {}


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (b"\x0a", "a number is cut off"),
        (b"\x0a\x05abc", "a field is cut off"),
        (b"\x0d\x01", "a field is cut off"),
        (b"\xff" * 11, "longer than ten bytes"),
        (b"\x0b", "wire type 3"),
        (b"\x02\x00", "number 0"),
        (b"\x08\x01", "field 1 has wire type 0"),
        (message(1, message(1, message(1, b"\xff") + message(2, b""))), "utf-8"),
        (example(a=message(1, b"\x0a\x02x")), "a field is cut off"),
        (example(a=message(2, message(1, b"12345"))), "four bytes"),
        (example(a=message(2, b"\x08\x01")), "wire type 0"),
        (example(a=message(2, b"\x0912345678")), "wire type 1"),
        (example(a=message(3, b"\x0d1234")), "wire type 5"),
        (example(a=message(3, message(1, b"\x80"))), "a number is cut off"),
    ],
)
def test_malformed_examples_are_refused(record: bytes, complaint: str) -> None:
    with pytest.raises(PcdnetError, match=f"record 7 is no tf.train.Example .*{complaint}.*; give"):
        parse_example(record, "record 7")


@given(st.binary(max_size=60))
def test_random_bytes_never_crash_the_parser(record: bytes) -> None:
    for candidate in (
        record,
        example(a=record),
        example(a=message(2, record)),
        example(a=message(3, record)),
    ):
        try:
            parse_example(candidate)
        except PcdnetError as error:
            assert "no tf.train.Example" in str(error)  # noqa: PT017


def test_a_record_that_would_take_long_to_parse_is_refused(tmp_path: Path) -> None:
    head = struct.pack("<Q", 2**21)
    (tmp_path / "a.tfrecords").write_bytes(gzip.compress(head + masked(head) + bytes(2**21)))
    with pytest.raises(PcdnetError, match=r"record 0 of .* claims 2097152 bytes, more than 262144; split it"):
        list(read_records(tmp_path / "a.tfrecords"))
