"""Complaints: whatever goes wrong is answered with {"error": a sentence}."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from pcdnet.errors import PcdnetError
from pcdnet.serve import messages
from pcdnet.serve.desk import Gone
from pcdnet.serve.refusal import Refusal

MISTAKES: dict[int | str, dict[str, Any]] = {
    status: {"model": messages.Complaint} for status in (401, 403, 404, 408, 409, 413, 415, 421, 422, 503)
}
"""The numbers of HTTP's that any route may answer with."""


def complain_in_sentences(app: FastAPI) -> None:
    """Have an app do so."""

    @app.exception_handler(PcdnetError)
    async def refused(_: Request, error: PcdnetError) -> JSONResponse:
        if isinstance(error, Refusal):
            return _complaint(error.status, str(error), fit=error.fit, headers=error.headers)
        return _complaint(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def misaddressed(_: Request, error: RequestValidationError) -> JSONResponse:
        return _invalid(error.errors()[0])

    @app.exception_handler(ValidationError)
    async def invalid(_: Request, error: ValidationError) -> JSONResponse:
        return _invalid(dict(error.errors(include_url=False, include_context=False, include_input=False)[0]))

    @app.exception_handler(HTTPException)
    async def failed(_: Request, error: HTTPException) -> JSONResponse:
        sentence = {404: "there is nothing here; begin at /", 405: "this cannot be done here; look at /openapi.json"}
        detail = str(error.detail).rstrip(".")
        other = detail if "; " in detail else f"the request cannot be read: {detail}; send what /openapi.json describes"
        return _complaint(error.status_code, sentence.get(error.status_code, other))

    @app.exception_handler(Gone)
    @app.exception_handler(ClientDisconnect)
    async def unheard(_: Request, __: Exception) -> Response:
        return Response(status_code=408)  # which nobody will read

    @app.exception_handler(Exception)
    async def broken(_: Request, __: Exception) -> JSONResponse:
        return _complaint(500, "something broke here that is no fault of yours; look at the server's output")


def _invalid(first: dict[str, Any]) -> JSONResponse:
    where = ".".join(str(part) for part in first["loc"] if part != "body")[:100]
    return _complaint(422, f"{where or 'the request'}: {first['msg']}; send what /openapi.json describes")


def _complaint(status: int, sentence: str, *, fit: bool = False, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(messages.Complaint(error=sentence, fit=fit).model_dump(), status, headers)
