"""`pcdnet serve`: a run in the browser."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from pcdnet.cli.arguments import Device, RunArgument, RunData
from pcdnet.errors import PcdnetError

NEEDED = ("fastapi", "uvicorn", "python_multipart")
"""Packages that nothing but this command needs."""


@dataclass(frozen=True, kw_only=True)
class Serve:
    """See, question and edit what a run finds in images, in the browser."""

    folder: RunArgument

    port: int = 8350
    """Port of the page; 0 takes any that is free."""

    host: str = "127.0.0.1"
    """Address to serve on; 0.0.0.0 lets other machines in, who then may look and edit but not rename."""

    data: RunData = None

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise PcdnetError(f"`pcdnet serve` needs {missing[0]}, which is missing; run: pip install 'pcdnet[serve]'")
        from pcdnet.run import RunFolder
        from pcdnet.serve.app import create_app
        from pcdnet.serve.server import address, bind, is_local, make_server
        from pcdnet.serve.workbench import Workbench

        with bind(self.host, self.port) as bound:
            workbench = Workbench.for_run(RunFolder.open(self.folder), self.data, self.device)
            if workbench.samples is None:
                print(f"note: {self.folder} has no images to begin with; name some with --data", file=sys.stderr)
            app = create_app(workbench, local=is_local(self.host), threads=max(1, (os.cpu_count() or 1) // 2))
            print(f"serving {self.folder} at {address(bound)}   next: open it in a browser; Ctrl-C ends it", flush=True)
            try:
                make_server(app).run(sockets=[bound])
            except KeyboardInterrupt:
                print("ended")
