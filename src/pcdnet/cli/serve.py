"""`pcdnet serve`: a run in the browser."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pcdnet.cli.arguments import Device, ReportData, RunFolder
from pcdnet.cli.origin import Origin
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.scene import Scenes

SAMPLES = 16
"""Pictures that the page offers to begin with."""
NEEDED = ("fastapi", "uvicorn", "python_multipart")
"""Packages that nothing but this command needs."""


@dataclass(frozen=True, kw_only=True)
class Serve:
    """See, question and edit what a run finds in images, in the browser."""

    folder: RunFolder

    port: int = 8350
    """Port of the page; 0 takes any that is free."""

    host: str = "127.0.0.1"
    """Address to serve on; 0.0.0.0 lets other machines in, who then may look and edit but not rename."""

    data: ReportData = None

    device: Device = "cpu"

    def run(self) -> None:
        """Run the command."""
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise PcdnetError(f"`pcdnet serve` needs {missing[0]}, which is missing; run: pip install 'pcdnet[serve]'")
        from pcdnet.cli.model import load_model
        from pcdnet.serve.app import create_app
        from pcdnet.serve.server import address, bind, is_local, make_server
        from pcdnet.serve.workbench import Workbench

        with bind(self.host, self.port) as bound:
            model = load_model(self.folder, self.device)
            workbench = Workbench(folder=self.folder, model=model, samples=self.samples())
            app = create_app(workbench, local=is_local(self.host), threads=max(1, (os.cpu_count() or 1) // 2))
            print(f"serving {self.folder} at {address(bound)}   next: open it in a browser; Ctrl-C ends it", flush=True)
            try:
                make_server(app).run(sockets=[bound])
            except KeyboardInterrupt:
                print("ended")

    def samples(self) -> Scenes | None:
        """Pictures like those of the training; none where they are gone, unless they were asked for by name."""
        from pcdnet.data.opening import open_data
        from pcdnet.data.sources import TEST_SEED

        origin = Origin.read(self.folder)
        name = self.data or origin.data
        try:
            return open_data(name, count=SAMPLES, seed=TEST_SEED, view=origin.view(name))
        except PcdnetError:
            if self.data is not None:
                raise
            return None
