"""Limits: how much a request may ask for, and how long a client may take; docs/serve.md says the same to people.

All of them are checked before there is any work: what a request would cost follows from its head, its length and the
numbers in it.
"""

from __future__ import annotations

import re
from math import prod

MOST_OBJECTS = 256
"""Objects that a scene may hold."""
MOST_PIXELS = 1 << 18
"""Pixels that are shown, edited and searched at once; larger pictures are searched in tiles, and shown smaller."""
MOST_PAINTED = 1 << 23
"""Pixels of all objects of a scene together, hidden or not: painting takes as long as they are many."""
MOST_DECODED = 1 << 24
"""Pixels of a picture that is read: time and memory go with them, and others are waiting."""
MOST_DEEP = MOST_DECODED // 4
"""The same of a picture of more than 8 bits a value, of which each takes four times the memory on its way to 8 bits."""
MOST_READS = 1 << 14
"""Parts of a picture's file that are read: its blocks of metadata and of pixels, each with its length and its sum."""
MOST_SCANS = 100
"""Passes over its pixels that a JPEG file may make; progressive ones make about ten."""
MOST_TAGGED = 1 << 15
"""Numbers in the tags of a TIFF file, such as where the rows of its pixels are."""
QUICK_BYTES = 1 << 20
"""Bytes up to which a picture's file is looked at quickly, and eight a pixel if the run's own are larger."""
QUICK_SEARCHED = 1 << 14
"""Pixels up to which a picture is searched quickly, and does not wait for larger ones; more if the run's have more."""
QUICK_PIXELS, QUICK_PAINTED = 1 << 16, 1 << 20
"""Pixels of a picture and of its objects up to which a scene is painted quickly."""

MOST_BYTES = 32 << 20
"""Bytes that a request may have: those of a picture as a file."""
PICTURE_BYTES = 8 << 20
"""Bytes of a picture as numbers, in JSON; larger ones are sent as files."""
SCENE_BYTES = 6 << 20
"""Bytes of a scene with its picture and its background, each of `MOST_PIXELS`."""
WORDS_BYTES = 4 << 10
"""Bytes of any other request."""
MOST_VALUES = 1 << 14
"""Commas, colons and opening brackets of JSON: time and memory for reading it go with them, not with its bytes."""

HEAD_BYTES, MOST_HEADERS = 16 << 10, 100
"""Bytes and lines that the head of a request may have."""
MOST_CHUNKS, LEAST_CHUNK = 256, 256
"""Chunks that a body may come in, and for how many of its bytes there may be one more: each takes as long as thousands
of bytes."""

SMALL_BYTES = 64 << 10
"""Bytes that every request, and every answer, may hold, however many others there are."""
HELD_BYTES = 128 << 20
"""Bytes that all requests and answers may hold above that."""
MOST_CONNECTIONS = 256
"""Connections at a time; for one more, of the client that has most the one that has been idle for longest is closed."""
MOST_WAITING = 64
"""Requests that wait for their turn, of the quick ones and of the large ones; for one more of a client with few, one of
a client with many is sent away."""
RETRY_SECONDS = 2
"""After how long somebody who is sent away should ask again."""

PATIENCE = 10.0
"""Seconds that a client may take for the head of a request, or let pass without sending or taking anything."""
LEAST_RATE = 64 << 10
"""Bytes a second that a client sends of a body at least, after the first `PATIENCE` seconds."""
ENDING = 0.7
"""Seconds that running work has to come to its end when the server is stopped."""

_JSON = {
    "/api/decompose": PICTURE_BYTES,
    "/api/render": SCENE_BYTES,
    "/api/export": SCENE_BYTES,
    "/api/inspect": SCENE_BYTES // 4,
    "/api/corrections": PICTURE_BYTES,
}


def most_bytes(path: str, content_type: str) -> int:
    """Bytes that a request may have."""
    if path == "/api/decompose" and content_type != "application/json":
        return MOST_BYTES
    if re.fullmatch(r"/api/edits/\d+", path):
        return SCENE_BYTES
    return _JSON.get(path, WORDS_BYTES)


def painted_pixels(objects: int, frame: tuple[int, int], size: tuple[int, int]) -> int:
    """Pixels that are painted for so many objects at most; what is outside the picture is not."""
    return objects * prod(map(min, frame, size))


def in_words(size: int) -> str:
    """A number of bytes, for people."""
    return f"{size / (1 << 20):.3g} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
