"""Hashes: every package that an installation needs, pinned, with the SHA-256 of its file, for pip's --require-hashes.

usage: python -m benchmarks.hashes [--pythons PYTHON...] [--out DIR]

For every interpreter named, its own pip says what it would install of what pyproject.toml and constraints.txt ask for,
on this platform; that is written to DIR (hashes) as cp311.txt, for example. Where pip also finds a CPU build of
PyTorch, the same with that goes to cp311-cpu.txt: its file is another, and it needs no CUDA.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.provenance import ROOT, Start
from pcdnet.files import folder, whole_file

CONSTRAINTS = ROOT / "constraints.txt"


def dependencies() -> list[str]:
    """What the package needs, as pyproject.toml says it."""
    needs: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return needs


def resolved(python: str, *, cpu: bool) -> list[dict[str, Any]]:
    """What pip would install for an interpreter; by default with the PyTorch that the index has for all."""
    pins = CONSTRAINTS.read_text(encoding="utf-8")
    if not cpu:  # a CPU build is called 2.13.0+cpu, which is 2.13.0, but not to the letter
        pins = re.sub(r"^torch==", "torch===", pins, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as temporary:
        report, constraints = Path(temporary) / "report.json", Path(temporary) / "constraints.txt"
        constraints.write_text(pins, encoding="utf-8")
        words = ["--dry-run", "--ignore-installed", "--quiet", "--only-binary=:all:", "-c", str(constraints)]
        subprocess.run(
            [python, "-m", "pip", "install", *words, "--report", str(report), *dependencies()],
            check=True,
            cwd=temporary,
        )
        installs: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return installs


def as_requirements(installs: list[dict[str, Any]], heading: str) -> str:
    """The text of a file that `pip install --require-hashes -r` takes."""
    lines = []
    for found in sorted(installs, key=lambda found: str(found["metadata"]["name"]).lower()):
        name = re.sub(r"[-_.]+", "-", found["metadata"]["name"]).lower()
        digest = found["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={found['metadata']['version']} --hash=sha256:{digest}\n")
    return f"# {heading}\n# Made by `python -m benchmarks.hashes`.\n{''.join(lines)}"


def tag_of(python: str) -> tuple[str, str]:
    """What an interpreter is called in the names of wheels, and its platform."""
    code = "import sys, sysconfig; print('cp%d%d' % sys.version_info[:2], sysconfig.get_platform())"
    tag, platform = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return tag, platform


def write(python: str, out: Path) -> dict[str, int]:
    """Write the files of one interpreter; how many packages each names."""
    tag, platform = tag_of(python)
    written = {}
    for cpu in (False, True):
        installs = resolved(python, cpu=cpu)
        local = any("+" in found["metadata"]["version"] for found in installs)
        if cpu and not local:
            continue  # there is no CPU build for it
        name = f"{tag}{'-cpu' if cpu else ''}.txt"
        build = "with a CPU build of PyTorch" if cpu else "with the PyTorch of the index"
        with whole_file(folder(out) / name) as file:
            file.write(as_requirements(installs, f"What pcdnet needs under {tag} on {platform}, {build}.").encode())
        written[name] = len(installs)
    return written


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hashes", description=__doc__, formatter_class=form)
    parser.add_argument("--pythons", nargs="+", default=[sys.executable], help="interpreters with pip")
    parser.add_argument("--out", type=Path, default=ROOT / "hashes", help="folder to write into")
    return parser


def main() -> None:
    """Print a line of JSON."""
    start, arguments = Start.now(), parser().parse_args()
    written: dict[str, int] = {}
    for python in arguments.pythons:
        written |= write(python, arguments.out)
        print(json.dumps(written), file=sys.stderr, flush=True)
    start.close({"benchmark": "hashes", "packages": written})


if __name__ == "__main__":
    main()
