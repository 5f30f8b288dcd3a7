"""Files: written whole or not at all, and held by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pcdnet.errors import PcdnetError, Setting


@contextmanager
def whole_file(path: str | Path, *cure: str | Setting, shared: bool = False) -> Iterator[BinaryIO]:
    """Open a file for bytes that takes its name only when the block ends well.

    Until then a file of that name stays as it was, and whatever goes wrong leaves nothing behind. `cure` ends the
    message of an error. A `shared` file may be written by several processes at the same time; the last one wins.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial" if shared else f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        cure = cure or ("choose another place",)
        raise PcdnetError(f"cannot write {path}: {error.strerror or error}; ", *cure) from None
    finally:
        with suppress(OSError):  # where it cannot be removed it could not be made, which is reported already
            partial.unlink(missing_ok=True)


def folder(path: str | Path) -> Path:
    """Make a folder, and those above it, where there is none yet."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PcdnetError(f"cannot make the folder {path}: {error.strerror or error}; choose another place") from None
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
        path.touch()
        file = path.open("r+b")
    except OSError as error:
        raise PcdnetError(f"cannot write {path}: {error.strerror or error}; choose another ", Setting("out")) from None
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
