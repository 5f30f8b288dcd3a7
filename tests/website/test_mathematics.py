"""Laws of mathematics on the pages: it is MathML, with the numbers of the paper, and nothing else is touched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml", reason="the extra docs is not installed")

from website.mathematics import block, inline

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_a_block_has_an_equation_a_line_with_its_number() -> None:
    made = block("x = 1 \\tag{4}\n\ny = 2\n", "math", "math", {}, None)
    assert made.count("<math") == made.count('<div class="math">') == 2
    assert made.count('<span class="number">(4)</span>') == 1
    assert "tag" not in made


def test_dollars_of_the_shell_are_left_alone() -> None:
    words = "costs $5, <code>$HOME</code> and <code>$(nproc)</code>"
    assert inline(words) == words
    assert inline("of $<code>c</code>$ pixels").startswith("of <math")


def test_how_it_works_has_the_nine_equations_of_the_paper() -> None:
    text = (DOCS / "how-it-works.md").read_text(encoding="utf-8")
    made = "".join(block(source, "math", "math") for source in re.findall(r"```math\n(.*?)```", text, flags=re.DOTALL))
    assert "\\" not in made
    assert made.count("<math") == 9
    assert re.findall(r"\\tag\{(\d)\}", text) == list("123456789")
