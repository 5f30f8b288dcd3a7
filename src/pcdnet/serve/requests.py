"""Requests: what routes have in common: JSON read and written, work that is large, changes that only some may make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel

from pcdnet.serve.desk import Large
from pcdnet.serve.refusal import Refusal

T = TypeVar("T")
JSON = "application/json"


async def json_body(request: Request, cure: str = "send JSON") -> bytes:
    """The bytes of a request that says to be JSON."""
    if (kind := kind_of(request)) != JSON:
        raise Refusal(415, f"a request of type {kind!r:.60} was sent; {cure}")
    return await request.body()


def kind_of(request: Request) -> str:
    """What a request says to be."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def sized(large: bool, work: Callable[[], T]) -> T | Large[T]:
    """The work done at once, or put among the large."""
    return Large(work) if large else work()


def as_json(message: BaseModel) -> bytes:
    """A message as bytes, without what nobody set."""
    return message.model_dump_json(exclude_unset=True).encode()


def check_local(local: bool, what: str) -> None:
    """Refuse a change where others than this machine can reach the server, or the model is not the user's."""
    if not local:
        cure = "serve a run of your own on 127.0.0.1"
        raise Refusal(403, f"others can reach this server, or the model comes with pcdnet, so {what}; {cure}")
