"""Laws of damaged run folders: what is not as it was written is refused in one sentence, never used in silence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import pcdnet
from pcdnet.cli import main
from pcdnet.config import Config
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.model.storage import load_words, save_tensors
from pcdnet.run import LOCK, RunFolder
from pcdnet.training.verdict import kept_verdict

Change = Callable[[dict[str, torch.Tensor], dict[str, str]], object]
Capture = pytest.CaptureFixture[str]
IMAGES = generate(20, seed=1).images
TINY: dict[str, Any] = {
    "train.steps": 4,
    "train.batch": 4,
    "train.validate_every": 2,
    "model.num_prototypes": 3,
    "model.restarts": 0,
}
"""Changes to the preset `tetrominoes` with which training takes a moment."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after its third step of four."""
    folder = tmp_path_factory.mktemp("stopped")
    np.savez(folder / "images.npz", image=IMAGES)
    asked = iter([False, False, True])
    with pytest.raises(Interrupted):
        pcdnet.fit(
            *(folder / "images.npz", "tetrominoes"),
            changes=TINY,
            quiet=True,
            out=folder / "run",
            stop=lambda: next(asked),
        )
    return folder / "run"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of it, with names and a verdict."""
    path = shutil.copytree(made, tmp_path / "run")
    RunFolder.open(path).merge([0, 2], "spade")
    return path


def resumed(run: Path) -> pcdnet.PCDNet:
    """The run brought to its end."""
    return pcdnet.fit(resume=True, out=run, quiet=True)


def used(run: Path) -> None:
    """All that reads the files of a run."""
    pcdnet.load(run)
    kept_verdict(RunFolder.open(run))
    resumed(run)


def flipped(content: bytes, place: int) -> bytes:
    """The content with one bit changed."""
    return bytes([*content[:place], content[place] ^ 4, *content[place + 1 :]])


@pytest.mark.parametrize(
    "name", ["config.toml", "origin.json", "names.toml", "weights.safetensors", "state.safetensors"]
)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.999])
def test_a_file_with_a_wrong_bit_or_without_its_end_is_refused(name: str, share: float, run: Path) -> None:
    sound = (run / name).read_bytes()
    place = int(share * len(sound))
    start = sound.index(b"\n") + 1 if name.endswith(".toml") else 0  # words of a comment may change
    wrong_bit = flipped(sound, start + int(share * (len(sound) - start)))
    for damaged in (wrong_bit, sound[:place], sound[:place] + bytes(len(sound) - place)):
        (run / name).write_bytes(damaged)
        with pytest.raises(PcdnetError) as caught:
            used(run)
        assert name in str(caught.value)
        assert "; " in str(caught.value)
    assert not (run / LOCK).exists()


@pytest.mark.parametrize("name", ["config.toml", "origin.json", "names.toml", "metrics.jsonl", "verdict.json"])
def test_what_is_no_file_or_has_no_end_is_neither_waited_for_nor_read(name: str, run: Path) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with nullcontext() if name == "verdict.json" else pytest.raises((PcdnetError, AssertionError), match="; |gone"):
        _read(run)
    (run / name).unlink()
    (run / name).touch()
    os.truncate(run / name, 2**40)
    with pytest.raises(PcdnetError, match=f"{name}.* MiB"):
        _read(run)


def _read(run: Path) -> None:
    """All the text of a run."""
    folder = RunFolder.open(run)
    assert folder.has_origin, "that it is gone is reported by whoever needs it"
    folder.names()
    folder.metrics()
    folder.verdict()


def test_weights_larger_than_memory_are_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("pcdnet.model.storage.safe_open", no_room)
    with pytest.raises(PcdnetError, match="weights.safetensors: it does not fit into memory; "):
        pcdnet.load(run)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.4, 0.9])
def test_a_verdict_with_a_wrong_bit_is_refused(share: float, run: Path) -> None:
    resumed(run)
    sound = (run / "verdict.json").read_bytes()
    (run / "verdict.json").write_bytes(flipped(sound, int(share * len(sound))))
    with pytest.raises(PcdnetError, match="verdict.json.*; delete it"):
        kept_verdict(RunFolder.open(run))
    (run / "verdict.json").write_bytes(sound.replace(b"checksum", b"chEcksum"))
    with pytest.raises(PcdnetError, match="verdict.json.*; delete it"):
        kept_verdict(RunFolder.open(run))


def test_bad_lines_of_the_metrics_are_skipped_counted_and_reported(run: Path, capsys: Capture) -> None:
    resumed(run)
    path, folder = run / "metrics.jsonl", RunFolder.open(run)
    sound, count = path.read_bytes(), len(folder.metrics())
    first, rest = sound.split(b"\n", 1)
    bad = [b"\xff\xfe", b"[3]", b"3", b'{"step": "3"}', b'{"loss": 1}', b"", first.replace(b"0", b"1"), b"[" * 10**5]
    bad += [first.replace(b"checksum", b"chEcksum")]
    bad += [b'{"step": %d}' % 10**400, b'{"step": 1, "loss": %d}' % 10**400]
    old = (b'{"step": 1, "seconds": "x"}', b'{"step": 1, "event": "split"}', b'{"step": 1, "validation": 3}')
    path.write_bytes(b"\n".join([*bad, *old, rest]) + b'{"step": 9, "lo')
    assert folder.read_metrics()[1] == len(bad) + len(old)
    assert len(folder.metrics()) == count - 1
    pcdnet.report(run, count=2)
    assert f"note: {len(bad) + len(old)} lines of the metrics are damaged or lost" in capsys.readouterr().err
    folder.rewind(10**6)
    assert "were damaged or lost, and are missing from now on" in capsys.readouterr().err
    path.write_bytes(sound[: len(sound) // 2])
    assert folder.read_metrics()[1] == count - len(folder.metrics()) > 0
    path.write_bytes(sound)
    assert folder.read_metrics()[1] == 0


def edited(path: Path, change: Change, *, seal: bool) -> None:
    """Change the tensors and words of a file, and write it with a checksum that fits, or none as version 0.1."""
    tensors, words = load_file(path), load_words(path)
    change(tensors, words)
    if seal:
        save_tensors(path, tensors, words)
    else:
        save_file(tensors, path, words)


STATES: dict[str, Change] = {
    "no words": lambda _, words: words.clear(),
    "words that are no JSON": lambda _, words: words.update(state="{"),
    "words that are a list": lambda _, words: words.update(state="[]"),
    "no step": lambda _, words: words.update(state='{"seconds": 1.0, "best": -1.0}'),
    "endless steps": lambda _, words: words.update(state='{"step": 1e999, "seconds": 1.0, "best": -1.0}'),
    "too many steps": lambda _, words: words.update(state='{"step": 1%s, "seconds": 1.0, "best": -1.0}' % ("0" * 30)),
    "half a step": lambda _, words: words.update(state='{"step": 1.5, "seconds": 1.0, "best": -1.0}'),
    "no number": lambda _, words: words.update(state='{"step": 1, "seconds": "1", "best": -1.0}'),
    "endless time": lambda _, words: words.update(state='{"step": 1, "seconds": 1%s, "best": -1.0}' % ("0" * 400)),
    "NaN": lambda _, words: words.update(state='{"step": 1, "seconds": 1.0, "best": NaN}'),
    "no masks": lambda tensors, _: tensors.pop("model.masks"),
    "half a moment": lambda tensors, _: tensors.pop("optimizer.masks.exp_avg"),
    "no health": lambda tensors, _: tensors.pop("health.usage"),
    "short health": lambda tensors, _: tensors.update({"health.value": torch.zeros(2)}),
    "health of whole numbers": lambda tensors, _: tensors.update({"health.error": torch.zeros(3, dtype=torch.long)}),
    "a flat moment": lambda tensors, _: tensors.update({"optimizer.masks.exp_avg_sq": torch.zeros(3)}),
    "many steps": lambda tensors, _: tensors.update({"optimizer.masks.step": torch.zeros(3)}),
    "other weights": lambda tensors, _: tensors.update({"model.masks": tensors["model.masks"].double()}),
    "infinite moments": lambda tensors, _: tensors["optimizer.masks.exp_avg"].fill_(torch.inf),
    "no steps of the optimizer": lambda tensors, _: tensors["optimizer.masks.step"].fill_(0.0),
    "steps that nobody did": lambda tensors, _: tensors["optimizer.masks.step"].fill_(1e9),
    "squares below 0": lambda tensors, _: tensors["optimizer.masks.exp_avg_sq"].fill_(-1.0),
    "something else": lambda tensors, _: tensors.update(more=torch.zeros(3)),
}


def test_words_without_end_are_refused(run: Path) -> None:
    deep = "[" * 10**5
    edited(run / "state.safetensors", lambda _, words: words.update(state=deep), seal=True)
    RunFolder.open(run).read_metrics()
    with pytest.raises(PcdnetError, match=r"state\.safetensors: state has no end of brackets; train anew"):
        RunFolder.open(run).load_state()


@pytest.mark.parametrize("change", STATES)
@pytest.mark.parametrize("seal", [True, False])
def test_a_state_that_is_not_what_training_needs_is_refused(change: str, seal: bool, run: Path) -> None:
    edited(run / "state.safetensors", STATES[change], seal=seal)
    with pytest.raises(PcdnetError, match=r"state\.safetensors.*; "):
        resumed(run)
    assert len(pcdnet.runs(run.parent)) >= 1  # damaged or not, it is listed


WEIGHTS: dict[str, Change] = {
    "doubles": lambda tensors, _: tensors.update(masks=tensors["masks"].double()),
    "halves": lambda tensors, _: tensors.update(prototypes=tensors["prototypes"].half()),
    "more prototypes": lambda tensors, _: tensors.update(prototypes=torch.zeros(4, 25, 25)),
    "values that are none": lambda _, words: words.update(values='"a"'),
    "values without end": lambda _, words: words.update(values="[0, 1%s]" % ("0" * 400)),
    "values from nowhere": lambda _, words: words.update(values="[NaN, 1.0]"),
    "values that fall": lambda _, words: words.update(values="[1.0, 0.5]"),
    "a size that is none": lambda _, words: words.update(size="[1.5, 2]"),
    "words that are no JSON": lambda _, words: words.update(values="{"),
    "words that nobody knows": lambda _, words: words.update(pcdneT="{}"),
}


@pytest.mark.parametrize("change", WEIGHTS)
@pytest.mark.parametrize("seal", [True, False])
def test_weights_of_another_type_or_shape_or_with_odd_words_are_refused(change: str, seal: bool, run: Path) -> None:
    edited(run / "weights.safetensors", WEIGHTS[change], seal=seal)
    with pytest.raises(PcdnetError, match=r"weights\.safetensors.*; "):
        pcdnet.load(run)


@pytest.mark.parametrize("name", ["weights.safetensors", "state.safetensors"])
def test_files_without_a_checksum_are_those_of_version_0_1(name: str, run: Path, made: Path, tmp_path: Path) -> None:
    edited(run / name, lambda *_: None, seal=False)
    whole = resumed(shutil.copytree(made, tmp_path / "other"))
    for weights, expected in zip(resumed(run).parameters(), whole.parameters(), strict=True):
        assert torch.equal(weights, expected)


def test_a_file_is_the_same_to_the_byte_whenever_it_is_written(tmp_path: Path) -> None:
    words = {name: name for name in "abcdefgh"}
    for name in ("one", "two"):
        save_tensors(tmp_path / name, {"x": torch.ones(3), "y": torch.zeros(())}, words)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert load_words(tmp_path / "one") == words


@pytest.mark.parametrize("text", ["", "[model]\n", "# checks"])
def test_a_configuration_that_lost_a_part_is_not_filled_with_defaults(text: str, run: Path) -> None:
    whole = RunFolder.open(run).config.to_toml()
    (run / "config.toml").write_text(whole)  # as version 0.1 wrote it
    assert RunFolder.open(run).config.to_toml() == whole
    lines = whole.splitlines(keepends=True)
    for part in (text, "".join(lines[:10]), whole[: whole.index("[train]")], "".join(lines[:-2])):
        (run / "config.toml").write_text(part)
        with pytest.raises(PcdnetError, match=r"config\.toml has lost \d+ fields, .*; restore it, or train anew"):
            RunFolder.open(run)
    (run / "config.toml").write_text(whole.replace("num_prototypes = 3", "num_prototypes = 1000000000"))
    with pytest.raises(PcdnetError, match="num_prototypes=1000000000 cannot be used; use 1 or more, up to 4096"):
        RunFolder.open(run)


def test_a_file_of_a_later_version_lacks_no_field_and_one_of_an_earlier_may(run: Path) -> None:
    text = (run / "config.toml").read_text()
    assert text.startswith("# checksum ")
    assert Config.from_toml(text) == Config.load(run / "config.toml") == RunFolder.open(run).config
    older = [line for line in text.splitlines(keepends=True) if not line.startswith(("# ", "rounds =", "settle ="))]
    (run / "config.toml").write_text("".join(older))
    assert RunFolder.open(run).config == Config.from_toml(text)


def test_an_origin_that_is_something_else_is_refused(run: Path) -> None:
    resumed(run)
    (run / "origin.json").write_bytes((run / "verdict.json").read_bytes())
    with pytest.raises(PcdnetError, match=r"origin\.json: it has no 'crop'; delete it, and name the data"):
        RunFolder.open(run)
    (run / "origin.json").write_text(json.dumps(dict.fromkeys(("data", "minutes", "crop", "resize", "stride"))))
    with pytest.raises(PcdnetError, match="it has no 'grey'"):
        RunFolder.open(run)


@pytest.mark.parametrize("size", [[0, 0], [35, -1], [10**400, 3], [2.5, 3]])
def test_a_size_that_no_image_has_is_refused(size: list[float], run: Path) -> None:
    edited(run / "weights.safetensors", lambda _, words: words.update(size=json.dumps(size)), seal=True)
    with pytest.raises(PcdnetError, match=r"weights\.safetensors: .*; it belongs to another config.toml"):
        pcdnet.load(run)
    words = json.loads((run / "origin.json").read_text())
    words.pop("checksum")
    (run / "origin.json").write_text(json.dumps(words | {"size": size}))
    with pytest.raises(PcdnetError, match=r"origin\.json: .*; delete it"):
        RunFolder.open(run)


@pytest.mark.parametrize("name", ["a\\u0000b", "\\ud800", ""])
def test_an_origin_whose_data_no_file_can_be_called_is_refused(name: str, run: Path) -> None:
    resumed(run)
    words = json.loads((run / "origin.json").read_text())
    words.pop("checksum")
    (run / "origin.json").write_text(json.dumps(words | {"data": "NAME"}).replace("NAME", name))
    with pytest.raises(PcdnetError, match=r"origin\.json: data is .*, which no file can be called; delete it"):
        RunFolder.open(run)


def test_names_that_people_edit_are_read_once_they_removed_the_checksum(run: Path) -> None:
    text = (run / "names.toml").read_text()
    (run / "names.toml").write_text(text.replace("spade", "shovel"))
    with pytest.raises(PcdnetError, match=r"names\.toml cannot be used: it is not as.*remove its first line"):
        pcdnet.load(run)
    (run / "names.toml").write_text(text.replace("spade", "shovel").partition("\n")[2])
    assert pcdnet.load(run).names[2] == "shovel"
    (run / "names.toml").write_text("")
    with pytest.raises(PcdnetError, match=r"names\.toml holds other things than names"):
        pcdnet.load(run)


def test_a_best_model_that_is_gone_is_missed(run: Path, capsys: Capture) -> None:
    (run / "weights.safetensors").unlink()
    assert main(["train", "--resume", "--out", str(run)]) == 1
    said = capsys.readouterr().err
    assert "weights.safetensors is gone, the best model so far; restore it, or start anew with --force" in said


def test_an_origin_without_end_is_refused(run: Path) -> None:
    (run / "origin.json").write_text("[" * 100_000)
    with pytest.raises(PcdnetError, match=r"origin\.json: .*; delete it, and name the data"):
        RunFolder.open(run)
