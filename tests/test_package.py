"""Laws of the package as users import it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import pcdnet


def imported_by(code: str) -> set[str]:
    """The modules that are loaded after some code has run in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_neither_torch_nor_numpy() -> None:
    assert not {"torch", "numpy", "matplotlib"} & imported_by("import pcdnet, pcdnet.cli")


def test_results_and_configurations_need_no_torch() -> None:
    code = "from pcdnet import Config, Decomposition, PcdnetError, Scene, SceneObject, __version__"
    assert "torch" not in imported_by(code)


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(pcdnet.__all__) == pcdnet.__all__
    for name in pcdnet.__all__:
        assert name in dir(pcdnet)
        assert getattr(pcdnet, name).__doc__
        assert getattr(pcdnet, name) is getattr(pcdnet, name)


def test_public_classes_are_those_of_their_modules() -> None:
    from pcdnet.errors import PcdnetError
    from pcdnet.model.network import PCDNet

    assert pcdnet.PCDNet is PCDNet
    assert pcdnet.PcdnetError is PcdnetError


def test_the_version_is_that_of_the_installed_package() -> None:
    assert pcdnet.__version__ == version("pcdnet")


def test_other_names_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="'pcdnet' has no attribute 'PCDnet'"):
        pcdnet.PCDnet  # noqa: B018


ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINNED = re.compile(r"([a-z0-9-]+)==([^ ]+) --hash=sha256:[0-9a-f]{64}")


def test_every_supported_python_has_a_classifier_and_is_tried_by_the_hosted_checks() -> None:
    classified = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)}
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    assert classified == {"3.11", "3.12", "3.13"} == set(jobs["test"]["strategy"]["matrix"]["python"])
    assert min(classified) == PROJECT["requires-python"].removeprefix(">=")


def test_the_hosted_checks_are_the_commands_of_the_readme_and_need_no_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    commands = {step["run"].split(" PYTHON=")[0] for job in jobs.values() for step in job["steps"] if "run" in step}
    readme, targets = (ROOT / "README.md").read_text(encoding="utf-8"), (ROOT / "Makefile").read_text(encoding="utf-8")
    assert commands == {"make test", "make demo"}
    assert all(f"\n{command} " in readme and f"\n{command.split()[1]}:" in targets for command in commands)
    assert "secrets" not in text


def test_the_citation_has_what_its_format_requires_and_is_of_this_version() -> None:
    # What the schema of version 1.2.0 of the Citation File Format requires, and what it knows of those used here.
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    known = {"cff-version", "message", "title", "authors", "type", "abstract", "version", "license", "keywords"}
    assert cited.keys() <= known | {"preferred-citation"}
    assert (cited["cff-version"], cited["type"], cited["title"]) == ("1.2.0", "software", PROJECT["name"])
    assert (str(cited["version"]), cited["license"]) == (PROJECT["version"], PROJECT["license"])
    paper = cited["preferred-citation"]
    assert {"type", "title", "authors"} <= paper.keys()
    assert paper["type"] == "conference-paper"
    assert all({"family-names", "given-names"} <= author.keys() for author in paper["authors"])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(str(paper[key]) in readme for key in ("title", "url", "year", "collection-title"))


@pytest.mark.parametrize("path", sorted((ROOT / "hashes").glob("*.txt")), ids=lambda path: path.name)
def test_hashes_name_one_file_of_every_package_that_is_needed_at_its_pinned_version(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = {match[1]: match[2] for line in lines if (match := PINNED.fullmatch(line))}
    assert len(found) == len(lines)
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(found[name].partition("+")[0] == version for name, version in pins if name in found)
    assert {re.split("[<>=]", need)[0] for need in PROJECT["dependencies"]} <= found.keys()
    assert ("+cpu" in found["torch"]) == path.stem.endswith("-cpu")


def test_models_and_pages_are_in_the_packages_data() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    home = ROOT / "src" / "pcdnet"
    packed = {path for pattern in data["pcdnet"] for path in home.glob(pattern) if path.is_file()}
    lying = {path for path in home.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert packed >= {path for path in lying if "__pycache__" not in path.parts}
