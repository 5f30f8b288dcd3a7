"""Provenance: where a figure comes from. Every benchmark prints its closing line through here.

The line is one JSON object: the figures, and the command, commit, date and machine that they were measured by.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CODE = ("src", "benchmarks", "tests/oracle", "constraints.txt")
"""What figures depend on. That a page or a test was edited says nothing about them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """The moment at which a benchmark began."""

    date: str
    """In UTC, to the second."""
    load: tuple[float, float, float] | None
    """Processes that wanted a core, on average over 1, 5 and 15 minutes; None where the system does not say."""
    commit: str | None
    """See `present_commit`. Taken now, as somebody may edit the code while it is measured."""

    @staticmethod
    def now() -> Start:
        """Right now; to be called before anything is measured."""
        load = os.getloadavg() if hasattr(os, "getloadavg") else None
        return Start(date=datetime.now(UTC).isoformat(timespec="seconds"), load=load, commit=present_commit())

    def line(self, figures: Mapping[str, Any], command: str | None = None) -> dict[str, Any]:
        """Figures with where they come from."""
        origin = {"command": command or present_command(), "commit": self.commit, "date": self.date}
        return {**figures, **origin, "machine": {**machine(), "load": self.load and [round(n, 2) for n in self.load]}}

    def close(self, figures: Mapping[str, Any]) -> None:
        """Print the closing line of a benchmark."""
        print(json.dumps(self.line(figures)), flush=True)


def command_of(module: str, arguments: Sequence[str]) -> str:
    """How a benchmark is started, from the root of the project."""
    return shlex.join(["python", "-m", module.removesuffix(".__main__"), *arguments])


def present_command() -> str:
    """How this process was started."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return command_of(spec.name if spec is not None else Path(sys.argv[0]).name, sys.argv[1:])


def present_commit(root: Path = ROOT) -> str | None:
    """The commit of the code that runs; None where there is no repository.

    What is not committed is marked by a + and a digest of it: two such figures are of the same code if this is the
    same.
    """
    head = _git(root, "rev-parse", "--short=10", "HEAD")
    if head is None:
        return None
    changed = _git(root, "diff", "HEAD", "--", *CODE) or ""
    for name in (_git(root, "ls-files", "--others", "--exclude-standard", "--", *CODE) or "").splitlines():
        changed += f"{name}\n{hashlib.sha256((root / name).read_bytes()).hexdigest()}\n"
    return f"{head}+{hashlib.sha256(changed.encode()).hexdigest()[:7]}" if changed else head


def is_present(commit: str | None, root: Path = ROOT) -> bool:
    """Whether a figure of this commit is one of the code that is here now: later commits may have changed pages."""
    now = present_commit(root)
    if commit is None or now is None or commit == now:
        return commit is not None and commit == now
    if "+" in commit or "+" in now:
        return False
    return _git(root, "diff", "--quiet", commit, "HEAD", "--", *CODE) is not None


def machine() -> dict[str, Any]:
    """What the figures were measured on; its name is nobody's business."""
    import torch  # here, as whoever only asks for the commit should not wait for it

    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "processor": _processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    told = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", told.read_text(encoding="utf-8")) if told.is_file() else None
    return found[1].strip() if found else platform.machine()


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails, or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None
