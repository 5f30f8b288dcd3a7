"""Silence: how long every command says nothing, in a terminal and elsewhere; `python -m benchmarks.silence`.

Every command runs in a process of its own, small but whole, with what it writes followed byte by byte: the time to the
first of them, and the longest time between two of them, or before the end. In a terminal the live line counts as words.
With `--fresh` nothing is compiled yet, as after an installation; with `--slow` every picture takes its time to be read.
"""

from __future__ import annotations

import argparse
import os
import pty
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.provenance import Start

PROGRAM = sys.executable, "-m", "pcdnet"
ENOUGH = 600.0
"""Seconds after which a command that does not end by itself, as a server, is interrupted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """What was heard of a command."""

    first: float
    """Seconds to the first byte."""
    longest: float
    """The longest silence, in seconds, the first one and the last one included."""
    before: str
    """The last line before it."""
    seconds: float
    """Seconds to the end."""
    code: int


def listen(command: Sequence[str], *, terminal: bool, environment: dict[str, str], until: str = "") -> Heard:
    """Run a command and take the times of what it writes on stdout and stderr; `until` ends one that does not end."""
    ends = pty.openpty() if terminal else os.pipe()
    start = last = time.monotonic()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=ends[1], stderr=ends[1], env=environment, start_new_session=True
    )
    os.close(ends[1])
    first, longest, before, text, asked = None, 0.0, "", "", False
    with selectors.DefaultSelector() as selector:
        selector.register(ends[0], selectors.EVENT_READ)
        while True:
            heard = selector.select(timeout=1.0)
            now = time.monotonic()
            piece = b""
            if heard:
                try:
                    piece = os.read(ends[0], 2**16)
                except OSError:  # what a terminal says when nobody is left at its other end
                    piece = b""
            if (piece or heard) and not asked:
                first = now - start if first is None else first
                if now - last > longest:
                    longest, before = now - last, text.strip().splitlines()[-1][-100:] if text.strip() else ""
                last, text = now, (text + piece.decode(errors="replace"))[-2000:]
            if not asked and ((until and until in text) or now - start > ENOUGH):
                asked = True
                process.send_signal(signal.SIGINT)
            if heard and not piece:
                break
    os.close(ends[0])
    code = process.wait()
    return Heard(
        first=round(first or 0.0, 2),
        longest=round(longest, 2),
        before=before,
        seconds=round(time.monotonic() - start, 1),
        code=code,
    )


def commands(folder: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Every command: what it is called in the table, its arguments, and what ends it where it does not end itself."""
    photos, run, npz = str(folder / "photos"), str(folder / "run"), str(folder / "scenes.npz")
    yield "--help", ("--help",), ""
    yield "--version", ("--version",), ""
    yield "train --help", ("train", "--help"), ""
    yield "data", ("data", "tetrominoes", "--count", "400", "--out", npz, "--force"), ""
    yield "train, automatic", ("train", "--data", photos, "--out", run, "--force", "--train.steps", "40"), ""
    small = "--preset", "tetrominoes", "--data", npz, "--train.steps", "60", "--force"
    yield "train, a preset", ("train", *small, "--out", str(folder / "preset")), ""
    yield "train --seeds", ("train", *small, "--seeds", "0,1", "--out", str(folder / "seeds")), ""
    yield "tune", ("tune", "--data", npz, "--preset", "tetrominoes", "--trials", "2", "--steps", "10", "--out",
                   str(folder / "study")), ""  # fmt: skip
    yield "eval", ("eval", run), ""
    yield "decompose", ("decompose", run, photos, "--out", str(folder / "results"), "--format", "json,png,coco"), ""
    parts = [str(folder / f"part-{n}") for n in range(2)]
    for n, part in enumerate(parts):
        yield f"decompose --shard {n}/2", ("decompose", run, photos, "--out", part, "--shard", f"{n}/2"), ""
    yield "gather", ("gather", *parts, "--out", str(folder / "all")), ""
    yield "report", ("report", run), ""
    yield "figure", ("figure", run, "--kind", "decomposition", "--out", str(folder / "figure.pdf")), ""
    yield "export", ("export", str(folder / "preset"), "--onnx", str(folder / "run.onnx")), ""
    yield "bench", ("bench", run), ""
    yield "runs", ("runs", str(folder)), ""
    yield "merge", ("merge", run, "0", "1"), ""
    yield "serve", ("serve", run, "--port", "0"), "next: open"
    yield "demo", ("demo", "--out", str(folder / "demo"), "--minutes", "0.3"), ""


