"""Laws of the page on the server's API: it has what /openapi.json has."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")

from website.http_api import described, page


def test_every_request_and_every_message_has_a_heading_that_links_lead_to() -> None:
    schema = described()
    text = page(schema)
    headings = re.findall(r"^### (.*)$", text, flags=re.MULTILINE)
    requests = [f"{method.upper()} {path}" for path, methods in schema["paths"].items() for method in methods]
    assert requests
    assert headings == [*requests, *sorted(schema["components"]["schemas"])]
    anchors = {heading.lower() for heading in headings}
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= anchors


def test_every_field_of_a_message_is_named() -> None:
    schema = described()
    sections = {part.split("\n", 1)[0]: part for part in page(schema).split("\n### ")[1:]}
    for name, message in schema["components"]["schemas"].items():
        assert all(f"| `{field}` |" in sections[name] for field in message.get("properties", {}))
