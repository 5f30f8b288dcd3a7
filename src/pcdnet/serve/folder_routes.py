"""Folder routes: the strip of pictures, the edits of each, counts and kinds, and the results of all."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse

from pcdnet.edits import Edits
from pcdnet.output.formats import FORMATS
from pcdnet.serve import folder_messages, messages
from pcdnet.serve.browsing import MOST_LISTED
from pcdnet.serve.description import in_json
from pcdnet.serve.desk import Desk
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.requests import check_local, json_body, sized
from pcdnet.serve.workbench import Workbench

KEPT = "private, max-age=3600"
"""How long browsers may keep small pictures: scrolling back costs nothing."""
MOST_NUMBERS = 1000
"""Numbers of edited pictures that are listed."""
MOST_READ = 200
"""Files of edits that are looked through quickly."""
_PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}


def add_folder(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    """Add the routes; with `local` what is kept with the run can be changed."""
    _add_pictures(app, workbench, desk)
    _add_edits(app, workbench, desk, local)
    _add_counts(app, workbench, desk, local)
    _add_results(app, workbench, desk, local)


def _add_pictures(app: FastAPI, workbench: Workbench, desk: Desk) -> None:
    @app.get("/api/pictures")
    async def pictures(request: Request, start: int = 0, count: int = 100) -> folder_messages.Pictures:
        """Some of the pictures that are at hand, by name."""
        if not 0 <= count <= MOST_LISTED or start < 0:
            raise Refusal(
                422, f"{count} pictures from {start} on were asked for; ask for up to {MOST_LISTED}, from 0 on"
            )
        return await desk.do(lambda: _listed(workbench, start, count), request.receive)

    @app.get("/api/pictures/{number}", response_class=Response, responses=_PNG)
    async def picture(number: int, request: Request) -> Response:
        """One of them, as a PNG file."""
        browsing = workbench.browsing

        def work() -> Any:
            return sized(browsing.is_large(number), lambda: browsing.file(number))

        return Response(await desk.do(work, request.receive), media_type="image/png")

    @app.get("/api/pictures/{number}/thumbnail", response_class=Response, responses=_PNG)
    async def small(number: int, request: Request, mark: str = "") -> Response:
        """One of them, small, as a PNG or JPEG file, which browsers may keep if they ask with the strip's mark."""
        browsing = workbench.browsing

        def work() -> Any:
            return sized(browsing.is_large(number), lambda: browsing.thumbnail(number))

        content, kind = await desk.do(work, request.receive)
        # Without the mark, another run that is served here later would be shown with these pictures.
        known = mark == browsing.mark
        return Response(content, media_type=kind, headers={"Cache-Control": KEPT} if known else None)


def _add_edits(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    refused = "edits are not kept"

    @app.get("/api/edits")
    async def edits(request: Request) -> folder_messages.EditedPictures:
        """Which pictures have edits that are kept with the run."""

        def work() -> Any:
            return sized(len(workbench.edits.marks()) > MOST_READ, lambda: _edited(workbench))

        listed: folder_messages.EditedPictures = await desk.do(work, request.receive)
        return listed

    @app.put("/api/edits/{number}", status_code=204, openapi_extra=in_json(messages.Scene))
    async def keep(number: int, request: Request) -> Response:
        """Keep what somebody made of a picture with the run, whole or not at all."""
        check_local(local, refused)
        body = await json_body(request)

        def work() -> Any:
            scene = messages.read(body, messages.Scene.model_validate_json)
            return sized(workbench.is_large_number(number), lambda: workbench.keep_edits(number, scene))

        await desk.do(work, request.receive)
        return Response(status_code=204)

    @app.delete("/api/edits/{number}", status_code=204)
    async def discard(number: int, request: Request) -> Response:
        """Forget the edits of a picture."""
        check_local(local, refused)
        await desk.do(lambda: workbench.discard_edits(number), request.receive)
        return Response(status_code=204)

    @app.delete("/api/edits", status_code=204)
    async def discard_all(request: Request) -> Response:
        """Forget the edits of all pictures."""
        check_local(local, refused)
        await desk.do(workbench.discard_edits, request.receive)
        return Response(status_code=204)


def _add_counts(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    @app.get("/api/counts")
    async def counts(request: Request) -> folder_messages.Counts:
        """What was found in all pictures so far, kind by kind; names, hidden kinds and edits count at once."""
        return await desk.do(lambda: workbench.counting.counts(workbench.names), request.receive)

    @app.post("/api/counts", status_code=202)
    async def count(request: Request) -> folder_messages.Counts:
        """Decompose all pictures in the background, or go on with it."""
        check_local(local, "they cannot have all pictures counted")
        workbench.counting.start()
        return await counts(request)

    @app.delete("/api/counts")
    async def stop(request: Request) -> folder_messages.Counts:
        """Stop counting; what is counted stays."""
        check_local(local, "they cannot stop counting")
        workbench.counting.stop()
        return await counts(request)

    @app.put("/api/kinds", openapi_extra=in_json(folder_messages.KindChange))
    async def change(request: Request) -> messages.Names:
        """Name, merge, hide or show prototypes, in the run's folder too."""
        check_local(local, "kinds stay as they are")
        change = messages.read(await json_body(request), folder_messages.KindChange.model_validate_json)
        return await desk.do(lambda: workbench.change_kinds(change), request.receive)


def _add_results(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    media_types: dict[str, Any] = {each.media_type: {} for each in FORMATS} | {"application/zip": {}}

    @app.post("/api/results", status_code=202, openapi_extra=in_json(folder_messages.Order))
    async def order(request: Request) -> folder_messages.Results:
        """Have the results of all pictures made as a file, edits and names included, hidden kinds left out."""
        check_local(local, "they cannot have the results of all pictures")
        order = messages.read(await json_body(request), folder_messages.Order.model_validate_json)
        return await desk.do(lambda: workbench.orders.order(order.format, workbench.names), request.receive)

    @app.get("/api/results/{format}", response_model=None, responses={200: {"content": media_types}})
    async def results(format: str, request: Request) -> Response:
        """The file that was asked for or, with status 202, how far it is."""
        state, path = await desk.do(lambda: workbench.orders.file(format), request.receive)
        if path is None:
            return Response(state.model_dump_json(), 202, media_type="application/json")
        return FileResponse(path, filename=state.name)


def _listed(workbench: Workbench, start: int, count: int) -> folder_messages.Pictures:
    browsing, hidden = workbench.browsing, workbench.names.hidden
    numbers = range(start, min(start + count, len(browsing)))
    sizes, marks = browsing.sizes(numbers), workbench.edits.marks()
    rows = [
        folder_messages.Pictured(
            number=number,
            name=browsing.name(number),
            size=sizes.get(number),
            edited=Edits.is_among(browsing.name(number), marks),
            objects=workbench.counting.objects(number, hidden),
            problem=browsing.problem(number),
        )
        for number in numbers
    ]
    return folder_messages.Pictures(source=browsing.source, count=len(browsing), mark=browsing.mark, pictures=rows)


def _edited(workbench: Workbench) -> folder_messages.EditedPictures:
    browsing, marks = workbench.browsing, workbench.edits.marks()
    numbers = [n for n in range(len(browsing)) if Edits.is_among(browsing.name(n), marks)] if marks else []
    return folder_messages.EditedPictures(
        edited=numbers[:MOST_NUMBERS],
        count=len(numbers),
        others=max(0, len(marks) - len(numbers)),
        damaged=workbench.edits.damaged()[:10],
    )
