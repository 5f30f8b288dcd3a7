"""Arrays: npz files whose headers claim anything, and TFRecord files whose checksums fit all the same."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import google_crc32c
import numpy as np

from benchmarks.fuzz.law import Broken
from benchmarks.fuzz.mutations import EDGES, blind
from benchmarks.fuzz.target import Reader, Target
from pcdnet.data import npz, tetromino_records
from pcdnet.errors import PcdnetError

NAMES = ("image", "labels", "mask", "boxes", "box_scene", "box_kind", "kinds", "scored", "other")
TYPES: tuple[str, ...] = (
    "|u1",
    "<u2",
    ">u2",
    "<f4",
    "<f8",
    ">f2",
    "<i8",
    "|b1",
    "|O",
    "<U3",
    "|S4",
    "<c8",
    "<M8[s]",
    "<f16",
    "|V8",
    "<U0",
)
TYPES += ("[('a', '<i4')]", "<i4,", "", "x", "|u1\\x00", "('<i4', (2,))", "<U900", "<m8")
MOST_UNPACKED = 1 << 22


def arrays() -> list[dict[str, np.ndarray]]:
    """What sound files hold."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (3, 8, 6, 3), np.uint8)
    boxes = {
        "boxes": np.array([[0, 0, 3, 3], [1, 1, 2, 2.5]]),
        "box_scene": np.array([0, 2]),
        "box_kind": np.array([0, 1]),
        "kinds": np.array(["a", "b"]),
        "scored": np.array(["a"]),
    }
    return [
        {"image": image, "labels": rng.integers(0, 3, (3, 8, 6))},
        {"image": image[..., 0], "mask": rng.integers(0, 2, (3, 4, 8, 6, 1)).astype(bool)},
        {"image": image.astype(np.float32) / 255, **boxes},
        {"image": image.astype(">u2"), "labels": rng.integers(0, 3, (3, 8, 6)) > 0, **boxes},
    ]


def npz_seeds() -> Sequence[bytes]:
    """Sound files, packed and not."""
    found = []
    for each in arrays():
        for save in (np.savez, np.savez_compressed):
            buffer = io.BytesIO()
            save(buffer, **each)  # type: ignore[arg-type]
            found.append(buffer.getvalue())
    return found


def mutate_npz(content: bytes, rng: Random) -> bytes:
    """Change the container blindly, or its members, written anew with checksums that fit."""
    if rng.random() < 0.25:
        return blind(content, rng, (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"image.npy"))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = [(each.filename, file.read(each)) for each in file.infolist() if each.file_size < MOST_UNPACKED]
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(members)) if members else 0
        match rng.randrange(8):
            case 0 if members:
                del members[place]
            case 1:
                members.insert(place, (f"{rng.choice(NAMES)}{rng.choice(('.npy', ''))}", _array(rng)))
            case 2 if members:
                members[place] = members[place][0], blind(members[place][1], rng)
            case 3 if members:
                members[place] = members[place][0], members[place][1] + bytes(rng.choice((1, 100, 1 << 20)))
            case _ if members:
                members[place] = members[place][0], _with_header(members[place][1], rng)
    ways = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choices(ways, (4, 4, 1, 1))[0]) as file:
        for name, data in members:
            with file.open(zipfile.ZipInfo(name), "w") as member:
                member.write(data)
    return buffer.getvalue()


def _shape(rng: Random) -> str:
    sides = [rng.choice((0, 1, 2, 3, 4, 6, 8, 35, -1, 1.5, True, "x", *EDGES)) for _ in range(rng.randrange(6))]
    return repr(tuple(sides))


def _header(rng: Random, shape: str, dtype: str) -> str:
    fortran = rng.choice(("False", "False", "False", "True", "None", "2"))
    descr = dtype if dtype.startswith("[") else repr(dtype)
    header = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    odd = ("{'descr': " * 300, "(" * 400, "{}", "1" * 9000, "{'shape': (1,)", "\0", "{'descr': '<f4'}", "-" * 9000)
    return rng.choice(odd) if rng.random() < 0.1 else header


def _with_header(content: bytes, rng: Random) -> bytes:
    """An array whose header claims another shape or type."""
    old = content[10 : 10 + int.from_bytes(content[8:10], "little")].decode("latin1")
    shape = old.partition("'shape': ")[2].rpartition(",")[0] if rng.random() < 0.4 else _shape(rng)
    dtype = rng.choice(TYPES) if rng.random() < 0.6 else old.partition("'descr': '")[2].partition("'")[0]
    return _npy(_header(rng, shape, dtype), content[10 + len(old) :], rng)


def _array(rng: Random) -> bytes:
    return _npy(_header(rng, _shape(rng), rng.choice(TYPES)), rng.randbytes(rng.choice((0, 8, 500))), rng)


