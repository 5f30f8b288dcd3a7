"""Gallery: the trained models of the package on one page, each at an address of its own, loaded when it is opened."""

from __future__ import annotations

import asyncio
from html import escape
from types import SimpleNamespace

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pcdnet import trained
from pcdnet.data.strip import open_strip
from pcdnet.run import RunFolder
from pcdnet.serve.access import LOCAL_HOSTS, Token
from pcdnet.serve.app import add_static, create_app
from pcdnet.serve.browsing import thumbnail
from pcdnet.serve.complaints import MISTAKES, complain_in_sentences
from pcdnet.serve.desk import Desk
from pcdnet.serve.guard import Guard, Purse
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.workbench import Workbench
from pcdnet.trained import Card

SHOWN = 3
"""Sample pictures of a model that its card shows."""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>pcdnet: trained models</title>
<link rel="icon" href="favicon.ico"><link rel="stylesheet" href="static/style.css">
<link rel="stylesheet" href="gallery.css">
</head>
<body>
<header><h1>Trained models</h1>
<p class="faint">They come with pcdnet and find objects at once. Open one to try it on its pictures, or on yours.
To name its kinds or to learn again, copy it: <code>pcdnet models NAME --out FOLDER</code>, then
<code>pcdnet serve FOLDER</code>.</p></header>
<main class="models">
{cards}
</main>
</body>
</html>
"""
_CARD = """<article class="card model">
<h2><a href="{name}/">{name}</a></h2>
<p class="samples">{samples}</p>
<p>{finds}</p>
<p class="faint">{prototypes} prototypes, images of {height}x{width}; {scores} on {scenes:,} other scenes</p>
</article>"""
_STYLE = """.models {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1rem;
}
.model { padding: 1rem 1.25rem; }
.samples { display: flex; gap: .5rem; margin: .75rem 0; }
.samples img { width: 30%; height: 6rem; object-fit: contain; background: #000; border-radius: .3rem; }
"""


class Gallery:
    """An app of several apps, by the first part of the path."""

    def __init__(
        self,
        *,
        local: bool = True,
        threads: int = 1,
        hosts: frozenset[str] = LOCAL_HOSTS,
        token: Token | None = None,
        device: str = "cpu",
    ) -> None:
        """The arguments are those of `create_app`; `device` is where models compute."""
        desk, self._purse = Desk(threads), Purse()
        self._local, self._hosts, self._token, self._device = local, hosts, token, device
        self._apps: dict[str, FastAPI] = {}
        self._loading = asyncio.Lock()
        self._front = _front(trained.models(), hosts, token, desk, self._purse)
        self.state = SimpleNamespace(desk=desk, close=self._close, busy=self._busy)
        """What ends with the server, as that of any app."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have the app of a model answer, which sees the rest of the path."""
        app: ASGIApp = self._front
        if scope["type"] == "http":
            name, slash, rest = scope["path"].removeprefix("/").partition("/")
            if slash and name in trained.NAMES and self._known(scope):
                app = await self._app(name)
                scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}
        await app(scope, receive, send)

    def _known(self, scope: Scope) -> bool:
        """Whether a request may have a model loaded; whoever may not is answered by the front's guard."""
        return self._token is None or self._token.fits(scope) or self._token.opens(scope)

    async def _app(self, name: str) -> FastAPI:
        """The app of a model, loaded by a thread so that others are answered meanwhile."""
        async with self._loading:
            if name not in self._apps:
                workbench = await asyncio.get_running_loop().run_in_executor(None, self._workbench, name)
                self._apps[name] = create_app(
                    workbench,
                    local=self._local,
                    hosts=self._hosts,
                    token=self._token,
                    desk=self.state.desk,
                    purse=self._purse,
                )
        return self._apps[name]

    def _workbench(self, name: str) -> Workbench:
        return Workbench.for_run(RunFolder.open(trained.card(name).folder), device=self._device)

    def _close(self) -> None:
        for app in self._apps.values():
            app.state.close()

    def _busy(self) -> bool:
        return any(app.state.busy() for app in self._apps.values())


def _front(cards: dict[str, Card], hosts: frozenset[str], token: Token | None, desk: Desk, purse: Purse) -> FastAPI:
    """The page of all models."""
    app = FastAPI(title="pcdnet", docs_url=None, redoc_url=None, openapi_url=None, responses=MISTAKES)
    app.add_middleware(Guard, hosts=hosts, token=token, purse=purse)
    complain_in_sentences(app)
    page = _PAGE.format(cards="\n".join(map(_card, cards.values())))

    @app.get("/", response_class=HTMLResponse)
    async def models() -> str:
        """The page."""
        return page

    @app.get("/gallery.css")
    async def style() -> Response:
        """How it looks."""
        return Response(_STYLE, media_type="text/css")

    @app.get("/samples/{name}/{number}")
    async def sample(name: str, number: int, request: Request) -> Response:
        """A small sample picture of a model."""
        if name not in cards or not 0 <= number < SHOWN:
            raise Refusal(404, "there is no such picture; begin at /")
        content, kind = await desk.do(lambda: _sample(cards[name], number), request.receive)
        return Response(content, media_type=kind)

    @app.get("/{name}")
    async def model(name: str) -> Response:
        """A model without the slash at the end, which its page's own addresses need."""
        if name not in cards:
            raise Refusal(404, "there is nothing here; begin at /")
        return RedirectResponse(f"{name}/")

    add_static(app)
    return app


def _sample(card: Card, number: int) -> tuple[bytes, str]:
    strip = open_strip(card.samples)
    if number >= len(strip):
        raise Refusal(404, "there is no such picture; begin at /")
    return thumbnail(strip.pixels(number))


def _card(card: Card) -> str:
    """What the page says of a model."""
    samples = "".join(f'<img src="samples/{card.name}/{n}" alt="" loading="lazy">' for n in range(SHOWN))
    known = {"f1": "F1", "fg_ari": "FG-ARI"}
    scores = ", ".join(f"{words} {card.scores[key]:.3f}" for key, words in known.items() if card.scores.get(key))
    return _CARD.format(
        name=escape(card.name),
        samples=samples,
        finds=escape(card.finds),
        prototypes=card.prototypes,
        height=card.size[0],
        width=card.size[1],
        scores=escape(scores),
        scenes=card.scenes,
    )
