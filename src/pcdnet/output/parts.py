"""Parts: what was found, as a folder of Parquet files, a row an image; the engine Ray writes one for every piece.

A file is written whole or not at all, under a name that follows from its piece: a piece that is done twice is there
once. Its footer says what it is of, so no other file is needed to go on. Its pages have checksums.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pcdnet.decomposition import FORMAT as RECORD_FORMAT
from pcdnet.decomposition import POSE
from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file
from pcdnet.output.record import Record

FOLDER = "parts"
"""The folder of the parts among the results."""
FORMAT = "pcdnet-part-1"
"""Names the schema of a part."""

_SEAL = b"pcdnet"
_ROWS = 1024  # images of a part that are held at a time


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What a part says of itself."""

    key: str
    """That of its piece."""
    images: int
    """How many images it has."""
    drawn: str
    """What their pictures were drawn with; empty where none were."""
    failed: dict[str, str]
    """The inputs of the piece that could not be used, or not in full, with what is wrong with them."""


def part_name(number: int, key: str) -> str:
    """The name of the file of a piece."""
    return f"part-{number:07}-{key}.parquet"


def write_part(path: Path, records: Sequence[Record], label: Label) -> None:
    """Write a part, whole or not at all."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    words = json.dumps({"format": FORMAT, **asdict(label)})
    posed = any(POSE[0] in thing for record in records for thing in record["objects"])
    schema = _schema(posed=posed).with_metadata({_SEAL: words.encode()})
    table = arrow.Table.from_pylist([_row(record) for record in records], schema=schema)
    with whole_file(path, shared=True) as file:
        parquet.write_table(table, file, write_page_checksum=True)


def label_of(path: Path) -> Label | None:
    """What a part says of itself; None where there is none that can be read."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    try:
        words = json.loads(parquet.read_schema(path).metadata[_SEAL])
        return Label(**words) if words.pop("format") == FORMAT else None
    except (OSError, arrow.ArrowException, ValueError, KeyError, TypeError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class Parts:
    """The records of parts, one part after the other, read each time they are gone through."""

    paths: Sequence[Path]
    """The files."""

    def __iter__(self) -> Iterator[Record]:
        for path in self.paths:
            yield from records_of(path)


def records_of(path: Path) -> Iterator[Record]:
    """The records of a part, in its order."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(_ROWS):
                yield from map(_record, batch.to_pylist())
    except (OSError, arrow.ArrowException, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        raise PcdnetError(f"{path} is damaged ({reason}); delete it, and the same command makes it anew") from None


def _schema(*, posed: bool) -> Any:
    """The columns of a part; objects that have poses may lie at fractions of a pixel."""
    arrow = import_module("pyarrow")
    whole, real, text = arrow.int32(), arrow.float64(), arrow.string()
    thing = arrow.struct(
        {
            "prototype": whole,
            "position": arrow.list_(real if posed else whole),
            **(dict(zip(POSE, (real, real, arrow.bool_()), strict=True)) if posed else {}),
            "colour": arrow.list_(real),
            "depth": whole,
            "gain": real,
            "box": arrow.list_(whole),
            "pixels": whole,
            "mask": text,
        }
    )
    columns = {"name": text, "height": whole, "width": whole, "error": real, "objects": arrow.list_(thing)}
    return arrow.schema([arrow.field(name, kind) for name, kind in columns.items()])


def _row(record: Record) -> dict[str, Any]:
    height, width = record["size"]
    things = [{**thing, "mask": thing["mask"]["counts"]} for thing in record["objects"]]
    return {"name": record["name"], "height": height, "width": width, "error": record["error"], "objects": things}


def _record(row: dict[str, Any]) -> Record:
    """The record of a row, with its entries in the order in which they are written."""
    size = [row["height"], row["width"]]
    for thing in row["objects"]:
        thing["mask"] = {"size": size, "counts": thing["mask"]}
        thing["position"] = [int(at) if at == int(at) else at for at in thing["position"]]
    words = {"size": size, "error": row["error"], "objects": row["objects"]}
    return {"format": RECORD_FORMAT, "name": row["name"], **words}
