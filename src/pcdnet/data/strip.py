"""Strip: the pictures that a name or path stands for, looked at one by one, however many there are.

Of a folder nothing but the names is held; a picture is read when it is asked for. Generated scenes are few, and those
of other files are opened as for training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import UInt8

from pcdnet.data import folder as folders
from pcdnet.data.decoding import header_of, pixels_of
from pcdnet.data.opening import open_data
from pcdnet.data.sources import TEST_SEED, is_generated, source_of
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

GENERATED_PICTURES = 24
"""Scenes that are generated to be looked at."""
MOST_FRAMES = 20_000
"""Pictures of a film, or of another file of many, that are looked at."""


@runtime_checkable
class Strip(Protocol):
    """Pictures in an order, of which each has a name that no other has."""

    @property
    def source(self) -> str:
        """Where they come from, for people."""

    def __len__(self) -> int: ...

    def name(self, number: int) -> str:
        """What a picture is called."""

    def size(self, number: int) -> tuple[int, int]:
        """Height and width in which a picture is seen; one whose header cannot be read is refused."""

    def pixels(self, number: int) -> UInt8[np.ndarray, "H W C"]:
        """A picture as it is seen, grey or RGB; one that cannot be read is refused."""


@dataclass(frozen=True, slots=True)
class FolderStrip:
    """The pictures of a folder, or of the folders in it, each whole and read when it is asked for."""

    folder: Path
    pages: tuple[folders.Page, ...]
    view: View = UNCHANGED

    @property
    def source(self) -> str:
        """The folder."""
        return str(self.folder)

    def __len__(self) -> int:
        return len(self.pages)

    def name(self, number: int) -> str:
        """The name of the file in the folder."""
        return self.pages[number].label

    def size(self, number: int) -> tuple[int, int]:
        """Height and width in which it is seen."""
        page = self.pages[number]
        return self.view.size(folders.one(self.folder, page, header_of).size, page.label)

    def pixels(self, number: int) -> UInt8[np.ndarray, "H W C"]:
        """The picture as it is seen."""
        page = self.pages[number]
        return self.view.image(folders.one(self.folder, page, pixels_of), page.label)


@dataclass(frozen=True, slots=True)
class SceneStrip:
    """The images of Scenes."""

    scenes: Scenes

    @property
    def source(self) -> str:
        """Where the scenes come from."""
        return self.scenes.name

    def __len__(self) -> int:
        return len(self.scenes)

    def name(self, number: int) -> str:
        """The name of a scene or, where scenes have none, that of their source and the number."""
        names = self.scenes.names
        return names[number] if number < len(names) else f"{Path(self.scenes.name).name or 'picture'}#{number}"

    def size(self, number: int) -> tuple[int, int]:
        """Height and width, the same for all."""
        _, H, W, _ = self.scenes.images.shape
        return H, W

    def pixels(self, number: int) -> UInt8[np.ndarray, "H W C"]:
        """The image."""
        image: UInt8[np.ndarray, "H W C"] = np.asarray(self.scenes.images[number])
        return image


def open_strip(name: str | Path, view: View = UNCHANGED) -> Strip:
    """The pictures of what a name or path stands for: of a folder all, whole, whatever it is that training saw of them.

    Examples
    --------
    >>> strip = open_strip("tetrominoes")
    >>> len(strip), strip.name(3), strip.size(3)
    (24, 're-created Tetrominoes, seed 3000000#3', (35, 35))
    """
    source = source_of(name)
    if source is not None and source.name == "folder" and "://" not in str(name):
        pages = folders.every_page(Path(name))[view.chosen(None)]
        return FolderStrip(Path(name), tuple(pages), replace(view, tiles=0, stride=1))
    if is_generated(name):
        return SceneStrip(open_data(name, count=GENERATED_PICTURES, seed=TEST_SEED, view=replace(view, stride=1)))
    scenes = open_data(name, count=MOST_FRAMES, seed=TEST_SEED, view=replace(view, tiles=0))
    if len(scenes) == 0:
        raise PcdnetError(f"{name} holds no picture; name other data")
    return SceneStrip(scenes)
