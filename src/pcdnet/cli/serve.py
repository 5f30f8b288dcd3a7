"""`pcdnet serve`: a run in the browser."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated

import tyro

from pcdnet.cli.arguments import Device, RunArgument, RunData
from pcdnet.errors import PcdnetError

NEEDED = ("fastapi", "uvicorn", "python_multipart")
"""Packages that nothing but this command needs."""

TokenOption = Annotated[
    str | None, tyro.conf.arg(metavar="TOKEN", help_behavior_hint="(default: $PCDNET_TOKEN, or none)")
]
HostOption = Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True, kw_only=True)
class Serve:
    """See, question and edit what a run finds in images, in the browser."""

    folder: RunArgument

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
        from pcdnet.run import RunFolder
        from pcdnet.serve.access import TOKEN_VARIABLE, Token, is_local, known_hosts
        from pcdnet.serve.app import create_app
        from pcdnet.serve.server import address, bind, make_server
        from pcdnet.serve.workbench import Workbench

        secret = self.token or os.environ.get(TOKEN_VARIABLE) or None
        token, hosts = None if secret is None else Token(secret), known_hosts(self.host, self.allow_host)
        with bind(self.host, self.port) as bound:
            workbench = Workbench.for_run(RunFolder.open(self.folder), self.data, self.device)
            if workbench.pictures is None:
                print(f"note: {self.folder} has no images to begin with; name some with --data", file=sys.stderr)
            local = is_local(self.host)
            if not local:
                print(_warning(self.host, secret), file=sys.stderr)
            app = create_app(workbench, local=local, threads=_cores(), hosts=hosts, token=token)
            page = address(bound) + ("" if secret is None else f"?token={secret}")
            print(f"serving {self.folder} at {page}   next: open it in a browser; Ctrl-C ends it", flush=True)
            with suppress(KeyboardInterrupt):
                make_server(app).run(sockets=[bound])
            print("ended", flush=True)
        gc.freeze()  # or Python, on its way out, looks through all of torch for garbage: a second
        if not app.state.desk.idle:
            # Threads cannot be interrupted, and Python would wait for them; nobody waits for what they make.
            sys.stderr.flush()
            os._exit(0)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _warning(host: str, secret: str | None) -> str:
    """What whoever serves to other machines should know."""
    who = "every machine that reaches this one" if secret is None else "every machine that has the token"
    cure = "; give a --token, or use --host 127.0.0.1" if secret is None else ""
    return f"warning: serving on {host}: {who} can look and edit, and nothing is encrypted{cure}"
