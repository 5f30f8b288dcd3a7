"""Laws of the pictures of the documentation: all worlds and stages are shown, and a card counts what is found."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch
from benchmarks.gallery import HARD, WORLDS, card, tinted
from benchmarks.stages import PICTURES

from pcdnet import ModelConfig, PCDNet, PrototypeBank
from pcdnet.data import tetrominoes

DOCS = Path(__file__).resolve().parents[1] / "docs"


def model() -> PCDNet:
    """A model of the true tetrominoes."""
    return PCDNet.from_bank(PrototypeBank(*map(torch.from_numpy, tetrominoes.true_prototypes())), ModelConfig())


def test_the_gallery_shows_its_eight_worlds_in_their_order() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert re.findall(r"pictures/gallery-([\w-]+)\.png", text) == list(WORLDS)
    assert len(WORLDS) == 8


def test_hard_worlds_are_shown_among_own_images() -> None:
    text = (DOCS / "own-images.md").read_text(encoding="utf-8")
    assert {name for name in HARD if f"pictures/gallery-{name}.png" in text} == set(HARD)


def test_all_stages_are_shown_in_their_order() -> None:
    text = (DOCS / "how-it-works.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"pictures/stages-(\w+)\.png", text)) == PICTURES


def test_a_card_counts_every_object_that_was_found() -> None:
    images, explained = tetrominoes.generate(3, seed=0).images, model()
    found = explained.decompose_all(images)
    words = [text.get_text() for text in card(images, found, explained).texts]
    counts = [int(word.rpartition("\u00d7")[2]) for word in words if "\u00d7" in word]
    assert sum(counts) == sum(map(len, found)) > 0
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == len({int(p) for one in found for p in one.prototype_ids})


def test_what_is_found_is_coloured_and_all_else_is_grey() -> None:
    image, explained = tetrominoes.generate(1, seed=0).images[0], model()
    found = explained.decompose(image)
    picture = tinted(image, found, np.arange(19), scale=2).astype(int)
    labels = found.instances.repeat(2, axis=0).repeat(2, axis=1)
    spread = picture.max(axis=2) - picture.min(axis=2)
    assert (spread[labels == 0] == 0).all()
    assert (spread[labels > 0] > 0).all()
