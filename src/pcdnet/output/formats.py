"""Formats: the registry of the kinds of results; a new one is a file of this package and an entry here.

`decompose`, the viewer and the help texts all read it. It is imported for every `--help`, so it is cheap, and a writer
is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.output.record import Results


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of results."""

    name: str
    """What users ask for."""
    words: str
    """What it writes, for help texts."""
    writer: str | None
    """The file of this package and its function that write the results; None for pictures, which are drawn while
    the images are at hand."""
    media_type: str = "application/json"
    """How HTTP calls the first file that it writes."""
    needs: str = ""
    """The package that it needs; an extra of the same name as the format has it."""

    def write(self, results: Results, folder: Path) -> list[Path]:
        """Write results into a folder, each file whole or not at all; they are gone through more than once."""
        assert self.writer is not None
        module, _, function = self.writer.partition(":")
        files: list[Path] = getattr(import_module(f"pcdnet.output.{module}"), function)(results, folder)
        return files


FORMATS = (
    Format("json", "decompositions.jsonl, a line an image", "record:write_json_lines"),
    Format("coco", "coco.json, coco_results.json", "coco:write"),
    Format("png", "pictures of every image", None, "image/png"),
    Format("csv", "objects.csv, a row an object", "table:write_csv", "text/csv"),
    Format("parquet", "objects.parquet", "table:write_parquet", "application/vnd.apache.parquet", needs="pyarrow"),
    Format("yolo", "yolo, a text file an image", "yolo:write", "text/plain"),
    Format("label-studio", "label_studio.json, label_studio.xml", "label_studio:write"),
)
"""Every format."""


def offered() -> str:
    """What can be asked for, in words."""
    return ", ".join(f"{each.name} ({each.words})" for each in FORMATS)


def checked_formats(names: str | Iterable[str]) -> tuple[Format, ...]:
    """The formats of a list, or of a text such as "json,coco", each once, if all can be written here."""
    words = names.split(",") if isinstance(names, str) else names
    asked = dict.fromkeys(word.strip().lower() for word in words if word.strip())
    known = {each.name: each for each in FORMATS}
    for word in asked:
        if word not in known:
            raise PcdnetError(f"there is no format {word!r:.40}; use some of {','.join(known)}")
        needs = known[word].needs
        if needs and find_spec(needs) is None:
            raise PcdnetError(f"the format {word} needs {needs}, which is missing; run: pip install 'pcdnet[{word}]'")
    if not asked:
        raise PcdnetError(f"no format was asked for; use some of {','.join(known)}")
    return tuple(known[word] for word in asked)
