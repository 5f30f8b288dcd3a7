"""Network: training data read from an object store while the connection is cut at random moments.

A local S3 server holds WebDataset shards. Everything goes through a small proxy, which drops connections after a random
number of bytes. What is read must be the same images in the end, or one sentence that says why not.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.streams import write_shards
from pcdnet.data import remote
from pcdnet.data.opening import open_data
from pcdnet.errors import PcdnetError

BUCKET = "pictures"
"""The bucket of the local server."""
KEYS = {
    "AWS_ACCESS_KEY_ID": "testing-key",
    "AWS_SECRET_ACCESS_KEY": "testing-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""Credentials that the local server takes."""
PICTURES, PIECE = 600, 32 * 1024
"""Pictures in the shards, and bytes that are asked for at a time, so that there are many moments to be cut at."""
CALM = 0.5
"""The share of connections that are not cut."""


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Environment variables for as long as the block takes; s3fs forgets what it knew before and after."""
    former = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    _forget()
    try:
        yield
    finally:
        _forget()
        for name, value in former.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@contextmanager
def object_store() -> Iterator[str]:
    """A local S3 server with an empty bucket; its address."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with environment(AWS_ENDPOINT_URL=f"http://{host}:{port}", **KEYS):
            _store().mkdir(BUCKET)
            yield f"http://{host}:{port}"
    finally:
        server.stop()


def upload(folder: Path, place: str) -> None:
    """Put the files of a folder into the bucket."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _store().pipe_file(f"{BUCKET}/{place}/{path.relative_to(folder).as_posix()}", path.read_bytes())


class Proxy:
    """A proxy that drops connections after so many bytes as it is told, each time anew."""

    def __init__(self, target: str, rng: np.random.Generator) -> None:
        host, _, port = target.removeprefix("http://").partition(":")
        self._target, self._rng = (host, int(port)), rng
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self.cuts = 0
        self.calm = 1.0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._door.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                left = None if self._rng.random() < self.calm else int(self._rng.integers(0, 2 * PIECE))
                try:
                    server = socket.create_connection(self._target)
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=self._carry, args=(client, server, None), daemon=True).start()
                threading.Thread(target=self._carry, args=(server, client, left), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, left: int | None) -> None:
        with suppress(OSError):
            while content := source.recv(4096):
                if left is not None and len(content) > left:
                    target.sendall(content[:left])
                    self.cuts += 1
                    break
                left = None if left is None else left - len(content)
                target.sendall(content)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def drill(count: int, seed: int) -> dict[str, int]:
    """Read training data so many times through a connection that is cut; what was tried, cut, lost and wrong.

    `refused` is how often one sentence came instead of the images; `lost` are other exceptions, and files that should
    not be there; `wrong` is how often the images were not those that were written.
    """
    rng = np.random.default_rng(seed)
    tally = {"tried": 0, "cuts": 0, "refused": 0, "lost": 0, "wrong": 0}
    former = remote.WAITS, remote.PIECE
    with tempfile.TemporaryDirectory() as place, object_store() as address:
        data = Path(place) / "shards"
        data.mkdir()
        write_shards(data, PICTURES)
        upload(data, "shards")
        expected = np.asarray(open_data(data, count=PICTURES, seed=0).images)
        proxy = Proxy(address, rng)
        remote.WAITS, remote.PIECE = (0.01, 0.02, 0.05, 0.1), PIECE
        try:
            for number in range(count):
                cache = Path(place) / f"cache-{number}"
                proxy.calm = CALM if number % 4 else CALM / 10  # now and then there is no getting through
                with environment(AWS_ENDPOINT_URL=proxy.address, PCDNET_CACHE=str(cache), PCDNET_MAX_MEMORY="0"):
                    _try(f"s3://{BUCKET}/shards/*.tar", expected, tally)
                left = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".pixels"]
                tally["lost"] += len(left)
        finally:
            remote.WAITS, remote.PIECE = former
            proxy.close()
        tally["cuts"] = proxy.cuts
    return tally


def _try(url: str, expected: np.ndarray, tally: dict[str, int]) -> None:
    tally["tried"] += 1
    try:
        found = np.asarray(open_data(url, count=PICTURES, seed=0).images)
    except PcdnetError as error:
        tally["refused"] += 1
        tally["lost"] += "\n" in str(error) or any(secret in str(error) for secret in KEYS.values())
    except Exception:
        tally["lost"] += 1
    else:
        tally["wrong"] += not np.array_equal(found, expected)


def _store() -> Any:
    import fsspec

    return fsspec.filesystem("s3")


def _forget() -> None:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
