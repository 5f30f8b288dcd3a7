"""Description: what /openapi.json says of requests, whose bodies the app reads by itself."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from pcdnet.serve import folder_messages, learning_messages, messages

_REFERENCE = "#/components/schemas/{model}"
_READ = (
    *(messages.Picture, messages.Numbered, messages.Scene, messages.Question, messages.Export, messages.Name),
    *(folder_messages.KindChange, folder_messages.Order),
    *(learning_messages.DrawnOn, learning_messages.DrawnIn, learning_messages.Removal, learning_messages.Minutes),
)
_UPLOAD: dict[str, Any] = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "format": "binary", "description": "A picture file."},
        "fit": {"type": "boolean", "description": "Whether to resize a picture that the model cannot take as it is."},
    },
}


def in_json(*kinds: type[BaseModel]) -> dict[str, Any]:
    """That a route takes one of these messages."""
    schemas = [{"$ref": _REFERENCE.format(model=kind.__name__)} for kind in kinds]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def decomposable() -> dict[str, Any]:
    """What `decompose` takes."""
    extra = in_json(messages.Picture, messages.Numbered)
    form = {"multipart/form-data": {"schema": _UPLOAD}}
    return {"requestBody": {"required": True, "content": {**form, **extra["requestBody"]["content"]}}}


def describe_requests(app: FastAPI) -> None:
    """Add the messages that the app reads to those that it answers with."""
    _, described = models_json_schema([(kind, "validation") for kind in _READ], ref_template=_REFERENCE)
    made = app.openapi

    def openapi() -> dict[str, Any]:
        schema = made()
        known: dict[str, Any] = schema.setdefault("components", {}).setdefault("schemas", {})
        for name, definition in described["$defs"].items():
            known.setdefault(name, definition)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
