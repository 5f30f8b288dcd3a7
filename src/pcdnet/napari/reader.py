"""Reader: what napari opens by path: the results of `pcdnet decompose`, and the folders of runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from pcdnet.errors import PcdnetError
from pcdnet.model.storage import CONFIG, WEIGHTS
from pcdnet.napari.layers import LayerData, bank_layer, found_layers
from pcdnet.output.record import FILE, Record, check_record
from pcdnet.run import RunFolder

Reader: TypeAlias = Callable[[str | Sequence[str]], list[LayerData]]


def get_reader(path: str | Sequence[str]) -> Reader | None:
    """What reads a path: results (their folder, or decompositions.jsonl), a run's folder; None for what is neither."""
    place = Path(path if isinstance(path, str) else path[0])
    if results_in(place) is not None:
        return read_results
    if (place / CONFIG).is_file() and (place / WEIGHTS).is_file():
        return read_run
    return None


def results_in(place: Path) -> Path | None:
    """The file of results that a path names, if it names one."""
    file = place / FILE if place.is_dir() else place
    return file if file.name.endswith(".jsonl") and file.is_file() else None


def read_results(path: str | Sequence[str]) -> list[LayerData]:
    """The objects in results as labels and boxes."""
    file = results_in(Path(path if isinstance(path, str) else path[0]))
    assert file is not None, "get_reader found it"
    records = list[Record]()
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                check_record(record)
                records.append(record)
        return found_layers(records)
    except (OSError, ValueError, RecursionError, IndexError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PcdnetError(f"{file} cannot be read: {reason}; give what `pcdnet decompose` wrote") from None


def read_run(path: str | Sequence[str]) -> list[LayerData]:
    """The prototypes of a run."""
    model = RunFolder.open(path if isinstance(path, str) else path[0]).load_model()
    return [bank_layer(model.weights().clamped().to_numpy())]
