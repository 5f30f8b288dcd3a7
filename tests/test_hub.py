"""Laws of models on the Hugging Face Hub: what is pushed is found again, and what strangers send is checked.

The Hub's own client speaks to a stand-in.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcdnet
from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.hub import MOST, Address, fetched
from pcdnet.origin import Origin
from pcdnet.output.card import MARK
from pcdnet.output.push import prepare
from pcdnet.run import RunFolder
from tests.hub import TOKEN, Hub, Repository, serving
from tests.runs import true_run

pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the client's own
HERE = "me/coins"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A stand-in to which this process is logged in, and an empty cache."""
    from huggingface_hub import close_session, constants

    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    # What is not LFS needs servers of its own.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    with serving() as stand_in:
        monkeypatch.setenv("HF_ENDPOINT", stand_in.url)
        yield stand_in
        close_session()


@pytest.fixture
def pushed(hub: Hub, tmp_path: Path) -> Hub:
    """The same with a model in it."""
    (tmp_path / "pushed").mkdir()
    prepare(true_run(tmp_path / "run"), tmp_path / "pushed")
    files = {path.name: path.read_bytes() for path in (tmp_path / "pushed").iterdir()}
    hub.repositories[HERE] = Repository()
    hub.repositories[HERE].commit({**files, "README.md": f"---\n---\n{MARK}\n".encode()})
    return hub


def test_a_run_that_is_pushed_is_loaded_by_its_address_and_finds_the_same(hub: Hub, tmp_path: Path) -> None:
    run = true_run(tmp_path / "run")
    run.merge([0, 3], "L")
    address = pcdnet.push(run, HERE)
    assert address == f"{hub.url}/{HERE}/commit/{hub.repositories[HERE].main}"
    images = generate(count=3, seed=1).images
    model, copy = pcdnet.load(run.path), pcdnet.load(f"hf:{HERE}")
    for found, again in zip(model.decompose_all(images), copy.decompose_all(images), strict=True):
        assert found.to_dict() == again.to_dict()
    assert list(copy.names) == list(model.names)
    assert RunFolder.open(f"hf:{HERE}").origin.data == "tetrominoes"


def test_a_model_made_in_python_can_be_pushed(hub: Hub, tmp_path: Path) -> None:
    model = true_run(tmp_path / "run").load_model()
    model.learned_size = (35, 35)
    pcdnet.push(model, HERE)
    assert pcdnet.load(f"hf:{HERE}").learned_size == (35, 35)


def test_no_path_of_this_machine_and_nothing_else_than_a_model_is_pushed(hub: Hub, tmp_path: Path) -> None:
    run = true_run(tmp_path / "run", Origin(data=str(tmp_path / "photos"), fingerprint=None))
    run.log(step=1)
    pcdnet.push(run, HERE)
    files = hub.repositories[HERE].files
    model = {"config.toml", "weights.safetensors", "names.toml", "origin.json"}
    assert files.keys() == {".gitattributes", "README.md", "prototypes.png", *model}
    assert not [name for name, content in files.items() if str(tmp_path).encode() in content]


