"""Assaults: what a hostile client does to a server, for some seconds; each in threads of a process of its own.

All of it goes to the address that is given, which is one of this machine; loops end with the time, and connections are
counted.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx

Assault = Callable[[str, float], None]
"""Something done to an address until a moment of `time.monotonic`."""


def array(shape: list[int], dtype: str, size: int) -> dict[str, Any]:
    """An array of zeros as a message."""
    count = size
    for side in shape:
        count *= side
    return {"shape": shape, "dtype": dtype, "data": base64.b64encode(bytes(count)).decode()}


def scene(objects: int, side: int, *, background: bool = False) -> dict[str, Any]:
    """A square scene of many objects, with its picture."""
    things = [
        {"prototype": n % 4, "position": [7 * n % (side - 20), 11 * n % (side - 20)], "colour": [1, 0.5, 0.2]}
        for n in range(objects)
    ]
    made = {"size": [side, side], "objects": things, "image": array([side, side, 3], "uint8", 1)}
    return {**made, "background": array([side, side, 3], "float32", 4)} if background else made


def black_png(side: int) -> bytes:
    """A large black picture in a small file."""
    return _grey_png(side, bytes(side * (side + 1)))


def noise_png(side: int) -> bytes:
    """A picture of noise, in which nothing is explained and all is searched."""
    return _grey_png(side, b"".join(b"\0" + os.urandom(side) for _ in range(side)))


def _grey_png(side: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + b"\x08\x00\x00\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def posted(path: str, body: bytes, kind: str = "application/json") -> bytes:
    """A request, byte by byte."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def many_objects(site: str, end: float) -> None:
    """256 objects in pictures of 512x512."""
    _ask(site, end, "/api/render", [json.dumps(scene(256, 512)).encode()], threads=8)


def wide_objects(site: str, end: float) -> None:
    """As many objects of 256x256 as are let through, and more."""
    bodies = [json.dumps(scene(count, 512, background=True)).encode() for count in (128, 256)]
    _ask(site, end, "/api/render", bodies, threads=8)


def many_values(site: str, end: float) -> None:
    """Megabytes of JSON that hold nothing but brackets and commas."""
    bodies = [b'{"size": [35, 35], "objects": [' + b"{}," * 2_000_000, b"[" * 6_500_000, b'{"a":' * 1_300_000]
    _ask(site, end, "/api/decompose", bodies, threads=4)


def half_heads(site: str, end: float) -> None:
    """Heads of requests that never end."""
    _hold(site, end, b"POST /api/render HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half:", connections=400)


def half_bodies(site: str, end: float) -> None:
    """Bodies of requests that never end, a mebibyte of each."""
    whole = posted("/api/render", bytes(5 << 20))
    _hold(site, end, whole[: 1 << 20], connections=240)


def unread_answers(site: str, end: float) -> None:
    """Requests for large answers that nobody takes."""
    _hold(site, end, posted("/api/render", json.dumps(scene(0, 512)).encode()), connections=200)


def gone_clients(site: str, end: float) -> None:
    """Large requests whose clients hang up at once."""
    request = posted("/api/render", json.dumps(scene(256, 512)).encode())
    while time.monotonic() < end:
        with suppress(OSError), connected(site) as connection:
            connection.sendall(request)
        time.sleep(0.01)


def large_pictures(site: str, end: float) -> None:
    """Pictures of 4096x4096 in small files."""
    form, kind = _form(black_png(4096))
    _ask(site, end, "/api/decompose", [form], threads=8, kind=kind)


def odd_forms(site: str, end: float) -> None:
    """Forms of 30 MB that all but end everywhere."""
    form, kind = _form(b"\r\n--boundar" * 3_000_000)
    _ask(site, end, "/api/decompose", [form], threads=4, kind=kind)


def flood(site: str, end: float) -> None:
    """More clients than may wait, each with a picture of 250x250."""
    form, kind = _form(black_png(250))
    _ask(site, end, "/api/decompose", [form], threads=120, kind=kind)


def crumbled_files(site: str, end: float) -> None:
    """A small picture in a file of millions of empty blocks."""
    picture = black_png(32)
    at = picture.index(b"IDAT") - 4
    empty = bytes(4) + b"vpAg" + zlib.crc32(b"vpAg").to_bytes(4, "big")
    form, kind = _form(picture[:at] + 2_500_000 * empty + picture[at:])
    _ask(site, end, "/api/decompose", [form], threads=4, kind=kind)


def crumbs(site: str, end: float) -> None:
    """Bodies in chunks of one byte."""
    head = b"POST /api/render HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    _hold(site, end, head + b"1\r\nx\r\n" * 40_000, connections=40)


def noise(site: str, end: float) -> None:
    """Pictures of noise from another address, more than may wait."""
    form, kind = _form(noise_png(120))
    _ask(site, end, "/api/decompose", [form], threads=80, kind=kind, address="127.0.0.2")


ASSAULTS: tuple[Assault, ...] = (
    many_objects,
    wide_objects,
    many_values,
    half_heads,
    half_bodies,
    unread_answers,
    gone_clients,
    large_pictures,
    odd_forms,
    flood,
    crumbled_files,
    crumbs,
    noise,
)
"""All of them."""


def _form(content: bytes) -> tuple[bytes, str]:
    """A form with a file, and its type."""
    head = b'--boundary\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
    return head + content + b"\r\n--boundary--\r\n", "multipart/form-data; boundary=boundary"


def _ask(
    site: str,
    end: float,
    path: str,
    bodies: list[bytes],
    *,
    threads: int,
    kind: str = "application/json",
    address: str | None = None,
) -> None:
    """Send bodies again and again, some at a time, from one of this machine's addresses."""

    def client(n: int) -> None:
        with httpx.Client(base_url=site, timeout=60, transport=httpx.HTTPTransport(local_address=address)) as own:
            while time.monotonic() < end:
                with suppress(httpx.HTTPError):
                    answer = own.post(path, content=bodies[n % len(bodies)], headers={"Content-Type": kind})
                    if answer.status_code == 503:
                        time.sleep(0.05)  # far sooner than it was told to
                n += 1

    clients = [threading.Thread(target=client, args=(n,)) for n in range(threads)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()


def _hold(site: str, end: float, sent: bytes, *, connections: int) -> None:
    """Open connections, send something, and wait; the oldest is closed to open another."""
    with ExitStack() as stack:
        held: list[socket.socket] = []
        while time.monotonic() < end:
            with suppress(OSError):
                held.append(stack.enter_context(connected(site)))
                held[-1].sendall(sent)
            if len(held) >= connections:
                held.pop(0).close()
                time.sleep(0.02)


def connected(site: str) -> socket.socket:
    where = urlsplit(site)
    made = socket.create_connection((where.hostname or "", where.port or 0), timeout=5)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    return made


if __name__ == "__main__":
    name, address, seconds = sys.argv[1:]
    print("begun", flush=True)
    next(each for each in ASSAULTS if each.__name__ == name)(address, time.monotonic() + float(seconds))
