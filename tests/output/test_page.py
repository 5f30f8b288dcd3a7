"""Laws of the page: one file that needs nothing else, true to the numbers, and safe against what it is given."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pcdnet.colours import as_hex, prototype_colours
from pcdnet.data.tetrominoes import generate, true_prototypes
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.kinds import Kinds
from pcdnet.names import Names
from pcdnet.output.census import census
from pcdnet.output.page import (
    HEAVY,
    IDLE,
    LARGEST,
    SHOWN_OBJECTS,
    BankHealth,
    Exhibit,
    Page,
    Sightings,
    bank_use,
    render,
    write_page,
)
from pcdnet.training.suggestions import Suggestion
from pcdnet.training.verdict import Verdict

SCENES = generate(3, seed=0)
IMAGES = SCENES.images.astype(np.float32) / 255


def decomposition(index: int, error: float = 0.0) -> Decomposition:
    """The true decomposition of a scene, painted too bright by a little if an error is wanted."""
    corners = np.stack([SCENES.rows[index], SCENES.columns[index]], axis=-1)
    starts = np.array([np.argwhere(mask).min(axis=0) for mask in true_prototypes()[1]])
    return Decomposition(
        prototype_ids=SCENES.shapes[index].astype(np.int32),
        positions=(corners - starts[SCENES.shapes[index]]).astype(np.int32),
        colours=SCENES.colours[index].astype(np.float32),
        error_reductions=np.ones(3, np.float32),
        instances=SCENES.labels[index].astype(np.int32),
        reconstruction=IMAGES[index] + np.float32(error),
        error=0.0,
    )


def exhibit(index: int, title: str) -> Exhibit:
    """A scene under a title."""
    return Exhibit(title=title, note=f"scene {index}", image=IMAGES[index], found=decomposition(index))


def report(**changes: Any) -> Page:
    """A page about the true prototypes, changed as is said."""
    health = BankHealth(
        usage=np.full(19, 1 / 19),
        error=np.full(19, 0.5),
        likeness=np.eye(19) + 0.5,
        changed=np.arange(19) * 1000,
    )
    names = Names(count=19, given=changes.get("names", {}))
    whole = Page(
        census=census([decomposition(index) for index in range(3)], Kinds(names), BankArrays(*true_prototypes())),
        name="first",
        data="3 scenes: re-created Tetrominoes",
        scores={"fg_ari": 0.98765, "mse": 0.00123, "ari": None, "parameters": 23750},
        bank=BankArrays(*true_prototypes()),
        health=health,
        metrics=[
            {"step": 1, "loss": 0.1, "in_use": 19},
            {"step": 2, "event": "centre", "prototype": 4, "source": 4},
            {"step": 2, "event": "centre", "prototype": 5, "source": 5},
            {"step": 2, "event": "split", "prototype": 3, "source": 7},
            {"step": 2, "loss": 0.01, "in_use": 18},
            {"step": 2, "validation": {"fg_ari": 0.9, "mse": 0.2}},
        ],
        sightings=[Sightings()] * 19,
        gallery=[exhibit(index, title) for index, title in enumerate(("best", "median", "worst"))],
        ranking="beauty",
        config="[model]\nnum_prototypes = 19\n",
        command="pcdnet train --out first",
        version="9.9.9",
    )
    return dataclasses.replace(whole, **changes)


class Reader(HTMLParser):
    """The words, pictures and addresses of a page; open elements must be closed in order."""

    VOID = ("meta", "img", "path", "circle", "br", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words, self.open = "", list[str]()
        self.pictures, self.addresses = list[str](), list[str]()
        self.feed(text)
        self.words = " ".join(self.words.split())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "srcset", "action", "data"):
                (self.pictures if (value or "").startswith("data:image/") else self.addresses).append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += f" {data}"


def pixels(address: str) -> np.ndarray:
    """The picture of a data address."""
    with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as picture:
        return np.asarray(picture.convert("RGB"))


def test_the_page_is_whole_and_needs_nothing_else(tmp_path: Path) -> None:
    write_page(report(), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Reader(text)
    assert page.open == []
    assert all(address.startswith("#") and f'id="{address[1:]}"' in text for address in page.addresses)
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert "url(" not in text
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "script-src" not in policy[1]
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_scores_that_are_known_are_shown_and_others_left_out() -> None:
    words = Reader(render(report())).words
    assert "FG-ARI 98.77 %" in words
    assert "MSE 0.0012" in words
    assert "parameters 23,750" in words
    assert "agreement on all pixels" not in words  # ARI is None
    assert "count accuracy" not in words


def test_detection_is_shown_where_it_is_known_kind_by_kind() -> None:
    scores = {"fg_ari": None, "f1": 0.5, "ap50": 0.25, "count_error": 1.5, "recall_by_kind": {"car": 0.75, "<i>": 1.0}}
    words = Reader(render(report(scores=scores))).words
    assert "F1 50.00 %" in words
    assert "AP50 25.00 %" in words
    assert "count error 1.50" in words
    assert "recall of car 75.00 %" in words
    assert "recall of <i> 100.00 %" in words
    assert "FG-ARI" not in Reader(render(report(scores=scores, metrics=[]))).words


def test_every_prototype_is_shown_with_its_mask_pixel_by_pixel() -> None:
    before = 3 * (5 + 3) + 19  # the scenes, and a face of every kind
    pictures = Reader(render(report())).pictures[before:]
    prototypes, masks = true_prototypes()
    for p in range(19):
        for shown, expected in zip(pictures[2 * p : 2 * p + 2], (prototypes[p], masks[p]), strict=True):
            np.testing.assert_array_equal(pixels(shown), np.repeat(np.round(255 * expected)[..., None], 3, axis=-1))
    assert len(pictures) == 2 * 19


def test_sightings_are_shown_where_there_are_any() -> None:
    places = np.zeros((4, 6))
    places[3, 0] = 2
    seen = [Sightings(colours=[(np.array([255, 0, 16], np.uint8), 0.75)], places=places), *[Sightings()] * 18]
    text = render(report(sightings=seen))
    assert 'style="background: #ff0010" title="75 %" aria-label="#ff0010, 75 %"' in text
    assert text.count('alt="where its objects were"') == 1
    heat = pixels(Reader(text).pictures[3 * (5 + 3) + 19 + 2]).astype(int).sum(axis=-1)
    assert heat.shape == (4, 6)
    assert np.unravel_index(heat.argmax(), heat.shape) == (3, 0)


def test_objects_are_pulled_apart_whole_and_in_place() -> None:
    pictures = Reader(render(report())).pictures
    image, *_, first, second, third = map(pixels, pictures[:8])
    np.testing.assert_array_equal(image, SCENES.images[0])
    # Sprites of Tetrominoes hide each other nowhere, so together they are the image.
    assert abs(np.maximum.reduce([first, second, third]).astype(int) - image).max() <= 1


def test_of_many_objects_some_are_shown_and_the_others_counted() -> None:
    found, many = decomposition(0), SHOWN_OBJECTS + 5
    crowd = dataclasses.replace(
        found,
        prototype_ids=found.prototype_ids[np.arange(many) % 3],
        positions=found.positions[np.arange(many) % 3],
        colours=found.colours[np.arange(many) % 3],
        error_reductions=np.ones(many, np.float32),
    )
    text = render(report(gallery=[Exhibit(title="best", note="", image=IMAGES[0], found=crowd)]))
    assert len(Reader(text).pictures) == 3 * 19 + 5 + SHOWN_OBJECTS
    assert "and 5 more behind them" in Reader(text).words


def test_large_noisy_pictures_stay_small_enough_to_be_mailed() -> None:
    noise = np.random.default_rng(0).random((6, 700, 900, 3)).astype(np.float32)
    empty = Decomposition(
        prototype_ids=np.zeros(0, np.int32),
        positions=np.zeros((0, 2), np.int32),
        colours=np.zeros((0, 3), np.float32),
        error_reductions=np.zeros(0, np.float32),
        instances=np.zeros((700, 900), np.int32),
        reconstruction=np.zeros((700, 900, 3), np.float32),
        error=1.0,
    )
    scenes = [Exhibit(title="best", note="", image=image, found=empty) for image in noise[:2]]
    text = render(report(gallery=scenes, bank=BankArrays(*true_prototypes(), noise[2])))
    assert max(max(pixels(picture).shape) for picture in Reader(text).pictures) == LARGEST
    assert len(text) < 5_000_000 / 2
    assert len(render(report())) < 10 * HEAVY


def test_sick_prototypes_are_named() -> None:
    usage = np.full(19, 1 / 19)
    usage[[2, 5]] = 0.9 * IDLE / 19
    changes: dict[str, Any] = {
        "usage": usage,
        "changed": np.zeros(19, np.int64),
        "error": np.full(19, np.nan),
        "twins": [(3, 8)],
    }
    page = render(report(health=dataclasses.replace(report().health, **changes)))
    words = Reader(page).words
    assert "19 prototypes: 17 in use, 2 and 5 idle; 3 and 8 are one kind." in words
    assert "last split never" in words
    assert len(re.findall('class="card kind sick"', page)) == 4


def test_a_healthy_bank_is_called_so_though_prototypes_look_alike() -> None:
    alike = np.full((19, 19), 0.99)
    page = render(report(health=dataclasses.replace(report().health, likeness=alike)))
    assert "19 prototypes: all in use; no two are one kind." in Reader(page).words
    assert "most like 1 (0.99)" in Reader(page).words
    assert 'kind sick"' not in page
    assert "last split step 18,000" in Reader(page).words


def test_resets_of_prototypes_are_listed_in_order() -> None:
    words = Reader(render(report())).words
    assert (
        "step 2 prototypes 4 and 5 moved to the centre step 2 prototype 3 was hardly needed: now a copy of 7" in words
    )
    assert "Nothing had to be done" in Reader(render(report(metrics=[]))).words


def test_names_cannot_become_markup() -> None:
    evil = "<script>alert('&')</script>\" onload=alert(1) x=\""
    kind = int(decomposition(0).prototype_ids[0])
    evil = evil[:60]
    named = report(
        **dict.fromkeys(("name", "data", "config", "command", "version", "training", "ranking"), evil),
        names={kind: evil},
        verdict=Verdict(verdict="partial", reasons=(evil,)),
        suggestions=[Suggestion(words=evil, reason=evil, command=evil)],
    )
    scene = dataclasses.replace(exhibit(0, evil), note=evil)
    text = render(dataclasses.replace(named, gallery=[scene], scores={"recall_by_kind": {evil: 1.0}}))
    assert "<script" not in text
    assert '" onload' not in text
    # The title has the run's name too, the gallery that of the prototype, and the verdict four sentences.
    assert Reader(text).words.count("alert('&')") == 18


def test_prototypes_are_called_by_their_names() -> None:
    kind = int(decomposition(1).prototype_ids[0])
    words = Reader(render(report(names={kind: "long bar"}))).words
    assert f"{kind} long bar usage" in words
    assert "1: long bar" in words


def test_prototypes_of_one_name_have_one_colour() -> None:
    first, last = (as_hex(prototype_colours(np.array(p))) for p in (0, 18))
    assert f"--kind: {last}" in render(report())
    text = render(report(names=dict.fromkeys(range(19), "bar")))
    assert f"--kind: {last}" not in text
    # The one kind, the cards, and the objects of three scenes.
    assert text.count(f"--kind: {first}") == 1 + 19 + 3 * 3


def test_one_prototype_and_no_scene_make_a_page_too() -> None:
    health = BankHealth(usage=np.ones(1), error=np.zeros(1), likeness=np.ones((1, 1)), changed=np.zeros(1, np.int64))
    frame, back = np.ones((1, 3, 3), np.float32), np.ones((35, 35, 3), np.float32)
    bank = BankArrays(frame, frame, back)
    one = census([], Kinds(Names(count=1)), bank)
    page = Reader(render(report(bank=bank, health=health, sightings=[Sightings()], gallery=[], census=one)))
    assert "most like none" in page.words
    assert "Background" in page.words
    assert "Scenes decomposed" not in page.words


def test_use_and_error_are_those_of_the_objects() -> None:
    found = [decomposition(index, error=0.1) for index in range(3)]
    usage, error = bank_use(IMAGES, found, 19)
    counts = np.bincount(SCENES.shapes.ravel(), minlength=19)
    np.testing.assert_allclose(usage, counts / 9)
    # Every sprite has 100 pixels of 3 channels, each wrong by 0.1.
    np.testing.assert_allclose(error[counts > 0], 100 * 3 * 0.1**2, rtol=1e-4)
    assert np.isnan(error[counts == 0]).all()


def test_use_of_nothing_is_nothing() -> None:
    usage, error = bank_use(IMAGES[:0], [], 4)
    assert not usage.any()
    assert np.isnan(error).all()


def test_the_page_needs_no_torch() -> None:
    code = "import sys, pcdnet.output.page; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_idle_is_what_training_calls_idle() -> None:
    from pcdnet.training.reset import IN_USE

    assert IDLE == IN_USE


def test_the_verdict_stands_before_the_scores_where_there_is_one() -> None:
    verdict = Verdict(verdict="partial", reasons=("half is <explained>", "3 in use"), advice=("train longer",))
    words = Reader(render(report(verdict=verdict))).words
    told = [words.index(each) for each in ("Verdict: partial", "half is <explained>", "3 in use", "train longer")]
    assert told == sorted(told)
    assert told[-1] < words.index("FG-ARI")
    assert "Verdict" not in Reader(render(report())).words


def test_kinds_are_in_a_table_with_their_numbers_and_names() -> None:
    one, *_, other = np.unique(SCENES.shapes).tolist()
    words = Reader(render(report(names={one: "square", other: "square"}))).words
    count = int(np.isin(SCENES.shapes, (one, other)).sum())
    assert "9 objects of 18 kinds in 3 images." in words
    assert f"square prototypes {one}, {other} {count} {100 * count / 9:.1f} % {count / 3:.2f}" in words
    third = next(p for p in SCENES.shapes[0].tolist() if p not in (one, other))
    sprite = SCENES.labels[0] == 1 + SCENES.shapes[0].tolist().index(third)
    height, width = (int(np.ptp(places)) + 1 for places in np.nonzero(sprite))
    row = words[words.index(f"prototype {third} ") :]
    assert f"{height} {width} 100" in row[:80]


def test_no_object_at_all_makes_a_page_too() -> None:
    empty = census([], Kinds(Names(count=19)), BankArrays(*true_prototypes()))
    words = Reader(render(report(census=empty, gallery=[]))).words
    assert "0 objects of 19 kinds in 0 images: nothing was found." in words


def test_suggestions_come_with_the_verdict_and_their_commands() -> None:
    verdict = Verdict(verdict="partial", reasons=("3 in use",), advice=("train longer",))
    merge = Suggestion(words="merge <3> and 7", reason="they are one", command="pcdnet merge run 3 7")
    words = Reader(render(report(verdict=verdict, suggestions=(merge,)))).words
    assert "merge <3> and 7 they are one pcdnet merge run 3 7" in words
    assert words.index("Verdict: partial") < words.index("What to do") < words.index("Scenes decomposed")
    assert "train longer" not in words  # the suggestion says it, with its command


def test_everything_that_is_drawn_says_what_it_shows() -> None:
    text = render(report())
    assert len(re.findall("<svg ", text)) == len(re.findall(r'<svg [^>]*role="img" aria-label="[^"]{5,}"', text))
    assert len(re.findall("<img ", text)) == len(re.findall(r'<img [^>]*alt="[^"]+"', text))
    table = text[text.index("<table>") :]
    assert len(re.findall('<th scope="col"', table)) == 8
    assert len(re.findall('<th scope="row">', table)) == 19
    levels = [int(level) for level in re.findall(r"<h(\d)", text)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_sections_come_in_the_order_of_what_people_ask_first() -> None:
    words = Reader(render(report(verdict=Verdict(verdict="good", reasons=("fine",))))).words
    titles = (
        "Verdict: good",
        "Scenes decomposed",
        "Scores FG",
        "Kinds 9",
        "Prototypes 19",
        "Learning Over",
        "Settings The",
    )
    places = [words.index(title) for title in titles]
    assert places == sorted(places)