def test_the_card_is_one_that_the_hub_s_own_client_reads(hub: Hub, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    run = true_run(tmp_path / "run")
    run.merge([0, 3], "*L* <b>")
    pcdnet.push(run, HERE, licence="cc-by-4.0", scores=pcdnet.evaluate(run, generate(count=4, seed=1)))
    text = hub.repositories[HERE].files["README.md"].decode()
    about: Any = ModelCard(text).data
    assert about.library_name == "pcdnet"
    assert about.license == "cc-by-4.0"
    assert "object-discovery" in about.tags
    assert about.eval_results is not None
    assert {result.metric_type: result.metric_value for result in about.eval_results}["fg_ari"] == 1.0
    assert f"pcdnet decompose hf:{HERE}" in text
    assert "| 3 | \\*L\\* &lt;b&gt; |" in text
    assert "(prototypes.png)" in text


def test_a_card_says_no_licence_that_was_not_given(hub: Hub, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    pcdnet.push(true_run(tmp_path / "run"), HERE)
    about: Any = ModelCard(hub.repositories[HERE].files["README.md"].decode()).data
    assert about.license is None
    assert about.eval_results is None


def test_pushed_again_a_model_takes_the_place_of_the_former_but_not_that_of_a_card_of_one_s_own(
    pushed: Hub, tmp_path: Path
) -> None:
    repository = pushed.repositories[HERE]
    first = repository.files["README.md"]
    pcdnet.push(true_run(tmp_path / "other").load_model(), HERE, licence="mit")
    assert repository.files["README.md"] != first
    assert "origin.json" not in repository.files  # of the former model
    repository.commit({**repository.files, "README.md": b"mine"})
    pcdnet.push(true_run(tmp_path / "third"), HERE)
    assert repository.files["README.md"] == b"mine"


def test_revisions_are_kept_side_by_side_and_a_commit_needs_no_network(pushed: Hub, tmp_path: Path) -> None:
    first = pushed.repositories[HERE].main
    run = true_run(tmp_path / "named")
    run.merge([0, 3], "L")
    pcdnet.push(run, HERE)
    assert pcdnet.load(f"hf:{HERE}").names[0] == "L"
    assert pcdnet.load(f"hf:{HERE}@{first}").names[0] == "prototype 0"
    pushed.asked.clear()
    assert pcdnet.load(f"hf:{HERE}@{first}").names[0] == "prototype 0"
    assert pushed.asked == []


def test_what_is_kept_is_not_fetched_again_and_is_used_without_a_network(
    pushed: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = fetched(f"hf:{HERE}")
    assert [line for line in pushed.asked if "/resolve/" in line] != []
    pushed.asked.clear()
    assert fetched(f"hf:{HERE}") == place
    assert [line for line in pushed.asked if "/resolve/" in line] == []
    monkeypatch.setenv("HF_ENDPOINT", nobody())
    capsys.readouterr()
    assert fetched(f"hf:{HERE}") == place
    assert capsys.readouterr().err == (
        f"note: the Hub cannot be reached; hf:{HERE} is used as it was when it was fetched last\n"
    )


def test_without_a_network_one_sentence_says_so(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", nobody())
    assert main(["report", f"hf:{HERE}"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"pcdnet: the Hub cannot be reached for hf:{HERE} (")
    assert len(said.splitlines()) == 1


def test_only_files_of_a_run_are_asked_for_whatever_else_is_there(pushed: Hub) -> None:
    repository = pushed.repositories[HERE]
    others = {"weights.pkl": b"cos\nsystem", "../../evil.toml": b"", "config.py": b"", "sub/config.toml": b""}
    repository.commit({**repository.files, **others})
    place = fetched(f"hf:{HERE}")
    assert {path.name for path in place.iterdir()} <= set(MOST)
    asked = {line.rpartition("/")[2] for line in pushed.asked if "/resolve/" in line}
    assert asked <= set(MOST)


def test_files_that_are_larger_than_they_can_be_are_not_fetched(pushed: Hub) -> None:
    pushed.sizes["weights.safetensors"] = 2**40
    with pytest.raises(PcdnetError, match=r"has 1099511627776 bytes, and at most 1024 MiB are read"):
        fetched(f"hf:{HERE}")
    assert [line for line in pushed.asked if "/resolve/" in line] == []


@pytest.mark.parametrize("name", ["config.toml", "weights.safetensors"])
@pytest.mark.parametrize("lie", ["longer", "shorter", "other"])
def test_files_that_are_not_what_the_hub_says_are_refused_and_not_kept(
    pushed: Hub, tmp_path: Path, name: str, lie: str
) -> None:
    true = pushed.repositories[HERE].files[name]
    pushed.contents[name] = {"longer": true + b"#", "shorter": true[:-1], "other": true[:-1] + b"#"}[lie]
    with pytest.raises(PcdnetError, match=name):
        fetched(f"hf:{HERE}")
    kept = [path for path in (tmp_path / "cache").rglob(name) if path.is_file()]
    assert kept == []
    pushed.contents.clear()
    assert pcdnet.load(f"hf:{HERE}").config.num_prototypes == 19


def test_a_hub_that_names_a_commit_no_hub_would_name_writes_nowhere(pushed: Hub, tmp_path: Path) -> None:
    pushed.commit = "../../../outside"
    with pytest.raises(PcdnetError, match="is no Hub"):
        fetched(f"hf:{HERE}")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "text", ["hf:", "hf:coins", "hf:me/../you", "hf:me/..", "hf:/etc/passwd", "hf:me/coins@../x", "hf:me/a/b", "hf:é/x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(PcdnetError, match="is no address on the Hub"):
        Address.parse(text)


def test_repositories_that_are_not_there_or_hold_other_things_are_named(pushed: Hub) -> None:
    with pytest.raises(PcdnetError, match="shows no me/nothing to you"):
        fetched("hf:me/nothing")
    with pytest.raises(PcdnetError, match="has no revision 'v9'"):
        fetched(f"hf:{HERE}@v9")
    pushed.repositories[HERE].commit({"model.bin": b""})
    with pytest.raises(PcdnetError, match=r"is no model of pcdnet: it has no config\.toml"):
        fetched(f"hf:{HERE}")


def test_who_may_not_write_is_told_to_log_in(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_another")
    true_run(tmp_path / "run")
    assert main(["push", str(tmp_path / "run"), HERE]) == 1
    assert "hf auth login" in capsys.readouterr().err
    assert hub.repositories == {}


def test_the_command_pushes_privately_and_other_commands_take_the_address(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    true_run(tmp_path / "run")
    assert main(["push", str(tmp_path / "run"), HERE, "--private", "--licence", "mit"]) == 0
    assert hub.repositories[HERE].private
    assert "next: pcdnet decompose hf:me/coins" in capsys.readouterr().out
    np.savez(tmp_path / "scenes.npz", image=generate(count=2, seed=1).images)
    scenes, out = str(tmp_path / "scenes.npz"), str(tmp_path / "out")
    assert main(["decompose", f"hf:{HERE}", scenes, "--out", out]) == 0
    assert main(["eval", f"hf:{HERE}", "--data", scenes]) == 0
    assert main(["figure", f"hf:{HERE}", "--kind", "prototypes", "--out", str(tmp_path / "figure.svg")]) == 0


def test_a_copy_of_a_model_of_the_hub_stays_as_it_is(pushed: Hub, tmp_path: Path) -> None:
    place = fetched(f"hf:{HERE}")
    before = {path.name: hashlib.sha256(path.read_bytes()).digest() for path in place.iterdir()}
    with pytest.raises(PcdnetError, match="stays as it is"):
        RunFolder.open(f"hf:{HERE}").merge([0, 3], "L")
    assert {path.name: hashlib.sha256(path.read_bytes()).digest() for path in place.iterdir()} == before
    assert main(["models", f"hf:{HERE}", "--out", str(tmp_path / "mine")]) == 0
    assert RunFolder.open(tmp_path / "mine").merge([0, 3], "L")[3] == "L"


def nobody() -> str:
    """An address of this machine at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
