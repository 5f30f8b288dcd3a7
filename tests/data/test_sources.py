"""Laws of the registry: every source is recognised, named wherever sources are listed, and cheap to ask about."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pcdnet.cli import main
from pcdnet.config import PRESETS
from pcdnet.data import sources
from pcdnet.data.inputs import find_inputs
from pcdnet.data.opening import open_data, training_data
from pcdnet.data.sources import FILES, GENERATED, SOURCES, Source, is_generated, source_of, usable, usual_preset
from pcdnet.data.view import View
from pcdnet.scene import Scenes


@pytest.mark.parametrize(
    ("name", "source", "preset"),
    [
        ("tetrominoes", "tetrominoes", "tetrominoes"),
        ("letters", "letters", None),
        ("space-invaders", "space-invaders", "space-invaders"),
        ("multi-dsprites", "multi-dsprites", "multi-dsprites"),
        ("symbols", "symbols", None),
        ("symbols:quarter", "symbols:TURNED", None),
        ("symbols:", "symbols:TURNED", None),
        ("atari:pong", "atari:GAME", None),
        ("atari:", "atari:GAME", None),
        (".", "folder", None),
        ("a/b.PNG", "pictures", None),
        ("a.b.mp4", "video", None),
        ("a.gif", "video", None),
        ("a.npz", "npz", None),
        ("A.TFRECORDS", "tetromino-records", "tetrominoes"),
        ("a.tfrecord", "tetromino-records", "tetrominoes"),
        ("", None, None),
        ("tetris", None, None),
        ("tetrominoes:1", None, None),
        ("missing/folder", None, None),
        ("x" * 5000, None, None),
        ("zero\0", None, None),
    ],
)
def test_a_name_has_one_source_and_its_usual_preset(name: str, source: str | None, preset: str | None) -> None:
    for given in (name, Path(name)) if name else (name,):
        found = source_of(given)
        assert (None if found is None else found.name) == source
        assert usual_preset(given) == preset
        assert is_generated(given) == (source in {each.name for each in GENERATED})


@pytest.mark.parametrize("holds", ["a.png", "train/b.jpg"])
def test_a_folder_of_pictures_called_like_generated_data_is_meant(
    holds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    assert is_generated("letters")  # a run of that name, for example
    (tmp_path / "letters" / holds).parent.mkdir(exist_ok=True)
    (tmp_path / "letters" / holds).touch()
    found = source_of("letters")
    assert found is not None
    assert found.name == "folder"


def test_presets_of_sources_exist() -> None:
    assert {source.preset for source in SOURCES} <= {None, *PRESETS}


def test_every_file_has_what_its_source_needs() -> None:
    needed = {"generate": GENERATED, "read": FILES, "images": FILES, "count": FILES}
    for function, every in needed.items():
        assert all(callable(getattr(source._module(), function)) for source in every)
    assert FILES[0].name == "folder"
    assert set(SOURCES) == {*FILES, *GENERATED}


def test_a_new_source_is_a_file_and_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def images(path: Path, *, stride: int = 1) -> Iterator[tuple[int, np.ndarray]]:
        yield from ((n, np.full((4, 5, 1), n, np.uint8)) for n in range(0, 20, stride))

    def read(path: Path, *, limit: int | None, view: View) -> Scenes:
        made = np.stack([image for _, image in images(path)])
        return view.scenes(Scenes(images=made[: view.chosen(limit).stop], name=path.name))

    file = SimpleNamespace(images=images, read=read, count=lambda _: 20)
    monkeypatch.setitem(sys.modules, "pcdnet.data.made_up", file)
    monkeypatch.setattr(sources, "SOURCES", (*SOURCES, Source("made-up", "a file of ours", (".ours",))))
    path = tmp_path / "a.ours"
    path.touch()
    assert open_data(path, count=3, seed=0, view=View(stride=2)).images[:, 0, 0, 0].tolist() == [0, 2, 4]
    assert [len(scenes) for scenes in training_data(path, seed=0)] == [18, 2]
    (one,) = find_inputs([str(tmp_path / "*")])
    assert [one.image_name(number) for number, _ in one.images()][-1] == f"{path}#19"
    assert one.count() == 20


def helped(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command says of itself, without the frame around it; on a wider screen there are several frames."""
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("train", SOURCES),
        ("report", SOURCES),
        ("bench", SOURCES),
        ("decompose", FILES),
        ("data", GENERATED),
    ],
)
def test_the_help_names_every_source(
    command: str, named: list[object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = helped(command, capsys, monkeypatch)
    for source in SOURCES:
        assert (source.words in text) == (source in named), source.name


def test_all_that_can_be_used_is_one_list() -> None:
    assert all(source.words in usable() for source in SOURCES)
    assert usable(GENERATED).startswith("tetrominoes (generated), letters (generated), multi-dsprites (re-created), ")
    assert " or a .tfrecords file" in usable(FILES)


def test_asking_for_help_loads_no_reader() -> None:
    asked = "import sys, pcdnet.cli\ntry: pcdnet.cli.main(['train', '--help'])\nexcept SystemExit: pass\n"
    heavy = "('torch', 'av', 'ale_py', 'pyarrow', 'numpy', 'PIL')"
    done = subprocess.run(
        [sys.executable, "-c", f"{asked}print('loaded', [name for name in {heavy} if name in sys.modules])"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("loaded []\n"), done.stderr
