"""Mathematics: LaTeX in the pages as MathML, which browsers draw by themselves."""

from __future__ import annotations

import re
from html import escape, unescape
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r"\$<code>([^<]+)</code>\$")
"""Mathematics within a line, which is code between dollars in Markdown."""


def block(source: str, _language: str, css_class: str, *_: Any, **__: Any) -> str:
    """A block of equations, one a line; what stands behind `\\tag` is its number in the paper."""
    lines = [line for line in source.strip().split("\n") if line.strip()]
    return "\n".join(_numbered(line, css_class) for line in lines)


def inline(html: str) -> str:
    """A page's HTML with mathematics within lines as MathML."""
    return INLINE.sub(lambda found: convert(unescape(found[1])), html)


def _numbered(line: str, css_class: str) -> str:
    equation, _, tag = line.partition("\\tag{")
    number = f'<span class="number">({escape(tag.strip().rstrip("}"))})</span>' if tag else ""
    return f'<div class="{css_class}"><div>{convert(equation.strip(), display="block")}</div>{number}</div>'
