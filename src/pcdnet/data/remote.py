"""Remote: files of object stores and servers, fetched into the user's cache through fsspec; needs the extra `remote`.

A file is fetched whole or not at all, in pieces that are asked for again when the network fails. Whoever fetched it
knows it by its address, size and mark (an etag or a time). Addresses are kept with runs and shown in messages, so they
must hold no secret; and what a store says of an error is never repeated, since it may.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from pcdnet.data.keeping import cache
from pcdnet.errors import PcdnetError
from pcdnet.files import folder, whole_file

T = TypeVar("T")

WAITS = (0.5, 1.0, 2.0, 4.0)
"""Seconds between the attempts to do something that the network failed at."""
PIECE = 8 * 2**20
"""Bytes that are asked for at a time."""
MARKS = ("ETag", "etag", "checksum", "sha256", "md5Hash", "mtime", "LastModified", "last_modified", "created")
"""What stores call that which changes when a file does, the surest first."""

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+)://(.*)", re.DOTALL | re.IGNORECASE)
_DENIED = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError")


class Remote(NamedTuple):
    """A file far away."""

    url: str
    """Its address."""
    size: int | None
    """Its bytes, as far as the store says."""
    mark: str
    """While this stays, so does the file."""


def is_remote(name: object) -> bool:
    """Whether a name is an address, such as `s3://bucket/shards/*.tar`."""
    return _ADDRESS.match(str(name)) is not None


def listed(url: str, suffixes: tuple[str, ...]) -> list[Remote]:
    """The files that an address names: one, those that a pattern fits, or those of a folder that end so."""
    fs, path = _store(url)
    if any(sign in path for sign in "*?[{"):
        from pcdnet.data.shards import braces

        names = [one for each in braces(path) for one in _tried(url, partial(fs.glob, each))]
    elif _tried(url, lambda: fs.isdir(path)):
        names = [name for name in _tried(url, lambda: fs.find(path)) if _suffix(name) in suffixes]
    else:
        names = [path]
    if not names:
        raise PcdnetError(f"{url} names no file that ends with {', '.join(suffixes)}; give another address")
    return [_described(fs, str(name), url) for name in names]


def holds(url: str, suffixes: tuple[str, ...]) -> str:
    """How the first file ends that lies at an address itself and ends so; nothing if there is none."""
    fs, path = _store(url)
    with suppress(PcdnetError):  # what is wrong is reported when it is opened
        names = _tried(url, lambda: fs.ls(path, detail=False))
        return next((_suffix(name) for name in names if _suffix(name) in suffixes), "")
    return ""


def local(url: str, suffixes: tuple[str, ...]) -> Path:
    """The copy of a file, or of a folder with its files that end so, in the user's cache; fetched if need be."""
    fs, path = _store(url)
    if not _tried(url, lambda: fs.isdir(path)):
        return fetched(_described(fs, path, url))
    there = folder(cache("remote") / _mark(url))
    names = [name for name in _tried(url, lambda: fs.find(path)) if _suffix(name) in suffixes]
    kept = set[Path]()
    for name in names:
        inner = PurePosixPath(name).relative_to(PurePosixPath(path))
        if ".." in inner.parts:
            raise PcdnetError(f"{url} holds a file whose name leaves the folder; give another address")
        file = _described(fs, name, url)
        kept |= {there / inner, _note(there / inner)}
        _fetch(file, there / inner)
    for old in [each for each in there.rglob("*") if each.is_file() and each not in kept]:
        old.unlink(missing_ok=True)  # what is not there any more
    return there


def fetched(file: Remote) -> Path:
    """The copy of a file in the user's cache."""
    place = folder(cache("remote") / _mark(file.url)) / (PurePosixPath(file.url).name or "file")
    _fetch(file, place)
    return place


@contextmanager
def fetched_meanwhile(file: Remote) -> Iterator[Path]:
    """A copy of a file that goes when the block ends: of many large ones, one is on the disk at a time."""
    above = folder(cache("remote"))
    with tempfile.TemporaryDirectory(dir=above, prefix="meanwhile-") as place:
        path = Path(place) / f"file{_suffix(file.url)}"
        _fetch(file, path)
        yield path


