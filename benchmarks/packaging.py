"""Packaging: wheel and sdist of the last commit, built, installed in fresh environments elsewhere, and tried there.

usage: python -m benchmarks.packaging [--steps STEP...] [--pythons PYTHON...] [--extras NAME...]

fresh     from nothing to a first decomposition: an environment, the wheel, and one command; timed
sdist     the sdist gives the same files as the wheel, and installs without the repository
hashes    what hashes/ names installs with --require-hashes, and pcdnet works with nothing else
extras    every extra installs beside the wheel, and what it is for can be imported
others    under each other interpreter of --pythons the wheel installs, every module compiles, and those that need no
          torch are imported; pip is asked whether it finds all that is needed, torch included

What pip has in its cache is not downloaded again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.hashes import CONSTRAINTS, tag_of
from benchmarks.provenance import ROOT, Start

BUILD = """
import sys
from setuptools import build_meta
out = sys.argv[1]  # which the first build changes
build_meta.build_wheel(out)
build_meta.build_sdist(out)
"""
IMPORT = """
import importlib, json, pkgutil, sys
import pcdnet
done, missing, broken = 0, {}, {}
for module in pkgutil.walk_packages(pcdnet.__path__, "pcdnet."):
    try:
        importlib.import_module(module.name)
        done += 1
    except ModuleNotFoundError as error:
        missing.setdefault(error.name.partition(".")[0], []).append(module.name)
    except Exception as error:
        broken[module.name] = repr(error)
print(json.dumps({"imported": done, "not_for_want_of": {name: len(found) for name, found in missing.items()},
                  "broken": broken}))
"""
USABLE = """
import importlib, re, sys
from importlib.metadata import packages_distributions
names = {}
for module, owners in packages_distributions().items():
    for owner in owners:
        names.setdefault(re.sub(r"[-_.]+", "-", owner).lower(), []).append(module)
for owner in sys.argv[1:]:
    public = [name for name in names.get(owner, []) if not name.startswith("_") and "/" not in name]
    assert public, f"{owner} is not installed"
    for name in sorted(public, key=len)[:1]:
        importlib.import_module(name)
"""


@dataclass(frozen=True)
class Place:
    """A folder outside the repository, with what was built."""

    home: Path
    wheel: Path
    sdist: Path

    def environment(self, name: str, python: str = sys.executable) -> Path:
        """A fresh environment; its interpreter."""
        run([python, "-m", "venv", str(self.home / name)], self.home)
        return self.home / name / "bin" / "python"


def run(words: list[str], cwd: Path) -> str:
    """What a command prints; it knows nothing of this repository."""
    known = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=cwd, env=known, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)[:200]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def pip(python: Path, *words: str, cwd: Path) -> None:
    """Install something with the pinned versions."""
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words], cwd)


def build(home: Path) -> Place:
    """Wheel and sdist of the last commit; what is not committed does not count."""
    source, out = home / "source", home / "dist"
    source.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=source, input=packed, check=True)
    run([sys.executable, "-c", BUILD, str(out)], source)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return Place(home, wheel, sdist)


def contents(wheel: Path) -> dict[str, str]:
    """A digest of every file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def fresh(place: Place) -> dict[str, Any]:
    """From nothing to a first decomposition."""
    begun, busy = time.perf_counter(), busy_seconds()
    python = place.environment("fresh")
    pip(python, "-c", str(CONSTRAINTS), str(place.wheel), cwd=place.home)
    installed = time.perf_counter()
    found = {"install_seconds": round(installed - begun, 1), **first(python, place), "total_seconds": since(begun)}
    return {**found, "core_seconds": round(busy_seconds() - busy, 1)}


def first(python: Path, place: Place) -> dict[str, Any]:
    """The first commands that somebody runs; what they find."""
    begun, out = time.perf_counter(), place.home / f"results-{python.parents[1].name}"
    command = str(python.parent / "pcdnet")
    run([command, "decompose", "letters", "--out", str(out), "--format", "json,coco"], place.home)
    seconds = since(begun)
    found = [len(json.loads(line)["objects"]) for line in (out / "decompositions.jsonl").read_text().splitlines()]
    names = list(json.loads(run([command, "models", "--json"], place.home)))
    assert names, "models are listed"
    assert min(found, default=0) > 0, "objects are found"
    return {"decompose_seconds": seconds, "objects": sum(found), "models": names}


