"""Disks: work on disks that are full at a random byte, and then have room again.

What is asked must say so in a sentence, must leave nothing half-written, and must come to the same bytes as ever when
it is asked again.
"""

from __future__ import annotations

import builtins
import errno
import io
import mmap
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.runs import ENDED, true_run

from benchmarks.drills import FOUND, LEARNED, Commands, contents, decomposing, ended, training
from pcdnet.cli import main as pcdnet_main
from pcdnet.data import tetrominoes
from pcdnet.output.dataset import save_scenes

WHOLE = 1 << 62
"""Bytes of a disk that is never full."""
ENDING = b"</html>"
"""How a report ends; it tells the time, so no two are the same."""


class Disk:
    """A disk of so many bytes, for all files that this process opens from now on; what it holds is never freed."""

    def __init__(self, room: int, used: mmap.mmap) -> None:
        """`used` is where the bytes that were written are counted, for the process that forked this one."""
        self._room, self._used, self._open = room, used, io.open

    def install(self) -> None:
        """Have Python open files here."""
        builtins.open = io.open = self.opened

    def opened(self, file: Any, mode: str = "r", buffering: int = -1, *text: Any, **words: Any) -> Any:
        """What `open` gives, on this disk."""
        if isinstance(file, int) or not set(mode) & set("wax+"):
            return self._open(file, mode, buffering, *text, **words)
        raw = _Limited(file, mode.replace("b", "").replace("t", ""))
        raw.disk = self
        if "b" in mode:
            return raw if buffering == 0 else io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return io.TextIOWrapper(io.BufferedWriter(raw), *text, **words)

    def take(self, size: int) -> int:
        """How many of so many bytes there is room for; from then on they are used."""
        used = int.from_bytes(self._used[:8], "little")
        given = min(size, max(0, self._room - used))
        self._used[:8] = (used + given).to_bytes(8, "little")
        return given


class _Limited(io.FileIO):
    disk: Disk

    def write(self, content: Any) -> int:
        view = memoryview(content).cast("B")
        given = self.disk.take(len(view))
        if given < len(view):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(view)


def on_disk(arguments: Sequence[str], log: Path, room: int) -> tuple[int | None, int]:
    """Run a command in a process of its own, on a disk of that size: its exit code, and how many bytes it wrote."""
    sys.stdout.flush()
    used = mmap.mmap(-1, 8)
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            with log.open("wb", buffering=0) as file:
                for number in (1, 2):
                    os.dup2(file.fileno(), number)
            Disk(room, used).install()
            code = pcdnet_main(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return ended(pid, None), int.from_bytes(used[:8], "little")


def drill(count: int, seed: int) -> dict[str, int]:
    """Fill the disk so many times, by turns of training, decompose, gather and report."""
    torch.set_num_threads(1)  # a process with more cannot be forked
    rng, full, lost = np.random.default_rng(seed), 0, list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        works = _works(folder)
        sound = {}
        for title, (commands, names) in works.items():
            log, whole = folder / "log", folder / f"{title}-sound"
            code, used = on_disk(commands(whole), log, WHOLE)
            assert code in ENDED, log.read_text()[-2000:]
            sound[title] = contents(whole, names), used
        for number in range(count):
            title = list(works)[number % len(works)]
            commands, names = works[title]
            expected, used = sound[title]
            out = folder / "work"  # of the same name every time: it is part of what is said
            what, was_full = _tried(commands, names, expected, out, int(rng.integers(used)), folder / "log")
            full += was_full
            if what:
                lost.append(f"disk {number}, {title}: {what}")
            shutil.rmtree(out, ignore_errors=True)
    print(f"disks: {count} works, {full} of them on a disk that was full; lost: {len(lost)}")
    print("".join(f"  {each}\n" for each in lost), end="", flush=True)
    return {"works": count, "full": full, "lost": len(lost)}


def _tried(
    commands: Commands, names: Sequence[str], expected: dict[str, bytes | None], out: Path, room: int, log: Path
) -> tuple[str, bool]:
    """What went wrong, if anything, on a disk that is full and on one that has room again; and whether it was full."""
    code, _ = on_disk(commands(out), log, room)
    said = log.read_text(errors="replace")
    if code not in ENDED and (code != 1 or "No space left" not in said or "Traceback" in said):
        return f"exit code {code} at {room} bytes: {said[-500:]}", True
    if left := [str(path.relative_to(out)) for path in out.rglob("*.partial")]:
        return f"left {left} at {room} bytes", code == 1
    page = out / "report.html"
    if page.exists() and not page.read_bytes().rstrip().endswith(ENDING):
        return f"left half a report at {room} bytes", code == 1
    again, _ = on_disk(commands(out), log, WHOLE)
    if again not in ENDED:
        return f"exit code {again} with room again, full at {room} bytes: {log.read_text()[-500:]}", code == 1
    found = contents(out, names)
    return (
        f"{[name for name in names if found[name] != expected[name]]} differ" if found != expected else ""
    ), code == 1


def _works(folder: Path) -> dict[str, tuple[Commands, Sequence[str]]]:
    """What is drilled, by name: how it is asked for, and the files that must be the same in the end."""
    small, many = folder / "small.npz", folder / "many.npz"
    save_scenes(tetrominoes.generate(80, seed=1), small)
    save_scenes(tetrominoes.generate(60, seed=2), many)
    run, parts = true_run(folder / "true").path, [folder / "part-0", folder / "part-1"]
    decompose = decomposing(run, many)
    for number, part in enumerate(parts):
        code, _ = on_disk([*decompose(part), "--shard", f"{number}/2"], folder / "log", WHOLE)
        assert code == 0, (folder / "log").read_text()

    def reported(out: Path) -> list[str]:
        if not out.exists():
            shutil.copytree(run, out)
        return ["report", str(out)]

    def gathered(out: Path) -> list[str]:
        return ["gather", *map(str, parts), "--out", str(out)]

    return {
        "train": (training(small), LEARNED),
        "decompose": (decompose, FOUND),
        "gather": (gathered, FOUND),
        "report": (reported, ("names.toml", "config.toml")),
    }
