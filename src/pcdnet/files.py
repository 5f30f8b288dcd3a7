"""Files: written whole or not at all, held by one process at a time, and known to be what was written by a checksum."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import google_crc32c

from pcdnet.errors import PcdnetError, Setting, Unwritable

PARTIAL = ".partial"
"""How the names of files end that are not whole yet."""
MOST = 2**24
"""Bytes of a text that is read at once; those of a run are a few kilobytes."""
_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# In a folder that a stranger sent a link may lead to a file of ours, and a pipe would be waited for.


@contextmanager
def whole_file(
    path: str | Path, *cure: str | Setting, shared: bool = False, durable: bool = False
) -> Iterator[BinaryIO]:
    """Open a file for bytes that takes its name only when the block ends well.

    Until then a file of that name stays as it was, and whatever goes wrong leaves nothing behind. `cure` ends the
    message of an error. A `shared` file may be written by several processes at the same time; the last one wins. A
    `durable` one is on the disk before it takes its name, so that a power cut leaves the old file or the new one.
    """
    path = nameable(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}" if shared else f"{path.name}{PARTIAL}")
    try:
        # What a folder of a stranger's holds under that name may be a link to a file of ours, or a pipe.
        partial.unlink(missing_ok=True)
        with partial.open("xb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        cure = cure or ("choose another place",)
        raise Unwritable(f"cannot write {path}: {error.strerror or error}; ", *cure) from None
    finally:
        with suppress(OSError):  # where it cannot be removed it could not be made, which is reported already
            partial.unlink(missing_ok=True)


def content_of(path: Path, most: int = MOST) -> bytes:
    """What a small file holds, or an OSError: for one beyond all measure, and for what would be waited for.

    A run that a stranger sends may hold a pipe, a device or a file of any size where a few kilobytes should be.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file")
    return at_most(path, most)


def at_most(path: Path, most: int = MOST) -> bytes:
    """The same of whatever can be read, such as a pipe that the user named."""
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        large = about.st_size > most
        # Python makes room for as much as it is asked for; a pipe does not say how much comes.
        content = b"" if large else file.read((about.st_size if stat.S_ISREG(about.st_mode) else most) + 1)
    if large or len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // 2**20} MiB")
    return content


def text_of(content: bytes) -> str:
    """The text of a file that an editor, or another system, may have given other ends of lines; or a ValueError."""
    return content.decode().replace("\r\n", "\n").replace("\r", "\n")


def with_ending(path: str | Path, ending: str) -> Path:
    """The path, if a file of that kind may be called so."""
    path = Path(path)
    if path.suffix != ending:
        better = path.with_suffix(ending) if path.name else path / f"pcdnet{ending}"
        raise PcdnetError(f"{path} is no {ending} file; use {better}")
    return path


def nameable(path: str | Path) -> Path:
    """The path, if a file can be called so: Python's texts may hold what no system takes for a name."""
    try:
        if b"\0" not in os.fsencode(path):
            return Path(path)
    except UnicodeEncodeError:
        pass
    raise PcdnetError(f"no file can be called {str(path)!r:.100}; choose another name")


def expanded(path: str | Path) -> Path:
    """The path with the home folder that a tilde stands for; a file may also be called so."""
    with suppress(RuntimeError):  # nobody is called that
        return Path(path).expanduser()
    return Path(path)


def folder(path: str | Path) -> Path:
    """Make a folder, and those above it, where there is none yet."""
    path = nameable(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot make the folder {path}: {error.strerror or error}; choose another place") from None
    return path


def is_held(path: Path) -> bool:
    """Whether another process holds a file that `locked_file` opened; one that cannot be told is not."""
    with suppress(ImportError, FileNotFoundError, PermissionError):
        import fcntl

        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:
                pass  # a file system without locks
    return False


def locked_file(path: Path) -> BinaryIO:
    """Open a file for reading and writing, made if need be, that no other process may open so until it is closed."""
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | _CAREFUL, 0o666), "r+b")
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or error
        raise Unwritable(f"cannot write {path}: {reason}; choose another ", Setting("out")) from None
    with suppress(ImportError):  # where there are no such locks, people take care themselves
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise PcdnetError(
                f"another process is writing to {path.parent}; wait for it, or choose another ", Setting("out")
            ) from None
        except OSError:
            pass  # a file system without locks
    return file


def added_to(path: Path) -> BinaryIO:
    """Open a file for adding bytes at its end, made if need be; one that is a link or a pipe is an OSError."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _CAREFUL, 0o666), "ab")


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a file that says nothing but that a process is at work in its folder; another one is refused meanwhile.

    The file goes when the block ends. One that a killed process left behind holds nobody up.
    """
    while True:
        with locked_file(path) as file:
            # Whoever held it before may have removed it between our opening and locking it: then it is nobody's.
            if not _is_at(file, path):
                continue
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            return


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


class Checksum:
    """The CRC32C of bytes that come one after the other; its text is `checksum` of all of them."""

    def __init__(self) -> None:
        self._value = 0

    def add(self, part: bytes) -> None:
        """Take in the next bytes."""
        self._value = google_crc32c.extend(self._value, part)

    def __str__(self) -> str:
        return f"{self._value:08x}"


def checksum(*parts: bytes) -> str:
    """The CRC32C of bytes, as text; what a disk or a careless copy does to them changes it."""
    total = Checksum()
    for part in parts:
        total.add(part)
    return str(total)


CHANGED = "it is not as it was written: its checksum differs"
"""What is wrong with a text that was changed after it was sealed."""
EDITED = f"{CHANGED}; if you edited it, remove its first line"
"""The same of a text that people may edit."""
_JSON = re.compile(r'\{"checksum": ?"([0-9a-f]{8})",')
_TOML = re.compile(r"# checksum ([0-9a-f]{8})[^\n]*\n")


def sealed_json(text: str) -> str:
    """The text of a JSON object with its checksum as the first value, which `unsealed_json` takes off."""
    assert text.startswith("{"), "an object"
    return f'{{"checksum": "{checksum(text.encode())}",{text[1:]}'


def unsealed_json(text: str) -> str:
    """The text as it was before it was sealed, or a ValueError; one that was never sealed stays as it is."""
    seal = _JSON.match(text)
    if seal is None:
        if '"checksum":' in text:
            raise ValueError(CHANGED)
        return text
    rest = "{" + text[seal.end() :]
    if checksum(rest.encode(errors="surrogatepass")) != seal[1]:
        raise ValueError(CHANGED)
    return rest


def sealed_toml(text: str) -> str:
    """The same for TOML, with the checksum in a comment: people may edit such a file, if they remove that line."""
    return f"# checksum {checksum(text.encode())}; remove this line if you edit the file\n{text}"


def unsealed_toml(text: str) -> tuple[str, bool]:
    """The text as it was before it was sealed, or a ValueError; and whether it was sealed at all."""
    seal = _TOML.match(text)
    if seal is None:
        if text.startswith("#") and "remove this line if" in text.partition("\n")[0]:
            raise ValueError(EDITED)
        return text, False
    rest = text[seal.end() :]
    if checksum(rest.encode()) != seal[1]:
        raise ValueError(EDITED)
    return rest, True