def _fetch(file: Remote, place: Path) -> None:
    """Fetch a file, unless this very one is there."""
    note = _note(place)
    said = repr((file.size, file.mark))
    with suppress(OSError):
        if file.mark and place.stat().st_size == file.size and note.read_text(encoding="utf-8") == said:
            return
    folder(place.parent)
    note.unlink(missing_ok=True)
    with whole_file(place, "make room, or set the environment variable PCDNET_CACHE to another folder") as target:
        for piece in _pieces(file):
            target.write(piece)
    note.write_text(said, encoding="utf-8")


def _pieces(file: Remote) -> Iterator[bytes]:
    fs, path = _store(file.url)
    start = 0
    while file.size is not None and start < file.size:
        end = min(start + PIECE, file.size)
        piece: bytes = _tried(file.url, partial(_part, fs, path, start, end))
        yield piece
        start = end
    if file.size is None:
        yield _tried(file.url, lambda: fs.cat_file(path))
    if file.mark and _described(fs, path, file.url, anew=True)[1:] != file[1:]:
        raise PcdnetError(f"{file.url} was changed while it was fetched; start again")


def _part(fs: Any, path: str, start: int, end: int) -> bytes:
    piece: bytes = fs.cat_file(path, start=start, end=end)
    if len(piece) != end - start:
        raise ConnectionError("cut off")
    return piece


def _described(fs: Any, path: str, url: str, *, anew: bool = False) -> Remote:
    if anew:
        fs.invalidate_cache()
    info = _tried(url, lambda: fs.info(path))
    if info.get("type") == "directory":
        raise PcdnetError(f"{url} is a folder, where a file was expected; give the address of a file")
    mark = next((str(info[name]) for name in MARKS if info.get(name)), "")
    return Remote(str(fs.unstrip_protocol(path)), info.get("size"), mark)


def _store(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it; an address that may hold a secret is refused."""
    match = _ADDRESS.match(url)
    assert match is not None, "an address"
    scheme, rest = match[1], match[2]
    if "::" in url or "@" in rest.partition("/")[0] or (scheme in ("http", "https", "ftp") and "?" in rest):
        place = f"{scheme}://..."
        raise PcdnetError(
            f"an address {place} holds a user, a key or a query, which would be kept with the run; give it without, "
            f"and credentials by the environment or the store's own files"
        )
    try:
        import fsspec
    except ImportError:
        raise PcdnetError(f"{url} is read through fsspec, which is missing; pip install 'pcdnet[remote]'") from None
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError:
        from fsspec.registry import known_implementations

        known = known_implementations[scheme]["class"].partition(".")[0]
        raise PcdnetError(f"{scheme}:// needs the package {known}, which is missing; pip install {known}") from None
    except Exception as error:
        known = ", ".join(f"{name}://" for name in ("s3", "gs", "hf", "https"))
        problem = "is no address known here" if isinstance(error, ValueError) else _reason(error)
        raise PcdnetError(f"{url} {problem}; give one of {known} and others that fsspec knows") from None
    return fs, path.rstrip("/")


def _tried(url: str, do: Callable[[], T]) -> T:
    """What comes of something that the network may fail at, a few times."""
    for wait in (*WAITS, None):
        try:
            return do()
        except PcdnetError:
            raise
        except Exception as error:
            definite = isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError | ImportError)
            if wait is None or definite or type(error).__name__ in _DENIED:
                raise PcdnetError(f"{url} {_reason(error)}") from None
            time.sleep(wait)
    raise AssertionError("the last attempt ends it")


def _reason(error: Exception) -> str:
    """What went wrong, without a word of the store's own."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "does not exist; give the address of a file, a folder or a pattern"
    if isinstance(error, PermissionError):
        return "may not be read with these credentials; set others by the environment or the store's own files"
    if type(error).__name__ in _DENIED:
        return "needs credentials, and there are none; set them by the environment or the store's own files"
    return f"cannot be reached ({type(error).__name__}, {len(WAITS) + 1} attempts); try again later"


def _mark(url: str) -> str:
    return hashlib.sha256(url.encode(errors="surrogatepass")).hexdigest()[:24]


def _note(place: Path) -> Path:
    """The file that says of which remote file another one is the copy."""
    return place.with_name(f".{place.name}.mark")


def _suffix(name: object) -> str:
    return PurePosixPath(str(name)).suffix.lower()
