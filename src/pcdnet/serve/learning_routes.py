"""Learning routes: corrections, learning again from them, and what becomes of it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response

from pcdnet.corrections import Drawn
from pcdnet.serve import learning_messages, messages
from pcdnet.serve.description import in_json
from pcdnet.serve.desk import Desk
from pcdnet.serve.pictures import checked
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.requests import JSON, as_json, check_local, json_body, sized
from pcdnet.serve.workbench import Workbench

REFUSED = "nothing is learned here"


def add_learning(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    """Add the routes; with `local` the run can be changed."""
    _add_corrections(app, workbench, desk, local)
    _add_process(app, workbench, desk, local)


def _add_corrections(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    drawn = (learning_messages.DrawnOn, learning_messages.DrawnIn, learning_messages.Removal)

    @app.get("/api/corrections")
    async def corrections(request: Request) -> learning_messages.Corrections:
        """The boxes that were drawn, and the prototypes that are no objects."""
        return await desk.do(lambda: _kept(workbench), request.receive)

    @app.post("/api/corrections", status_code=201, openapi_extra=in_json(*drawn))
    async def correct(request: Request) -> learning_messages.Added:
        """Keep a box around a thing, which is to become a prototype, or that a prototype is no object."""
        check_local(local, REFUSED)
        body = await json_body(request)

        def work() -> Any:
            message = messages.read(body, learning_messages.CORRECTION.validate_json)
            return sized(_is_large(workbench, message), lambda: _add(workbench, message))

        return await desk.do(work, request.receive)

    @app.delete("/api/corrections/removed/{prototype}", status_code=204)
    async def take_in(prototype: int, request: Request) -> Response:
        """A prototype is an object after all."""
        check_local(local, REFUSED)
        await desk.do(lambda: workbench.run.corrections.remove(prototype, removed=False), request.receive)
        return Response(status_code=204)

    @app.delete("/api/corrections/{number}", status_code=204)
    async def take_back(number: int, request: Request) -> Response:
        """Forget a box."""
        check_local(local, REFUSED)
        if not await desk.do(lambda: workbench.run.corrections.take_back(number), request.receive):
            raise Refusal(404, f"there is no box {number}; GET api/corrections lists them")
        return Response(status_code=204)


def _add_process(app: FastAPI, workbench: Workbench, desk: Desk, local: bool) -> None:
    learning = workbench.relearning

    @app.get("/api/learning")
    async def state(request: Request) -> learning_messages.Learning:
        """How learning again goes, and how good the model is before and after."""
        return await desk.do(learning.state, request.receive)

    @app.post("/api/learning", status_code=202, openapi_extra=in_json(learning_messages.Minutes))
    async def start(request: Request) -> learning_messages.Learning:
        """Learn again from the corrections, in a process of its own; the run stays as it is until that is adopted."""
        check_local(local, REFUSED)
        asked = messages.read(await json_body(request), learning_messages.Minutes.model_validate_json)
        await desk.do(lambda: learning.start(asked.minutes), request.receive)
        return await state(request)

    @app.delete("/api/learning")
    async def cancel(request: Request) -> learning_messages.Learning:
        """Cancel it, or discard what it made."""
        check_local(local, REFUSED)
        await desk.do(lambda: sized(True, learning.cancel), request.receive)
        return await state(request)

    @app.get("/api/learning/pictures/{number}")
    async def compare(number: int, request: Request) -> Response:
        """A picture as it is explained now, and as it would be."""
        answer = await desk.do(lambda: sized(True, lambda: as_json(_side_by_side(workbench, number))), request.receive)
        return Response(answer, media_type=JSON)

    @app.post("/api/learning/adopt")
    async def adopt(request: Request) -> learning_messages.Learning:
        """Have what was learned take the place of the run's model, which is kept."""
        check_local(local, REFUSED)
        await desk.do(lambda: sized(True, lambda: workbench.changed_by(learning.adopt)), request.receive)
        return await state(request)

    @app.post("/api/learning/restore")
    async def restore(request: Request) -> learning_messages.Learning:
        """Have the former model come back, with its names and edits."""
        check_local(local, REFUSED)
        await desk.do(lambda: sized(True, lambda: workbench.changed_by(learning.restore)), request.receive)
        return await state(request)


def _kept(workbench: Workbench) -> learning_messages.Corrections:
    corrections = workbench.run.corrections
    numbers = workbench.browsing.numbers({each.picture for each in corrections.drawn()})
    drawn = [
        learning_messages.KeptBox(id=each.id, picture=numbers.get(each.picture), box=each.box, name=each.name)
        for each in corrections.drawn()
    ]
    return learning_messages.Corrections(drawn=drawn, removed=sorted(corrections.removed()))


def _add(
    workbench: Workbench,
    message: learning_messages.DrawnOn | learning_messages.DrawnIn | learning_messages.Removal,
) -> learning_messages.Added:
    corrections, name = workbench.run.corrections, ""
    if isinstance(message, learning_messages.Removal):
        workbench.check(message.remove)
        corrections.remove(message.remove)
        return learning_messages.Added(id=None)
    if isinstance(message, learning_messages.DrawnOn):
        image, name = workbench.fitted(message.picture), workbench.browsing.name(message.picture)
    else:
        image = checked(message.image.values(), workbench.model.config.channels)
    drawn = Drawn(image, message.box, message.name)
    workbench.check_drawn(drawn)
    return learning_messages.Added(id=corrections.add(drawn, name).id)


def _is_large(
    workbench: Workbench,
    message: learning_messages.DrawnOn | learning_messages.DrawnIn | learning_messages.Removal,
) -> bool:
    """Whether keeping a correction takes long."""
    if isinstance(message, learning_messages.DrawnIn):
        return workbench.is_large(message.image.shape)
    return isinstance(message, learning_messages.DrawnOn) and workbench.is_large_number(message.picture)


def _side_by_side(workbench: Workbench, number: int) -> learning_messages.SideBySide:
    model = workbench.relearning.model()
    before = workbench.explained(number, workbench.model)
    return learning_messages.SideBySide(before=before, after=workbench.explained(number, model))
