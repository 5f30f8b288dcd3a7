"""App: the page, and what it asks for, over HTTP.

The model works in one thread of its own, one request after the other, while others wait their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

import pcdnet
from pcdnet.errors import PcdnetError
from pcdnet.output.formats import FORMATS
from pcdnet.serve import messages
from pcdnet.serve.guard import Guard
from pcdnet.serve.pictures import MOST_BYTES, Refusal
from pcdnet.serve.workbench import Workbench

T = TypeVar("T")

STATIC = Path(__file__).parent / "static"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""The names under which a server on this machine is known."""
PAGES = {"/": "index.html", "/docs": "docs.html", "/favicon.ico": "icon.svg"}
"""Files of the page that have addresses of their own."""

_MISTAKES: dict[int | str, dict[str, Any]] = {
    status: {"model": messages.Complaint} for status in (403, 404, 413, 415, 421, 422)
}
_UPLOAD: dict[str, Any] = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "format": "binary", "description": "A picture file."},
        "fit": {"type": "boolean", "description": "Whether to resize a picture that the model cannot take as it is."},
    },
}


class Worker:
    """One thread for all work with the model; who comes while it is busy waits."""

    def __init__(self, threads: int) -> None:
        """`threads` is how many cores an operation of the model may use."""
        self._pool = ThreadPoolExecutor(1, "pcdnet", initializer=torch.set_num_threads, initargs=(threads,))

    async def do(self, work: Callable[[], T]) -> T:
        """Wait for the thread, then for the work."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def create_app(workbench: Workbench, *, local: bool = True, threads: int = 1) -> FastAPI:
    """The app of one run; `local` says that only this machine can reach it, and so may rename prototypes."""
    app = FastAPI(
        title="pcdnet",
        version=pcdnet.__version__,
        description="See, question and edit decompositions. Arrays are base64 of little-endian bytes.",
        docs_url=None,
        redoc_url=None,
        responses=_MISTAKES,
    )
    app.add_middleware(Guard, most_bytes=MOST_BYTES, hosts=LOCAL_HOSTS if local else None)
    worker = Worker(threads)
    _complain_in_sentences(app)
    _add_reading(app, workbench, worker, local)
    _add_working(app, workbench, worker, local)
    _add_pages(app)
    return app


def _add_reading(app: FastAPI, workbench: Workbench, worker: Worker, local: bool) -> None:
    known: list[messages.Model] = []

    @app.get("/api/model")
    async def model() -> messages.Model:
        """The model: its sizes, prototypes, names and colours."""
        if not known:
            known.append(await worker.do(lambda: workbench.describe(renaming=local)))
        return known[0].model_copy(update=dict(workbench.named()))

    @app.get("/api/samples")
    async def samples() -> messages.Samples:
        """How many pictures are at hand."""
        scenes = workbench.samples
        source, count = ("", 0) if scenes is None else (scenes.name, len(scenes))
        return messages.Samples(source=source, count=count)

    @app.get("/api/samples/{number}", response_class=Response, responses={200: {"content": {"image/png": {}}}})
    async def sample(number: int) -> Response:
        """One of them, as a PNG file."""
        return Response(workbench.sample_file(number), media_type="image/png")


def _add_working(app: FastAPI, workbench: Workbench, worker: Worker, local: bool) -> None:
    @app.post("/api/decompose", response_model_exclude_unset=True, openapi_extra={"requestBody": _decomposable()})
    async def decompose(request: Request) -> messages.Explained:
        """Decompose a picture: a file in a form, the numbers of a picture, or a sample."""
        return await worker.do(await _decomposing(request, workbench))

    @app.post("/api/render", response_model_exclude_unset=True)
    async def render(scene: messages.Scene) -> messages.Explained:
        """Paint a scene."""
        return await worker.do(lambda: workbench.render(scene))

    @app.post("/api/inspect")
    async def inspect(question: messages.Question) -> messages.Inside:
        """Look inside the search: candidates, the steps of the selection, the map of a prototype."""
        return await worker.do(lambda: workbench.inspect(question))

    media_types: dict[str, Any] = {each.media_type: {} for each in FORMATS}

    @app.post("/api/export", response_class=Response, responses={200: {"content": media_types}})
    async def export(message: messages.Export) -> Response:
        """A scene as a file, in any of the formats that `decompose` writes."""
        written, content = await worker.do(lambda: workbench.export(message))
        kind = "json" if written.name == "coco" else written.name
        disposition = {"Content-Disposition": f'attachment; filename="{written.name}-scene.{kind}"'}
        return Response(content, media_type=written.media_type, headers=disposition)

    @app.get("/api/names")
    async def names() -> messages.Names:
        """What the prototypes are called."""
        return workbench.named()

    @app.put("/api/names/{prototype}")
    async def rename(prototype: int, message: messages.Name) -> messages.Names:
        """Rename a prototype, in the run's folder too; only where none but this machine can reach the server."""
        if not local:
            raise Refusal(403, "others can reach this server, so names stay as they are; serve the run on 127.0.0.1")
        return await worker.do(lambda: workbench.rename(prototype, message.name))


