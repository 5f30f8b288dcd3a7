"""Serving: a server to measure, as `pcdnet serve` starts it, in a process of its own on loopback."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.models import tetromino_model
from pcdnet.config import Config, ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.origin import Origin
from pcdnet.run import RunFolder


@dataclass(frozen=True, slots=True)
class Process:
    """A server in a process of its own."""

    site: str
    """Its address, without the last slash."""
    handle: subprocess.Popen[str]

    def memory(self, what: str = "VmHWM") -> float | None:
        """MiB that it holds (VmRSS) or ever held (VmHWM); None where the system does not say."""
        told = Path(f"/proc/{self.handle.pid}/status")
        found = re.search(rf"{what}:\s*(\d+) kB", told.read_text(encoding="utf-8")) if told.is_file() else None
        return int(found[1]) / 1024 if found else None

    def stop(self, by: signal.Signals) -> tuple[float, int, str]:
        """End it: the seconds that it took, its exit code, and what it said on stderr."""
        start = time.perf_counter()
        self.handle.send_signal(by)
        _, said = self.handle.communicate(timeout=60)
        return time.perf_counter() - start, self.handle.returncode, said


@contextmanager
def served(run: Path, *options: str) -> Iterator[Process]:
    """A server of a run."""
    command = [sys.executable, "-c", "import sys; from pcdnet.cli import main; sys.exit(main())", "serve", str(run)]
    handle = subprocess.Popen(
        [*command, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert handle.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", handle.stdout.readline())
        if found is None:
            raise PcdnetError(f"the server did not start: {handle.communicate(timeout=10)[1]}; fix that")
        yield Process(found[0], handle)
    finally:
        if handle.poll() is None:
            handle.kill()
            handle.communicate(timeout=10)


def tetromino_run(folder: Path) -> Path:
    """A run with the true prototypes of Tetrominoes."""
    model = tetromino_model("least_squares")
    run = RunFolder.create(folder, Config(model=model.config), Origin(data="tetrominoes"))
    run.save_weights(model)
    return folder


def wide_run(folder: Path, side: int = 256) -> Path:
    """A run whose prototypes are large and half transparent, on plain backgrounds: as dear as requests can be."""
    rng = torch.Generator().manual_seed(0)
    bank = PrototypeBank(torch.rand(4, side, side, generator=rng), torch.rand(4, side, side, generator=rng))
    config = ModelConfig(num_prototypes=4, prototype_size=(side, side), max_objects=4, background="plain")
    RunFolder.create(folder, Config(model=config), Origin()).save_weights(PCDNet.from_bank(bank, config))
    return folder
