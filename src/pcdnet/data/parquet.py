"""Parquet: tables with a column of encoded pictures, as bytes or as Hugging Face writes them.

Tables are read a few rows at a time, of the one column that is wanted. It needs the extra `parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Num

from pcdnet.data import shards
from pcdnet.data.intake import Header
from pcdnet.data.notes import Note, printable, readable, some
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

USUAL = ("image", "img", "picture", "photo", "frame", "jpg", "png", "bytes", "content")
"""What the column of pictures is mostly called, where there are several that it may be."""
ROWS = 64
"""Rows that are held at a time."""


def read(path: str | Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return the pictures of a table, of a folder of tables or of a pattern of them, at most `limit`."""
    return shards.read(path, KIND, limit=limit, view=view)


def images(path: str | Path, *, stride: int = 1) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
    """Yield every `stride`-th picture with its number; see `shards.images`."""
    return shards.images(path, KIND, stride=stride)


def headers(path: str | Path) -> dict[int, Header]:
    """What the first pictures say of themselves, by number."""
    return shards.headers(path, KIND)


def count(path: str | Path) -> int:
    """How many rows the tables have."""
    found, _ = shards.found(path, KIND.suffix)
    total = 0
    for shard in found:
        with shard.opened() as place, _opened(place, shard.label) as table:
            total += int(table.metadata.num_rows)
    return total


def encoded(path: Path, label: str, column: str | None, _: Note) -> Iterator[tuple[str, bytes]]:
    """Yield the encoded pictures of a table with their rows; one that is missing or far too large is empty."""
    with _opened(path, label) as table:
        name, inner = _column(table.schema_arrow, label, column)
        row = 0
        wanted = name if inner is None else f"{name}.{inner}"
        for batch in table.iter_batches(batch_size=ROWS, columns=[wanted], use_threads=False):
            whole = batch.column(name)  # a column `a.b` comes with the field b of a column a
            values = whole if inner is None else whole.field(inner)
            for value in values:
                content = value.as_buffer() if value.is_valid else b""
                yield f"row {row}", bytes(content) if len(content or b"") <= shards.MOST_BYTES else b""
                row += 1


@contextmanager
def _opened(path: Path, label: str) -> Iterator[Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise PcdnetError("Parquet needs pyarrow, which is missing; pip install 'pcdnet[parquet]'") from None
    damage = (pyarrow.ArrowException, EOFError, ValueError, MemoryError, OSError)
    limits = {"thrift_string_size_limit": 2**26, "thrift_container_size_limit": 2**24}
    with (
        readable(label, "a .parquet file", damage, "write it again"),
        path.open("rb") as file,
        parquet.ParquetFile(file, buffer_size=2**20, pre_buffer=False, **limits) as table,
    ):
        yield table


def _column(schema: Any, label: str, asked: str | None) -> tuple[str, str | None]:
    """The column of pictures, and the field of it that has their bytes where it is a struct."""
    import pyarrow

    def binary(kind: Any) -> bool:
        return bool(pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind))

    possible: dict[str, str | None] = {}
    for one in schema:
        if binary(one.type):
            possible[one.name] = None
        elif pyarrow.types.is_struct(one.type) and any(f.name == "bytes" and binary(f.type) for f in one.type):
            possible[one.name] = "bytes"
    if len(schema.names) > len({*schema.names}):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise PcdnetError(f"{label} has several columns called {twice!r}; write it again with a name for each")
    usual = [name for name in USUAL for there in possible if there.lower() == name]
    names = printable(some([*possible], 5))
    if asked is not None:
        if asked not in possible:
            raise PcdnetError(
                f"{label} has no column {asked!r} of pictures (it has {names or 'none'}); name one of them"
            )
        return asked, possible[asked]
    if not possible:
        there = printable(some([one.name for one in schema], 5))
        raise PcdnetError(f"{label} has no column of encoded pictures (its columns: {there}); write one as binary")
    if len(possible) > 1 and not usual:
        cure = f"add the one to use, as in {label}#{printable(next(iter(possible)))}"
        raise PcdnetError(f"{label} has several columns that may be pictures ({names}); {cure}")
    chosen = next(there for there in possible if not usual or there.lower() == usual[0])
    return chosen, possible[chosen]


KIND = shards.Kind(".parquet", encoded)
"""What shards of this kind are."""
