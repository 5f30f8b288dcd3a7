"""Runs: the files of a run's folder, changed behind their checksums, and all that is asked of such a folder."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import load

import pcdnet
from benchmarks.drills import stopped_run
from benchmarks.fuzz.mutations import blind, changed_value, json_mutator
from benchmarks.fuzz.target import Reader, Target
from benchmarks.fuzz.texts import toml_mutator
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.files import sealed_json, unsealed_json
from pcdnet.model.storage import SEAL, save_tensors
from pcdnet.output.curves import learning_curves
from pcdnet.output.dataset import save_scenes
from pcdnet.output.report import training_words
from pcdnet.output.runs import runs
from pcdnet.run import RunFolder
from pcdnet.training.verdict import kept_verdict

TYPES = (torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool, torch.bfloat16, torch.int32)
BAD = (float("nan"), float("inf"), -1.0, 0.0, 1e30, -1e30, 5.0)
SHARED = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""Where small files are quick."""


@cache
def sound_run() -> dict[str, bytes]:
    """The files of a run that was stopped half way, with names and a verdict, and of the data it learned from."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name, "small.npz")
        save_scenes(generate(20, seed=1), data)
        run = stopped_run(data, Path(name, "run"))
        return {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}


def mutate_tensors(content: bytes, rng: Random) -> bytes:
    """Change the header of a safetensors file, or its tensors and words, with a checksum that fits."""
    size = int.from_bytes(content[:8], "little")
    choice = rng.random()
    if choice < 0.1:
        return blind(content, rng, (b'"shape":', b'"F32"', b'"BF16"', b"__metadata__", b"data_offsets"))
    header = json.loads(content[8 : 8 + size])
    if choice < 0.3:
        words = json.dumps(changed_value(header, rng)).encode()
        return len(words).to_bytes(8, "little") + words + content[8 + size :]
    tensors, words = load(content), json.loads(header["__metadata__"][SEAL])["words"]
    for _ in range(rng.randrange(1, 3)):
        if words and rng.random() < 0.4:
            name = rng.choice(sorted(words))
            changed = changed_value([json.loads(words[name])], rng)
            words[name] = json.dumps(changed[0] if isinstance(changed, list) and changed else changed)
            if rng.random() < 0.1:
                words[rng.choice(("", "state", "more"))] = rng.choice(("", "{", "null", "[" * 50_000, "9" * 5000))
        else:
            _change_tensor(tensors, rng)
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        save_tensors(Path(folder, "x"), tensors, words)
        return Path(folder, "x").read_bytes()


def _change_tensor(tensors: dict[str, torch.Tensor], rng: Random) -> None:
    name = rng.choice(sorted(tensors))
    value = tensors[name]
    match rng.randrange(8):
        case 0:
            del tensors[name]
        case 1:
            tensors[rng.choice(("", "looks", "masks", "model.looks", "background", "x" * 300))] = value.clone()
        case 2:
            tensors[name] = value.to(rng.choice(TYPES))
        case 3:
            tensors[name] = value.reshape(-1)[: rng.choice((0, 1, 3, 7))].clone()
        case 4:
            tensors[name] = value[None].clone()
        case 5:
            tensors[name] = torch.zeros(rng.choice(((), (0,), (1, 0, 3), (4, 25, 25), (3, 35, 35), (2, 3, 35, 35))))
        case 6:
            tensors[name] = tensors[rng.choice(sorted(tensors))].clone()
        case _ if value.numel():
            changed = value.clone().reshape(-1)
            changed[rng.randrange(value.numel())] = type(changed[0].item())(rng.choice(BAD[2:]))
            if value.dtype.is_floating_point:
                changed[rng.randrange(value.numel())] = rng.choice(BAD)
            tensors[name] = changed.reshape(value.shape)


def in_run(name: str, ask: Callable[[Path], object]) -> Callable[[Path], Reader]:
    """What writes an input as that file of a run, and asks something of the run."""

    def prepare(folder: Path) -> Reader:
        save_scenes(generate(20, seed=1), folder / "small.npz")
        run, files = folder / "run", sound_run()

        def read(content: bytes) -> None:
            shutil.rmtree(run, ignore_errors=True)
            run.mkdir()
            for each, sound in files.items():
                (run / each).write_bytes(content if each == name else sound)
            with redirect_stderr(io.StringIO()):
                ask(run)

        return read

    return prepare


def resumed(run: Path) -> None:
    """One more step, if the run can be resumed."""
    files = RunFolder.open(run)
    files.read_metrics()
    str(runs(run.parent))
    with suppress(Interrupted):
        pcdnet.fit(run.parent / "small.npz", resume=True, out=run, quiet=True, stop=lambda: True)


def loaded(run: Path) -> None:
    """The model, and what it makes of an image."""
    str(runs(run.parent))
    model = pcdnet.load(run)
    json.dumps(model.decompose(generate(1, seed=3).images[0]).to_dict(), allow_nan=False)


def looked_at(run: Path) -> None:
    """All that needs no work: the metrics, the verdict, the listing, the origin, the names."""
    found = runs(run.parent)
    str(found)
    json.dumps(found.to_dict())
    opened = RunFolder.open(run)
    lines, _ = opened.read_metrics()
    learning_curves(lines, opened.config.model.num_prototypes)
    training_words(lines)
    refused: PcdnetError | None = None
    asked: tuple[Callable[[], object], ...] = (
        lambda: kept_verdict(opened),
        lambda: str(kept_verdict(opened)),
        opened.command,
        lambda: opened.view_of(None).size((35, 35)),
        lambda: opened.held_out("tetrominoes", count=2),
        lambda: opened.data,
        lambda: opened.image_size,
        opened.names,
        opened.load_model,
        lambda: opened.rewind(1),
    )
    for ask in asked:
        try:
            ask()
        except PcdnetError as error:
            refused = error
    if refused:
        raise refused


def sealed_words(whole: Any, rng: Random) -> bytes:
    """JSON as a run keeps it, with a checksum that fits, most of the time."""
    text = json.dumps(whole)
    return (sealed_json(text) if text.startswith("{") and rng.random() < 0.9 else text).encode()


def sealed_as(content: bytes) -> Any:
    """What such JSON says."""
    return json.loads(unsealed_json(content.decode()))


def mutate_lines(content: bytes, rng: Random) -> bytes:
    """Change lines of JSON with their checksums, or their order."""
    if rng.random() < 0.15:
        return blind(content, rng, (b"\n", b'{"checksum": "', b'{"step": '))
    lines = content.split(b"\n")[:-1]
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                lines.insert(place, lines[rng.randrange(len(lines))])
            case 1:
                del lines[place]
            case _:
                with suppress(ValueError):
                    lines[place] = sealed_words(changed_value(sealed_as(lines[place]), rng), rng)
    return b"\n".join([*lines, b""])


def _file(name: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [sound_run()[name]]


STATE = Target(
    name="state",
    seeds=_file("state.safetensors"),
    mutate=mutate_tensors,
    prepare=in_run("state.safetensors", resumed),
    megabytes=600,
    seconds=20,
)
WEIGHTS = Target(
    name="weights",
    seeds=_file("weights.safetensors"),
    mutate=mutate_tensors,
    prepare=in_run("weights.safetensors", loaded),
    megabytes=600,
    seconds=20,
)
METRICS = Target(
    name="metrics", seeds=_file("metrics.jsonl"), mutate=mutate_lines, prepare=in_run("metrics.jsonl", looked_at)
)
ORIGIN = Target(
    name="origin",
    seeds=_file("origin.json"),
    mutate=json_mutator(sealed_words, sealed_as),
    prepare=in_run("origin.json", looked_at),
    megabytes=600,
)
VERDICT = Target(
    name="verdict",
    seeds=_file("verdict.json"),
    mutate=json_mutator(sealed_words, sealed_as),
    prepare=in_run("verdict.json", looked_at),
)
RUN_CONFIG = Target(
    name="run-config",
    seeds=_file("config.toml"),
    mutate=toml_mutator(),
    prepare=in_run("config.toml", looked_at),
    megabytes=600,
)