def write_photos(folder: Path, count: int) -> None:
    """Pictures of three kinds of things on paper, which no preset fits."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:12, :12] - 5.5
    shapes = [np.hypot(rows, columns) < 5.5, np.abs(rows) + np.abs(columns) < 6, (np.abs(rows) < 2) | (columns < -3)]
    for number in range(count):
        picture = np.full((96, 96, 3), 225.0)
        for place in rng.permutation(36)[:6]:
            top, left = np.array(divmod(int(place), 6)) * 15 + rng.integers(1, 4, 2)
            picture[top : top + 12, left : left + 12][shapes[rng.integers(3)]] = rng.integers(0, 160, 3)
        picture += rng.normal(0, 2, picture.shape)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(folder / f"{number:04}.png")


def parser() -> argparse.ArgumentParser:
    """What the benchmark takes."""
    words = argparse.ArgumentParser(prog="python -m benchmarks.silence", description=__doc__)
    words.add_argument("--terminal", action="store_true", help="listen in a terminal, where there are live lines")
    words.add_argument("--fresh", action="store_true", help="begin with nothing compiled")
    words.add_argument("--slow", type=float, default=0.0, help="seconds that every picture takes to be read")
    words.add_argument("--photos", type=int, default=80, help="pictures to learn from")
    words.add_argument("--only", nargs="*", default=[], help="commands to listen to, by the beginning of their names")
    return words


def main() -> None:
    """Listen to every command, and print a table and one JSON line."""
    given, start, rows = parser().parse_args(), Start.now(), {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_photos(folder / "photos", given.photos)
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        if given.terminal:
            environment |= {"TERM": "xterm-256color", "COLUMNS": "100"}
        if given.fresh:
            environment["NUMBA_CACHE_DIR"] = str(folder / "compiled")
        if given.slow:
            environment["PYTHONPATH"] = os.pathsep.join(
                [_slowness(folder, given.slow), os.environ.get("PYTHONPATH", "")]
            )
        for name, arguments, until in commands(folder):
            if given.only and not name.startswith(tuple(given.only)):
                continue
            heard = listen([*PROGRAM, *arguments], terminal=given.terminal, environment=environment, until=until)
            rows[name] = {"first": heard.first, "longest": heard.longest, "seconds": heard.seconds, "code": heard.code}
            print(f"{name:<22} first {heard.first:5.2f}  longest {heard.longest:6.2f}  of {heard.seconds:6.1f} s"
                  f"  exit {heard.code}  after: {heard.before}", flush=True)  # fmt: skip
    start.close({"terminal": given.terminal, "fresh": given.fresh, "slow": given.slow, "commands": rows})


def _slowness(folder: Path, seconds: float) -> str:
    """A folder for the module path with which every picture takes so long to be opened."""
    (folder / "slow").mkdir(exist_ok=True)
    words = (
        "import time\nimport PIL.Image\nopened = PIL.Image.open\n\n"
        f"def slowly(*given, **named):\n    time.sleep({seconds})\n    return opened(*given, **named)\n\n"
        "PIL.Image.open = slowly\n"
    )
    (folder / "slow" / "sitecustomize.py").write_text(words, encoding="utf-8")
    return str(folder / "slow")


if __name__ == "__main__":
    main()
