"""Files: written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pcdnet.errors import PcdnetError


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for bytes that takes its name only when the block ends well.

    Until then a file of that name stays as it was, and whatever goes wrong leaves nothing behind.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        raise PcdnetError(f"cannot write {path}: {error.strerror or error}; choose another place") from None
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
