"""TFRecord files and tf.train.Example messages, read without TensorFlow.

A record is `length (8 bytes) | CRC of the length (4) | data | CRC of the data (4)`, little endian; the file
may be gzipped. Every checksum is checked, since files come from strangers and through broken downloads.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import google_crc32c
import numpy as np
from jaxtyping import Shaped, UInt8

from pcdnet.data.notes import readable
from pcdnet.errors import PcdnetError

_LONGEST_RECORD = 2**18  # the scenes that are read here have 25 KiB, and a stranger's megabyte takes seconds to parse
_GZIP_MAGIC = b"\x1f\x8b\x08"
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # wire types: a number, eight bytes, bytes with their length, four bytes


def read_records(path: Path) -> Generator[bytes, None, None]:
    """Yield the data of every record of a plain or gzipped TFRecord file.

    Messages count records from 0. A plain file that was cut exactly between two records looks like a whole one.
    """
    number = -1
    with _open(path) as (file, _):
        for number, data in enumerate(_records(file, path)):  # noqa: B007
            yield data
    if number < 0:
        raise PcdnetError(f"{path} holds no records; give a .tfrecords file that is not empty or download it again")


def claimed_records(path: Path) -> int:
    """How many records a file seems to hold: as many as would fill it if all were as long as the first."""
    with _open(path) as (records, zipped), path.open("rb") as file:
        first = next(_records(records, path), b"")
        size = file.seek(0, io.SEEK_END)
        if zipped:
            file.seek(-4, io.SEEK_END)
            size = int.from_bytes(file.read(), "little")  # gzip ends with the size modulo 2**32
    return size // (len(first) + 16)


@contextmanager
def _open(path: Path) -> Iterator[tuple[io.BufferedIOBase, bool]]:
    """The file, and whether it had to be unzipped; what goes wrong until it is closed is reported as one sentence."""
    with readable(path, "a .tfrecords file", (EOFError, zlib.error, gzip.BadGzipFile), "download it again"):
        with path.open("rb") as file:
            zipped = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        with io.BufferedReader(gzip.open(path, "rb"), 2**20) if zipped else path.open("rb") as records:
            yield records, zipped


def _records(file: io.BufferedIOBase, path: Path) -> Iterator[bytes]:
    """Yield the data of every record whose length and data have their checksums."""
    for number in count():
        header, record = file.read(12), f"record {number} of {path}"
        if not header:
            return
        if len(header) < 12 or _checksum(header[:8]) != header[8:]:
            if number == 0:
                raise PcdnetError(
                    f"{path} is no TFRecord file (it begins with no record header); give a .tfrecords file"
                )
            raise PcdnetError(f"{record} has a damaged header; download the file again")
        length = int.from_bytes(header[:8], "little")
        if length > _LONGEST_RECORD:
            raise PcdnetError(
                f"{record} claims {length} bytes, more than {_LONGEST_RECORD}; split it into smaller ones"
            )
        data, checksum = file.read(length), file.read(4)
        if len(checksum) < 4:
            there = f"{len(data) + len(checksum)} of {length + 4} bytes are there"
            raise PcdnetError(f"{record} is cut off ({there}); download the file again")
        if _checksum(data) != checksum:
            raise PcdnetError(f"{record} is damaged (wrong checksum); download the file again")
        yield data


def _checksum(data: bytes) -> bytes:
    """The masked CRC-32C: rotated and offset, so that a checksum of data holding checksums stays useful."""
    crc: int = google_crc32c.value(data)
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def parse_example(record: bytes, source: str = "the record") -> dict[str, Shaped[np.ndarray, " n"]]:
    """Return the features of a tf.train.Example as flat arrays of uint8 (bytes), float32 or int64.

    The entries of a bytes feature are joined, so one entry a pixel and one for all pixels read the same.
    A feature without any list is left out. `source` names the record in messages.
    """
    features: dict[str, Shaped[np.ndarray, " n"]] = {}
    try:
        for group in _contents(memoryview(record), 1):
            for entry in _contents(group, 1):
                name = b"".join(_contents(entry, 1)).decode()
                for feature in _contents(entry, 2):
                    for kind, wire, content in _fields(feature):
                        if kind in _PARSERS and wire == _BYTES:
                            features[name] = _PARSERS[kind](content)
    except ValueError as error:
        raise PcdnetError(f"{source} is no tf.train.Example ({error}); give a file of such records") from None
    return features


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    value = 0
    for end, byte in enumerate(data[at : at + 10], start=1):
        value |= (byte & 0x7F) << 7 * (end - 1)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + end
    raise ValueError("a number is longer than ten bytes" if len(data) - at >= 10 else "a number is cut off")


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield field number, wire type and content of every field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0 or wire not in (_VARINT, _EIGHT, _BYTES, _FOUR):
            raise ValueError(f"a field has number {number} and wire type {wire}")
        value, end = _varint(data, at) if wire in (_VARINT, _BYTES) else (0, at)
        start = at if wire == _VARINT else end
        stop = {_VARINT: end, _EIGHT: at + 8, _BYTES: end + value, _FOUR: at + 4}[wire]
        if stop > len(data):
            raise ValueError("a field is cut off")
        yield number, wire, data[start:stop]
        at = stop


def _contents(data: memoryview, wanted: int, single: int = _BYTES) -> Iterator[memoryview]:
    """Yield the contents of the fields of that number: bytes, or values of another wire type, one each."""
    for number, wire, content in _fields(data):
        if number == wanted:
            if wire not in (_BYTES, single):
                raise ValueError(f"field {wanted} has wire type {wire}")
            yield content


def _bytes_list(data: memoryview) -> UInt8[np.ndarray, " n"]:
    raw = np.frombuffer(data, dtype=np.uint8)
    # One entry per pixel is `0a 01 pixel` over and over: no need to walk through thousands of fields.
    if raw.size % 3 == 0 and (raw[0::3] == 0x0A).all() and (raw[1::3] == 1).all():
        return raw[2::3].copy()
    return np.frombuffer(b"".join(_contents(data, 1)), dtype=np.uint8)


def _float_list(data: memoryview) -> Shaped[np.ndarray, " n"]:
    parts = list(_contents(data, 1, _FOUR))
    if any(len(part) % 4 for part in parts):
        raise ValueError("a float has not four bytes")
    return np.frombuffer(b"".join(parts), dtype="<f4").astype(np.float32)


def _int64_list(data: memoryview) -> Shaped[np.ndarray, " n"]:
    values: list[int] = []
    for part in _contents(data, 1, _VARINT):
        at = 0
        while at < len(part):
            value, at = _varint(part, at)
            values.append(value)
    return np.array(values, dtype=np.uint64).view(np.int64)


_PARSERS = {1: _bytes_list, 2: _float_list, 3: _int64_list}