def _add_pages(app: FastAPI) -> None:
    for path, name in PAGES.items():
        app.add_route(path, partial(_page, STATIC / name), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC))


async def _page(path: Path, _: Request) -> FileResponse:
    return FileResponse(path)


async def _decomposing(request: Request, workbench: Workbench) -> Callable[[], messages.Explained]:
    """Read a request of any of the three kinds; the work that it asks for."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=4, max_part_size=1 << 10) as form:
            file, fit = form.get("image"), str(form.get("fit", "")).lower() in ("1", "true", "on")
            if not isinstance(file, UploadFile):
                raise Refusal(422, "the form holds no file called image; send the picture under that name")
            content, name = await file.read(), Path(file.filename or "").name[:100]
        return lambda: workbench.decompose_file(content, name, fit=fit)
    if kind == "application/json":
        body = await request.body()
        message = messages.PICTURE_OR_SAMPLE.validate_json(body)
        return lambda: workbench.decompose(message)
    raise Refusal(415, f"a request of type {kind!r:.60} was sent; send a form with the file image, or JSON")


def _decomposable() -> dict[str, Any]:
    """What `decompose` takes, for programs that read /openapi.json."""
    known = (messages.Picture, messages.Sample)
    schemas = [message.model_json_schema(ref_template="#/components/schemas/{model}") for message in known]
    schemas = [{key: value for key, value in schema.items() if key != "$defs"} for schema in schemas]
    content = {"multipart/form-data": {"schema": _UPLOAD}, "application/json": {"schema": {"anyOf": schemas}}}
    return {"required": True, "content": content}


def _complain_in_sentences(app: FastAPI) -> None:
    """Whatever goes wrong is answered with {"error": a sentence}."""

    @app.exception_handler(PcdnetError)
    async def refused(_: Request, error: PcdnetError) -> JSONResponse:
        if isinstance(error, Refusal):
            return _complaint(error.status, str(error), fit=error.fit)
        return _complaint(422, str(error))

    @app.exception_handler(RequestValidationError)
    @app.exception_handler(ValidationError)
    async def invalid(_: Request, error: RequestValidationError | ValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")[:100]
        return _complaint(422, f"{where or 'the request'}: {first['msg']}; send what /openapi.json describes")

    @app.exception_handler(HTTPException)
    async def failed(_: Request, error: HTTPException) -> JSONResponse:
        sentence = {404: "there is nothing here; begin at /", 405: "this cannot be done here; look at /openapi.json"}
        return _complaint(error.status_code, sentence.get(error.status_code, str(error.detail)))

    @app.exception_handler(Exception)
    async def broken(_: Request, __: Exception) -> JSONResponse:
        return _complaint(500, "something broke here that is no fault of yours; look at the server's output")


def _complaint(status: int, sentence: str, *, fit: bool = False) -> JSONResponse:
    return JSONResponse(messages.Complaint(error=sentence, fit=fit).model_dump(), status)