def _npy(header: str, values: bytes, rng: Random) -> bytes:
    version = rng.choice((1, 1, 1, 2, 3, 9))
    words = header.encode("latin1", "replace") + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(words) + rng.choice((0, 0, 0, 0, 1, 60000 - len(words))))
    return b"\x93NUMPY" + bytes((version, 0)) + length + words + values


def _refusals(path: Path, ways: Sequence[Callable[[Path], object]]) -> list[PcdnetError]:
    """What each of several ways to read a file refuses; where one refuses, the others are tried all the same."""
    refused = []
    for way in ways:
        try:
            way(path)
        except PcdnetError as error:
            refused.append(error.with_traceback(None))  # which would keep the arrays that it was raised beside
    return refused


def prepare_npz(folder: Path) -> Reader:
    """Whole, some of it, image by image, and the headers alone."""
    path = folder / "arrays.npz"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        ways = (npz.count, npz.headers, lambda path: list(npz.images(path)), lambda path: npz.read(path, limit=2))
        refused = _refusals(path, ways)
        scenes = npz.read(path)
        if scenes.boxes is not None and len(scenes.boxes) != len(scenes):
            raise Broken("there are boxes of other scenes")
        if refused:
            raise refused[0]

    return read


def record(data: bytes) -> bytes:
    """A record of a TFRecord file, with its checksums."""

    def masked(part: bytes) -> bytes:
        crc = google_crc32c.value(part)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    head = struct.pack("<Q", len(data))
    return head + masked(head) + data + masked(data)


def varint(number: int) -> bytes:
    """A number as protocol buffers write it."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*parts, number))


def _field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(features: dict[str, tuple[int, bytes]]) -> bytes:
    """A tf.train.Example of features, each of which is a list of some kind and its content."""
    entries = (
        _field(1, _field(1, name.encode()) + _field(2, _field(kind, data))) for name, (kind, data) in features.items()
    )
    return _field(1, b"".join(entries))


def _features() -> dict[str, tuple[int, bytes]]:
    def several(values: Sequence[int]) -> bytes:
        return _field(1, bytes(values))

    return {
        "image": (1, _field(1, bytes(35 * 35 * 3))),
        "mask": (1, _field(1, bytes(4 * 35 * 35))),
        "shape": (1, several((0, 1, 2, 3))),
        "color": (2, _field(1, struct.pack("<12f", *[0.0] * 3, *[1.0, 0.0, 0.0] * 3))),
        "x": (1, several((0, 3, 9, 15))),
        "y": (3, _field(1, b"".join(map(varint, (0, 3, 9, 15))))),
    }


def record_seeds() -> Sequence[bytes]:
    """A sound file, the same packed, and one of two records."""
    one = record(example(_features()))
    return [one, one * 2, gzip.compress(one, mtime=0), record(b""), record(example({}))]


def mutate_records(content: bytes, rng: Random) -> bytes:
    """Change a file blindly; or what is in its records, with checksums and lengths that fit."""
    if content[:3] == b"\x1f\x8b\x08":
        if rng.random() < 0.3:
            return blind(content, rng)
        content = gzip.decompress(content)[:MOST_UNPACKED]
    choice = rng.random()
    if choice < 0.15:
        return blind(content, rng)
    if choice < 0.4:
        size = int.from_bytes(content[:8], "little")
        changed = record(blind(content[12 : 12 + size], rng)) + content[16 + size :]
    else:
        features = _features()
        for _ in range(rng.randrange(1, 4)):
            name = rng.choice([*features, "other"])
            kind, data = features.pop(name, (1, b""))
            many = rng.choice((0, 1, 4, 12, 3675, 1 << 18))
            new = rng.choice((data, blind(data, rng), _field(1, bytes(many)), b"\x0a\1x" * many, b"\x08\xff\1" * many))
            features[rng.choice((name, "image", "\0"))] = rng.choice((1, 2, 3, kind)), new
        changed = record(example(features)) * rng.choice((1, 1, 2))
    return gzip.compress(changed, 1, mtime=0) if rng.random() < 0.3 else changed


def prepare_records(folder: Path) -> Reader:
    """All at once, one by one, and counted."""
    path = folder / "scenes.tfrecords"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        refused = _refusals(path, (tetromino_records.count, lambda path: list(tetromino_records.images(path))))
        tetromino_records.read(path)
        if refused:
            raise refused[0]

    return read


NPZ = Target(name="npz", seeds=npz_seeds, mutate=mutate_npz, prepare=prepare_npz)
TFRECORD = Target(name="tfrecord", seeds=record_seeds, mutate=mutate_records, prepare=prepare_records)
