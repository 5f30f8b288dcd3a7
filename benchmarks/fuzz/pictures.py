"""Pictures and videos: whatever Pillow and FFmpeg decode, with claims that no file can keep."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.fuzz.law import Broken
from benchmarks.fuzz.mutations import EDGES, blind
from benchmarks.fuzz.target import Reader, Target
from pcdnet.data import pictures, video
from pcdnet.data.intake import in_eight_bits
from pcdnet.errors import PcdnetError
from pcdnet.serve.pictures import decoded

SUFFIXES = {b"\x89PNG": ".png", b"\xff\xd8": ".jpg", b"RIFF": ".webp", b"BM": ".bmp", b"GIF8": ".gif"}
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16", "F", "I")
TOKENS: tuple[bytes, ...] = (
    b"IDAT",
    b"tRNS",
    b"PLTE",
    b"eXIf",
    b"acTL",
    b"fcTL",
    b"fdAT",
    b"iCCP",
    b"zTXt",
    b"VP8L",
    b"VP8X",
    b"ALPH",
)
TOKENS += (
    b"II*\0",
    b"MM\0*",
    b"II+\0",
    b"NETSCAPE2.0",
    b"Exif\0\0",
    b"\xff\xc0",
    b"\xff\xc4",
    b"\xff\xda",
    b"\xff\xe1",
)
MOST_PIXELS = 1 << 22
"""Pixels that may be asked for here, so that a sound picture stays below the bound on memory."""


def seeds() -> Sequence[bytes]:
    """Small pictures of every kind and mode, turned, animated, of many pages and compressed in every way."""
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 256, (9, 14, 3), np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    found = []
    for mode in MODES:
        image = picture.convert("L").convert(mode) if mode in ("I;16", "F", "I") else picture.convert(mode)
        for kind in ("png", "jpeg", "webp", "tiff", "bmp", "gif"):
            found.append(_saved(image, kind))
            if mode == "RGB":
                found.append(_saved(image, kind, exif=exif))
    for compression in ("tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "jpeg", "group4", "zstd", "webp"):
        mode = "1" if compression == "group4" else "RGB"
        found.append(_saved(picture.convert(mode), "tiff", compression=compression))
    others = [picture.rotate(90), picture.rotate(180)]
    found += [_saved(picture, kind, save_all=True, append_images=others) for kind in ("gif", "png", "webp", "tiff")]
    found.append(_saved(picture, "jpeg", progressive=True, comment=b"x"))
    found.append(_saved(picture, "png", transparency=(1, 2, 3)))
    found.append(deep_png(rng.integers(0, 65536, (6, 5, 3))))
    return [content for content in found if content]


def _saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        image.save(buffer, format=kind, **options)
    except (OSError, ValueError, KeyError, SystemError):
        return b""  # a kind that does not have this mode, or a compression that this Pillow does not
    return buffer.getvalue()


def deep_png(values: np.ndarray) -> bytes:
    """A PNG of 16 bits a value in RGB, which Pillow does not write."""
    height, width, _ = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    head = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return png([(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")])


def png(chunks: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A PNG file of chunks, with their checksums."""
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def png_chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a PNG file, as far as there are any."""
    found, place = [], 8
    while place + 12 <= len(content):
        size = int.from_bytes(content[place : place + 4])
        found.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    return found


def mutate(content: bytes, rng: Random) -> bytes:
    """Change a picture: anywhere, in a chunk whose checksum is made to fit, or in a TIFF tag."""
    choice = rng.random()
    if content.startswith(b"\x89PNG") and choice < 0.6:
        return _mutated_png(content, rng)
    if content[:4] in (b"II*\0", b"MM\0*") and choice < 0.6:
        return _mutated_tiff(content, rng)
    if content.startswith(b"RIFF") and choice < 0.2:
        changed = blind(content, rng, TOKENS)
        return changed[:4] + struct.pack("<I", max(0, len(changed) - 8)) + changed[8:]
    if choice < 0.65:
        return blind(content[:64], rng, TOKENS) + content[64:]
    return blind(content, rng, TOKENS)


def _mutated_png(content: bytes, rng: Random) -> bytes:
    chunks = png_chunks(content)
    place = rng.randrange(len(chunks))
    kind, data = chunks[place]
    match rng.randrange(6):
        case 0:
            sides = (rng.choice(EDGES) % 2**32 for _ in range(2))
            data = struct.pack(">II", *sides) + bytes(rng.choice((0, 1, 2, 3, 4, 6, 8, 16, 255)) for _ in range(5))
            chunks[0] = b"IHDR", data
        case 1:
            del chunks[place]
        case 2:
            chunks.insert(rng.randrange(len(chunks) + 1), (rng.choice(TOKENS)[:4].ljust(4, b"x"), data))
        case 3 if kind == b"IDAT":  # a bomb, or too few pixels
            size = rng.choice((0, 1, 10_000, 1 << 24))
            chunks[place] = kind, zlib.compress(bytes(size))
        case _:
            chunks[place] = kind, blind(data, rng, TOKENS)
    return png(chunks)


def _mutated_tiff(content: bytes, rng: Random) -> bytes:
    """A TIFF file in whose directory of tags some entries say something else."""
    order = "<" if content[:2] == b"II" else ">"
    data = bytearray(content)
    (place,) = struct.unpack_from(order + "I", data, 4)
    (count,) = struct.unpack_from(order + "H", data, place)
    for _ in range(rng.randrange(1, 4)):
        entry = place + 2 + 12 * rng.randrange(count)
        match rng.randrange(5):
            case 0:
                tags = (254, 256, 257, 258, 259, 262, 273, 274, 277, 278, 279, 284, 317, 320, 322, 323, 324, 338, 339)
                struct.pack_into(order + "H", data, entry, rng.choice((*tags, 34665, 330, 347, 700)))
            case 1:
                struct.pack_into(order + "H", data, entry + 2, rng.randrange(20))
            case 2:
                struct.pack_into(order + "I", data, entry + 4, rng.choice(EDGES) % 2**32)
            case 3:
                struct.pack_into(order + "I", data, entry + 8, rng.choice((*EDGES, place, len(data))) % 2**32)
            case _:  # the next directory: a circle, or nowhere
                struct.pack_into(order + "I", data, place + 2 + 12 * count, rng.choice((place, 8, len(data), 2**31)))
    return bytes(data)


def prepare_pictures(folder: Path) -> Reader:
    """All that reads pictures: as a file of any suffix, page by page, header first, and as a server does."""

    def read(content: bytes) -> None:
        suffix = next((name for start, name in SUFFIXES.items() if content.startswith(start)), ".tif")
        path = folder / f"picture{suffix}"
        path.write_bytes(content)
        refused: PcdnetError | None = None
        try:
            header = pictures.read_header(path, most_pixels=MOST_PIXELS)
        except PcdnetError as error:
            header, refused = None, error
        try:
            pixels = pictures.read_picture(path, most_pixels=MOST_PIXELS)
        except PcdnetError as error:
            refused = error
        else:
            if header is None or header.size != pixels.shape[:2]:
                raise Broken(f"the header says {header}, and the picture is {pixels.shape}")
            values = (0.0, 1.0) if pixels.dtype.kind == "f" else None
            in_eight_bits(pixels, values)
        count = 0
        for _ in pictures.pages(path, lambda image, _: image.size, most_pixels=MOST_PIXELS):
            count += 1
        if count > max(1, len(content)):  # an empty file is one page, which is refused
            raise Broken(f"{count} pages in {len(content)} bytes")
        try:
            decoded(content, 3, (0.0, 255.0))
        except PcdnetError as error:
            refused = refused or error
        if refused is not None:
            raise refused

    return read


def video_seeds() -> Sequence[bytes]:
    """Small videos in every container; none where PyAV is missing."""
    try:
        import av
    except ImportError:
        return [b"\0\0\0\x18ftypmp42"]
    found = []
    for container, codec, form in (
        ("mp4", "mpeg4", "yuv420p"),
        ("mov", "mjpeg", "yuvj420p"),
        ("matroska", "mpeg4", "yuv420p"),
        ("matroska", "ffv1", "gray"),
        ("avi", "mjpeg", "yuvj420p"),
        ("gif", "gif", "rgb8"),
    ):
        buffer = io.BytesIO()
        with av.open(buffer, "w", format=container) as file:
            stream: Any = file.add_stream(codec, rate=10)
            stream.width, stream.height, stream.pix_fmt = 32, 16, form
            for number in range(3):
                values = np.full((16, 32, 3), 40 * number, np.uint8)
                frame = av.VideoFrame.from_ndarray(values, format="rgb24").reformat(format=form)
                file.mux(stream.encode(frame))
            file.mux(stream.encode(None))
        found.append(buffer.getvalue())
    return found


def prepare_video(folder: Path) -> Reader:
    """Frames one by one, and how many there should be."""
    path = folder / "film.mp4"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        video.count(path)
        for number, _ in video.images(path):
            if number > 100 + len(content):
                raise Broken(f"{number} frames in {len(content)} bytes")

    return read


BOXES = (
    b"moov",
    b"trak",
    b"mdia",
    b"stbl",
    b"stsd",
    b"stts",
    b"stsz",
    b"stco",
    b"elst",
    b"ctts",
    b"RIFF",
    b"idx1",
    b"mp4v",
)

PICTURES = Target(name="pictures", seeds=seeds, mutate=mutate, prepare=prepare_pictures, megabytes=512)
"""A server takes 16 million pixels: 64 MiB with opacity, of which there are a few copies on the way."""
VIDEO = Target(
    name="video",
    seeds=video_seeds,
    mutate=lambda content, rng: blind(content, rng, BOXES),
    prepare=prepare_video,
    megabytes=1024,
    seconds=10,
)
