"""HTTP API: the page on the server's routes and messages, from what the server itself says at /openapi.json."""

from __future__ import annotations

import json
from tempfile import TemporaryDirectory
from typing import Any

Schema = dict[str, Any]


def described() -> Schema:
    """What `pcdnet serve` answers at /openapi.json."""
    from pcdnet import Config, PCDNet, RunFolder
    from pcdnet.serve.app import create_app
    from pcdnet.serve.workbench import Workbench

    with TemporaryDirectory() as folder:
        PCDNet(Config.preset("tetrominoes").model).save(folder)
        made: Schema = create_app(Workbench.for_run(RunFolder.open(folder))).openapi()
    return made


def page(schema: Schema) -> str:
    """The markdown of the page."""
    lines = [
        "# The API of the server",
        "",
        f"{schema['info']['description']} `pcdnet serve RUN` answers these requests, and has this page's source at"
        " `/openapi.json`. Who may ask, and how much, is on the page [of the server](serve.md).",
        "",
        "```sh",
        "curl -F image=@new.png http://127.0.0.1:8350/api/decompose",
        "```",
        "",
        "## Requests",
        "",
    ]
    requests = [(path, method, one) for path, methods in schema["paths"].items() for method, one in methods.items()]
    common = set.intersection(*(set(_mistakes(request)) for _, _, request in requests))
    shared = [mistake for mistake in _mistakes(requests[0][2]) if mistake in common]
    lines += [f"What goes wrong is answered as a [Complaint](#complaint): {', '.join(shared)}.", ""]
    for path, method, request in requests:
        lines += _request(path, method, request, common)
    lines += ["## Messages", ""]
    for name, message in sorted(schema["components"]["schemas"].items()):
        lines += _message(name, message)
    return "\n".join(lines)


def _mistakes(request: Schema) -> list[str]:
    """The codes of answers that say what is wrong, with their words."""
    answers = sorted(request["responses"].items())
    return [f"{code} {one.get('description', '')}".strip() for code, one in answers if not code.startswith("2")]


def _request(path: str, method: str, request: Schema, common: set[str]) -> list[str]:
    lines = [f"### {method.upper()} {path}", "", str(request.get("description", "")), ""]
    lines += [f"- `{one['name']}` in the {one['in']}: {_kind(one['schema'])}" for one in request.get("parameters", [])]
    for media, body in request.get("requestBody", {}).get("content", {}).items():
        lines.append(f"- takes `{media}`: {_kind(body['schema'])}")
        for name, part in body["schema"].get("properties", {}).items():
            lines.append(f"    - `{name}`: {part.get('description', _kind(part))}")
    for code, answer in sorted(request["responses"].items()):
        if code.startswith("2"):
            kinds = [
                f"`{media}`" + (f": {_kind(body['schema'])}" if body.get("schema") else "")
                for media, body in answer.get("content", {}).items()
            ]
            lines.append(f"- answers {', '.join(kinds) or f'{code}, without content'}")
    lines += [f"- or complains: {mistake}" for mistake in _mistakes(request) if mistake not in common]
    return [*lines, ""]


def _message(name: str, message: Schema) -> list[str]:
    lines = [f"### {name}", "", " ".join(message.get("description", "").split()), ""]
    fields = message.get("properties", {})
    if not fields:
        return [*lines, f"{_kind(message)}", ""]
    lines += ["| field | type | meaning |", "|---|---|---|"]
    needed = message.get("required", [])
    for field, schema in fields.items():
        kind = _kind(schema) + ("" if field in needed else f" (default: `{json.dumps(schema.get('default'))}`)")
        lines.append(f"| `{field}` | {kind} | {' '.join(schema.get('description', '').split())} |")
    return [*lines, ""]


def _kind(schema: Schema) -> str:
    """A schema in a few words, with links to the messages it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(_kind(part) for part in schema[union])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        inside = [_kind(part) for part in schema.get("prefixItems", [])]
        return "list of " + (", ".join(inside) or _kind(schema.get("items", {})))
    if schema.get("type") == "object" and "additionalProperties" in schema:
        inside = schema["additionalProperties"]
        return f"object of {_kind(inside)}" if isinstance(inside, dict) else "object"
    return f"{schema.get('type', 'anything')}"
