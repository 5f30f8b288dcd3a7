"""Laws of the plugin: napari's own manifest reader, viewer and widgets take what it gives, without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcdnet
from pcdnet.data.tetrominoes import generate
from pcdnet.napari.reader import get_reader
from pcdnet.napari.widget import decomposed, make_widget
from pcdnet.output.record import Results, write_json_lines
from tests.output.found import KINDS, random_records
from tests.runs import true_run
from tests.test_package import imported_by

MANIFEST = Path(pcdnet.__file__).parent / "napari.yaml"
pytestmark = pytest.mark.filterwarnings("ignore")  # of the neighbours' own


@pytest.fixture
def viewer() -> Any:
    """A viewer without a window."""
    return pytest.importorskip("napari.components", reason="needs napari").ViewerModel()


def add(viewer: Any, layers: list[Any]) -> None:
    """Add layers as napari does."""
    from napari.layers import Layer

    for layer in layers:
        viewer.add_layer(Layer.create(*layer))


def test_importing_the_package_and_its_plugin_imports_no_napari() -> None:
    assert "napari" not in imported_by("import pcdnet.napari.reader, pcdnet.napari.widget, pcdnet.napari.samples")


def test_the_manifest_is_valid_and_all_that_it_names_is_there() -> None:
    npe2 = pytest.importorskip("npe2", reason="needs npe2")
    manifest = npe2.PluginManifest.from_file(MANIFEST)
    manifest.validate_imports()
    assert manifest.name == "pcdnet"


def test_napari_opens_results_by_the_plugin(tmp_path: Path) -> None:
    npe2 = pytest.importorskip("npe2", reason="needs npe2")
    found, made = random_records(3)
    write_json_lines(Results(made, KINDS, 3), tmp_path)
    manager = npe2.PluginManager()
    manager.register(npe2.PluginManifest.from_file(MANIFEST))
    manager.activate("pcdnet")
    for place in (tmp_path, tmp_path / "decompositions.jsonl"):
        (reader,) = manager.iter_compatible_readers([str(place)])
        layers = manager.commands.execute(reader.command, kwargs={"path": str(place)})(str(place))
        np.testing.assert_array_equal(layers[0][0], np.stack([one.instances for one in found]))
    assert list(manager.iter_compatible_readers([str(tmp_path / "photo.png")])) == []


def test_a_viewer_shows_results_of_many_of_one_and_of_no_image(viewer: Any, tmp_path: Path) -> None:
    for count in (3, 1):
        _, made = random_records(count)
        write_json_lines(Results(made, KINDS, 3), tmp_path)
        read = get_reader(str(tmp_path))
        assert read is not None
        add(viewer, read(str(tmp_path)))
    names = [layer.name for layer in viewer.layers]
    assert names == ["objects", "boxes", "objects [1]", "boxes [1]"]
    boxes = viewer.layers["boxes"]
    assert list(boxes.features.columns) == ["image", "kind", "prototype", "label", "error_reduction"]
    assert len(boxes.data) == len(boxes.features) > 0
    viewer.layers.clear()
    write_json_lines(Results([{**made[0], "objects": []}], KINDS, 3), tmp_path)
    assert read is not None
    add(viewer, read(str(tmp_path)))
    assert viewer.layers["objects"].data.max() == 0


def test_layers_lie_where_the_image_lies_and_prototypes_beside_it(viewer: Any, tmp_path: Path) -> None:
    run, images = true_run(tmp_path / "run"), generate(count=2, seed=1).images
    image = viewer.add_image(images, rgb=True, scale=(1, 2, 2), translate=(0, 5, 7))
    layers = decomposed(image.data, str(run.path), rgb=True, scale=image.scale, start=image.translate)
    add(viewer, layers)
    np.testing.assert_array_equal(viewer.layers["objects"].extent.world, image.extent.world)
    assert viewer.layers["prototypes"].extent.world[0, 1] > image.extent.world[1, 2]
    true = generate(count=2, seed=1).labels
    assert ((viewer.layers["objects"].data > 0) == (true > 0)).mean() > 0.99


def test_the_widget_decomposes_beside_the_window_and_gives_layers(
    viewer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    application = pytest.importorskip("qtpy.QtWidgets", reason="needs Qt").QApplication
    core = pytest.importorskip("qtpy.QtCore")
    running = application.instance() or application([])
    image = viewer.add_image(generate(count=1, seed=1).images[0], rgb=True)
    widget = make_widget()
    widget.image.choices = [image]
    widget.run.value = str(true_run(tmp_path / "run").path)
    given, loop = list[Any](), core.QEventLoop()
    worker = widget()
    worker.returned.connect(given.extend)
    worker.finished.connect(loop.quit)
    core.QTimer.singleShot(60_000, loop.quit)
    worker.start()
    loop.exec()
    assert running is not None
    assert [kind for _, _, kind in given] == ["labels", "shapes", "image"]
    add(viewer, given)