def sdist(place: Place) -> dict[str, Any]:
    """Whether the sdist is whole."""
    again = place.home / "again"
    with tarfile.open(place.sdist) as archive:
        archive.extractall(again, filter="data")
    (source,) = again.iterdir()
    run([sys.executable, "-c", BUILD, str(again / "dist")], source)
    (wheel,) = (again / "dist").glob("*.whl")
    ours, theirs = contents(place.wheel), contents(wheel)
    assert ours.keys() == theirs.keys(), sorted(ours.keys() ^ theirs.keys())
    differ = [name for name in ours if ours[name] != theirs[name] and not name.endswith("/RECORD")]
    assert not differ, differ
    return {"sdist_bytes": place.sdist.stat().st_size, "files": len(ours)}


def hashes(place: Place) -> dict[str, Any]:
    """Whether what is written in hashes/ is enough, for the PyTorch that pip finds for this interpreter."""
    python, (tag, _) = place.environment("hashes"), tag_of(sys.executable)
    pinned = ROOT / "hashes" / f"{tag}-cpu.txt"
    pip(python, "--require-hashes", "-r", str(pinned), cwd=place.home)
    pip(python, "--no-deps", str(place.wheel), cwd=place.home)
    return {"file": f"hashes/{pinned.name}", **first(python, place)}


def extras(place: Place, names: list[str]) -> dict[str, Any]:
    """Whether every extra installs, one on top of the other, and can be used."""
    python, needs = place.environment("extras"), extra_needs(place)
    pip(python, "-c", str(CONSTRAINTS), str(place.wheel), cwd=place.home)
    done = {}
    for name in names or needs:
        begun = time.perf_counter()
        pip(python, "-c", str(CONSTRAINTS), f"{place.wheel}[{name}]", cwd=place.home)
        owners = [re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", need)[0]).lower() for need in needs[name]]
        run([str(python), "-c", USABLE, *owners], place.home)
        done[name] = since(begun)
    run([str(python), "-m", "pip", "check"], place.home)
    return {"seconds": done}


def extra_needs(place: Place) -> dict[str, list[str]]:
    """What every extra for users needs."""
    project = tomllib.loads((place.home / "source" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs: dict[str, list[str]] = project["optional-dependencies"]
    return {name: needed for name, needed in needs.items() if name != "dev"}


def others(place: Place, pythons: list[str]) -> dict[str, Any]:
    """What holds under other interpreters."""
    done = {}
    for base in pythons:
        tag, _ = tag_of(base)
        python = place.environment(tag, base)
        pins = (ROOT / "hashes" / f"{tag}.txt").read_text(encoding="utf-8")
        lines = [line for line in pins.splitlines() if not re.match(r"#|torch=|nvidia-|cuda-|triton=", line)]
        (place.home / f"{tag}.txt").write_text("\n".join(lines), encoding="utf-8")
        pip(python, "--require-hashes", "-r", str(place.home / f"{tag}.txt"), cwd=place.home)
        pip(python, "--no-deps", str(place.wheel), cwd=place.home)
        command = str(python.parent / "pcdnet")
        run([str(python), "-m", "compileall", "-q", "-f", str(python.parents[1] / "lib")], place.home)
        listed = json.loads(run([command, "models", "--json"], place.home))
        run([command, "train", "--help"], place.home)
        imported = json.loads(run([str(python), "-c", IMPORT], place.home).splitlines()[-1])
        assert not imported["broken"], imported["broken"]
        pip(python, "--dry-run", "-c", str(CONSTRAINTS), str(place.wheel), cwd=place.home)
        done[tag] = {**imported, "models": list(listed), "resolves_with_torch": True}
    return done


def busy_seconds() -> float:
    """Processor time of all commands so far: where others share the machine, the clock misleads."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def since(begun: float) -> float:
    """Seconds since then."""
    return round(time.perf_counter() - begun, 1)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packaging", description=__doc__, formatter_class=form)
    steps = ("fresh", "sdist", "hashes", "extras", "others")
    parser.add_argument("--steps", nargs="+", default=steps, choices=steps)
    parser.add_argument("--pythons", nargs="+", default=[], help="other interpreters, 3.12 and 3.13 for example")
    parser.add_argument("--extras", nargs="+", default=[], help="extras to install; by default all")
    return parser


def main() -> None:
    """Print a line of JSON."""
    start, arguments = Start.now(), parser().parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = build(Path(temporary))
        figures: dict[str, Any] = {"wheel_bytes": place.wheel.stat().st_size}
        steps: dict[str, Callable[[], dict[str, Any]]] = {
            "fresh": lambda: fresh(place),
            "sdist": lambda: sdist(place),
            "hashes": lambda: hashes(place),
            "extras": lambda: extras(place, arguments.extras),
            "others": lambda: others(place, arguments.pythons),
        }
        for step in arguments.steps:
            figures[step] = steps[step]()
            print(json.dumps({step: figures[step]}), file=sys.stderr, flush=True)
    start.close({"benchmark": "packaging", **figures})


if __name__ == "__main__":
    main()
