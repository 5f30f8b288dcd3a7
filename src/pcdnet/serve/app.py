"""App: the page, and what it asks for, over HTTP.

Requests are read and answered here; whatever takes time, reading JSON included, is done at the desk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import UploadFile

import pcdnet
from pcdnet.output.formats import FORMATS
from pcdnet.serve import messages
from pcdnet.serve.access import LOCAL_HOSTS, Token
from pcdnet.serve.complaints import MISTAKES, complain_in_sentences
from pcdnet.serve.description import decomposable, describe_requests, in_json
from pcdnet.serve.desk import Desk, Large
from pcdnet.serve.folder_routes import add_folder
from pcdnet.serve.guard import Guard, Purse
from pcdnet.serve.learning_routes import add_learning
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.requests import JSON, as_json, check_local, json_body, kind_of, sized
from pcdnet.serve.workbench import Workbench

T = TypeVar("T")

STATIC = Path(__file__).parent / "static"
PAGES = {"/": "index.html", "/docs": "docs.html", "/favicon.ico": "icon.svg"}
"""Files of the page that have addresses of their own."""

Work = Callable[[], bytes | Large[bytes]]
"""Work whose answer is the bytes of a message."""


def create_app(
    workbench: Workbench,
    *,
    local: bool = True,
    threads: int = 1,
    hosts: frozenset[str] = LOCAL_HOSTS,
    token: Token | None = None,
    desk: Desk | None = None,
    purse: Purse | None = None,
) -> FastAPI:
    """The app of one run.

    `local` says that only this machine can reach it, and so may change what is kept with the run; `threads` is how many
    requests are worked on at a time; `hosts` and `token` say who is let in. Apps of one server
    share its `desk` and its `purse`.
    """
    app = FastAPI(
        title="pcdnet",
        version=pcdnet.__version__,
        description="See, question and edit decompositions. Arrays are base64 of little-endian bytes.",
        docs_url=None,
        redoc_url=None,
        responses=MISTAKES,
    )
    app.add_middleware(Guard, hosts=hosts, token=token, purse=purse)
    app.state.desk = desk = desk or Desk(threads)
    app.state.close, app.state.busy = workbench.close, lambda: workbench.counting.busy
    complain_in_sentences(app)
    local = local and workbench.own
    _add_model(app, workbench, desk, local)
    add_folder(app, workbench, desk, local)
    add_learning(app, workbench, desk, local)
    _add_working(app, workbench, desk)
    _add_names(app, workbench, desk, local)
    _add_pages(app)
    describe_requests(app)
    return app


def _add_model(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    known: dict[int, messages.Model] = {}

    @app.get("/api/model")
    async def model(request: Request) -> messages.Model:
        """The model: its sizes, prototypes, names and colours."""
        which = id(workbench.model)  # another one after learning again
        if which not in known:
            known.clear()
            known[which] = await desk.do(lambda: workbench.describe(renaming=local), request.receive)
        return known[which].model_copy(update=dict(workbench.named()))


def _add_working(app: FastAPI, workbench: Workbench, desk: Desk) -> None:
    @app.post("/api/decompose", response_model=messages.Explained, openapi_extra=decomposable())
    async def decompose(request: Request) -> Response:
        """Decompose a picture: a file in a form, the numbers of a picture, or the number of one of the strip."""
        return await answered(request, await _decomposing(request, workbench))

    @app.post("/api/render", response_model=messages.Explained, openapi_extra=in_json(messages.Scene))
    async def render(request: Request) -> Response:
        """Paint a scene."""
        body = await json_body(request)

        def work() -> bytes | Large[bytes]:
            scene = messages.read(body, messages.Scene.model_validate_json)
            return sized(workbench.is_large_scene(scene), lambda: as_json(workbench.render(scene)))

        return await answered(request, work)

    @app.post("/api/inspect", response_model=messages.Inside, openapi_extra=in_json(messages.Question))
    async def inspect(request: Request) -> Response:
        """Look inside the search: candidates, the steps of the selection, the map of a prototype."""
        body = await json_body(request)

        def work() -> bytes | Large[bytes]:
            question = messages.read(body, messages.Question.model_validate_json)
            return sized(workbench.is_large(question.image.shape), lambda: as_json(workbench.inspect(question)))

        return await answered(request, work)

    media_types: dict[str, Any] = {each.media_type: {} for each in FORMATS}

    @app.post(
        "/api/export",
        response_class=Response,
        responses={200: {"content": media_types}},
        openapi_extra=in_json(messages.Export),
    )
    async def export(request: Request) -> Response:
        """A scene as a file, in any of the formats that `decompose` writes."""
        body = await json_body(request)

        def work() -> Response | Large[Response]:
            message = messages.read(body, messages.Export.model_validate_json)
            return sized(workbench.is_large_scene(message.scene), lambda: _download(workbench, message))

        return await desk.do(work, request.receive)

    async def answered(request: Request, work: Work) -> Response:
        return Response(await desk.do(work, request.receive), media_type=JSON)


def _add_names(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    @app.get("/api/names")
    async def names() -> messages.Names:
        """What the prototypes are called."""
        return workbench.named()

    @app.put("/api/names/{prototype}", openapi_extra=in_json(messages.Name))
    async def rename(prototype: int, request: Request) -> messages.Names:
        """Rename a prototype, in the run's folder too; only where none but this machine can reach the server."""
        check_local(local, "names stay as they are")
        name = messages.read(await json_body(request), messages.Name.model_validate_json).name
        return await desk.do(lambda: workbench.rename(prototype, name), request.receive)


def add_static(app: FastAPI) -> None:
    """Add the files of the page."""
    app.add_route("/favicon.ico", partial(_page, STATIC / PAGES["/favicon.ico"]), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC))


def _add_pages(app: FastAPI) -> None:
    for path, name in PAGES.items():
        app.add_route(path, partial(_page, STATIC / name), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC))


async def _page(path: Path, _: Request) -> FileResponse:
    return FileResponse(path)


async def _decomposing(request: Request, workbench: Workbench) -> Work:
    """Read a request of any of the three kinds; the work that it asks for."""
    if kind_of(request) != "multipart/form-data":
        body = await json_body(request, "send a form with the file image, or JSON")

        def work() -> bytes | Large[bytes]:
            message = messages.read(body, messages.PICTURE_OR_NUMBER.validate_json)
            if isinstance(message, messages.Numbered):
                large = workbench.is_large_number(message.picture)
            else:
                large = workbench.is_large(message.image.shape)
            return sized(large, lambda: as_json(workbench.decompose(message)))

        return work
    async with request.form(max_files=1, max_fields=4, max_part_size=1 << 10) as form:
        file, fit = form.get("image"), str(form.get("fit", "")).lower() in ("1", "true", "on")
        if not isinstance(file, UploadFile):
            raise Refusal(422, "the form holds no file called image; send the picture under that name")
        content, name = await file.read(), Path(file.filename or "").name[:100]
    return lambda: sized(
        workbench.is_large_file(content), lambda: as_json(workbench.decompose_file(content, name, fit=fit))
    )


def _download(workbench: Workbench, message: messages.Export) -> Response:
    written, content = workbench.export(message)
    kind = "json" if written.name == "coco" else written.name
    disposition = {"Content-Disposition": f'attachment; filename="{written.name}-scene.{kind}"'}
    return Response(content, media_type=written.media_type, headers=disposition)
