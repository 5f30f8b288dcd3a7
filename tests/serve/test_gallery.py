"""Laws of the gallery: every trained model has a card, and an address at which it is as it is alone."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pcdnet import trained
from pcdnet.serve.access import Token
from pcdnet.serve.gallery import Gallery
from pcdnet.serve.server import address, bind, make_server

SECRET = "a-secret-of-letters-0123"
NAMES = [name for name in trained.NAMES if (trained.HOME / name / trained.CARD).is_file()]


def served(gallery: Gallery) -> Iterator[str]:
    """The address of a server for it."""
    with bind("127.0.0.1", 0) as bound:
        server = make_server(gallery)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield address(bound).rstrip("/")
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of a gallery."""
    yield from served(Gallery(threads=1))


def test_every_model_has_a_card_with_pictures_and_a_way_to_it(site: str) -> None:
    with httpx.Client(base_url=site, timeout=60) as client:
        page = client.get("/").raise_for_status().text
        for name in NAMES:
            assert f'href="{name}/"' in page
            assert trained.card(name).finds.partition("&")[0][:20] in page
        for source in re.findall(r'(?:src|href)="((?:samples|static|gallery)[^"]*)"', page):
            assert client.get(f"/{source}").status_code == 200, source


def test_a_model_is_served_under_its_name_and_stays_as_it_is(site: str) -> None:
    name = NAMES[0]
    before = sorted(path.name for path in Path(trained.HOME / name).rglob("*"))
    with httpx.Client(base_url=site, timeout=60) as client:
        assert client.get(f"/{name}", follow_redirects=False).headers["location"] == f"{name}/"
        assert client.get(f"/{name}/").status_code == 200
        assert client.get(f"/{name}/static/main.js").status_code == 200
        model = client.get(f"/{name}/api/model").json()
        assert (model["name"], model["renaming"]) == (name, False)
        found = client.post(f"/{name}/api/decompose", json={"picture": 0}).json()
        assert len(found["scene"]["objects"]) > 0
        scene = {"size": found["scene"]["size"], "objects": []}
        assert client.put(f"/{name}/api/edits/0", json=scene).status_code == 403
        assert client.put(f"/{name}/api/names/0", json={"name": "x"}).status_code == 403
        assert client.get("/nothing/api/model").status_code == 404
        assert client.get("/nothing").status_code == 404
        large = client.post(
            f"/{name}/api/render", content=b"x" * (7 << 20), headers={"content-type": "application/json"}
        )
        assert large.status_code == 413, "limits are those of a model alone"
    assert sorted(path.name for path in Path(trained.HOME / name).rglob("*")) == before


def test_with_a_token_nothing_is_loaded_for_strangers() -> None:
    gallery = Gallery(token=Token(SECRET))
    for site in served(gallery):
        assert httpx.get(f"{site}/{NAMES[0]}/api/pictures").status_code == 401
        assert httpx.get(f"{site}/").status_code == 401
        assert gallery._apps == {}
        own = {"Authorization": f"Bearer {SECRET}"}
        assert httpx.get(f"{site}/{NAMES[0]}/api/pictures", headers=own, timeout=60).status_code == 200
