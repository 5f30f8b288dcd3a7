"""`pcdnet serve`: a run in the browser."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import tyro

from pcdnet.cli.arguments import Device, RunData
from pcdnet.errors import PcdnetError
from pcdnet.progress import phase

NEEDED = ("fastapi", "uvicorn", "python_multipart")
"""Packages that nothing but this command needs."""

TokenOption = Annotated[
    str | None, tyro.conf.arg(metavar="TOKEN", help_behavior_hint="(default: $PCDNET_TOKEN, or none)")
]
ServedRun = Annotated[
    tyro.conf.Positional[Path | None],
    tyro.conf.arg(
        metavar="RUN",
        help="Folder of a run, as `pcdnet train --out` makes it, or the name of a trained model.",
        help_behavior_hint="(default: a page of all trained models)",
    ),
]
HostOption = Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True, kw_only=True)
class Serve:
    """See, question and edit what a run finds in images, in the browser; without RUN, the trained models."""

    folder: ServedRun = None

    port: int = 8350
    """Port of the page; 0 takes any that is free."""

    host: str = "127.0.0.1"
    """Address to serve on; 0.0.0.0 lets other machines in, who then may look and edit but not rename."""

    allow_host: HostOption = ()
    """Another name by which browsers may call this server, beside the machine's own; can be given several times."""

    token: TokenOption = None
    """Answer only those who know this, 16 characters or more; others on this machine see it in the list of processes,
    but not if it is in the environment variable PCDNET_TOKEN."""

    data: RunData = None

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise PcdnetError(f"`pcdnet serve` needs {missing[0]}, which is missing; run: pip install 'pcdnet[serve]'")
        with phase("loading the server"):
            from pcdnet.serve.access import TOKEN_VARIABLE, Token, is_local, known_hosts
            from pcdnet.serve.server import address, bind, make_server

        secret = self.token or os.environ.get(TOKEN_VARIABLE) or None
        token, hosts = None if secret is None else Token(secret), known_hosts(self.host, self.allow_host)
        with bind(self.host, self.port) as bound:
            local = is_local(self.host)
            with phase("loading the model"):
                app = self._app(local=local, threads=_cores(), hosts=hosts, token=token)
            if not local:
                print(_warning(self.host, secret), file=sys.stderr)
            page = address(bound) + ("" if secret is None else f"?token={secret}")
            what = self.folder or "the trained models"
            print(f"serving {what} at {page}   next: open it in a browser; Ctrl-C ends it", flush=True)
            with suppress(KeyboardInterrupt):
                make_server(app).run(sockets=[bound])
            print("ended", flush=True)
        gc.freeze()  # or Python, on its way out, looks through all of torch for garbage: a second
        if not app.state.desk.idle or app.state.busy():
            # Threads cannot be interrupted, and Python would wait for them; nobody waits for what they make.
            sys.stderr.flush()
            os._exit(0)

    def _app(self, **options: Any) -> Any:
        """The app of a run, or that of all trained models."""
        if self.folder is None:
            if self.data is not None:
                raise PcdnetError("--data is for one run, and none was named; name one, such as space-invaders")
            from pcdnet.serve.gallery import Gallery

            return Gallery(device=self.device, **options)
        from pcdnet.run import RunFolder
        from pcdnet.serve.app import create_app
        from pcdnet.serve.workbench import Workbench

        workbench = Workbench.for_run(RunFolder.open(self.folder), self.data, self.device)
        with phase("trying the search"):  # so that nobody waits in the browser for what is compiled once
            workbench.warm_up()
        if workbench.pictures is None:
            print(f"note: {self.folder} has no images to begin with; name some with --data", file=sys.stderr)
        return create_app(workbench, **options)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _warning(host: str, secret: str | None) -> str:
    """What whoever serves to other machines should know."""
    who = "every machine that reaches this one" if secret is None else "every machine that has the token"
    cure = "; give a --token, or use --host 127.0.0.1" if secret is None else ""
    return f"warning: serving on {host}: {who} can look and edit, and nothing is encrypted{cure}"
