"""TFRecord files written bit by bit, for tests of those who read them."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pcdnet.data.tetrominoes import TetrominoScenes


def literal_crc(data: bytes) -> int:
    """The CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    """The checksum as records carry it."""
    crc = literal_crc(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)


def frame(data: bytes) -> bytes:
    """A record."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def write(path: Path, records: Sequence[bytes], zipped: bool = False) -> Path:
    """A file of records."""
    content = b"".join(map(frame, records))
    path.write_bytes(gzip.compress(content) if zipped else content)
    return path


def varint(value: int) -> bytes:
    """A number of protocol buffers."""
    value %= 2**64
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(number: int, content: bytes) -> bytes:
    """A field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(**features: bytes) -> bytes:
    """A tf.train.Example."""
    entries = [message(1, message(1, name.encode()) + message(2, f)) for name, f in features.items()]
    return message(1, b"".join(entries))


def floats(values: np.ndarray) -> bytes:
    """A feature of floats; the first, of the background, is 0."""
    return message(2, message(1, np.concatenate([np.zeros_like(values[:1]), values]).astype("<f4").tobytes()))


def pixels(values: np.ndarray) -> bytes:
    """A feature of bytes, one entry each."""
    return message(1, b"".join(message(1, bytes([value])) for value in values.ravel().tolist()))


def features_of(scenes: TetrominoScenes, index: int) -> dict[str, bytes]:
    """The features of a scene, as the original files have them."""
    masks = (np.arange(4)[:, None, None] == scenes.labels[index]) * np.uint8(255)
    return {
        "image": pixels(scenes.images[index]),
        "mask": pixels(masks),
        "x": floats(scenes.rows[index]),
        "y": floats(scenes.columns[index]),
        "shape": floats(scenes.shapes[index] + 1),
        "color": floats(scenes.colours[index]),
        "visibility": floats(np.ones(3)),
    }


def write_tetrominoes(path: Path, scenes: TetrominoScenes) -> Path:
    """A file of scenes, as the original ones are."""
    return write(path, [example(**features_of(scenes, index)) for index in range(len(scenes))])
