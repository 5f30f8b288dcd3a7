"""Learning: a run learns again in a process of its own, so that nobody who asks for anything waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.run import RunFolder
from pcdnet.serve.learning_messages import Figures, Learning, State
from pcdnet.serve.refusal import Refusal
from pcdnet.succession import CANDIDATE, discard
from pcdnet.training.relearning import Learned, adopt, candidate_of, restore

LONGEST_LINE = 1 << 20
"""Characters of a line of what the process says."""
GRACE, CLOSING = 1.5, 0.3
"""Seconds that the process has to end when it is asked to, and when the server is stopped; nothing is lost by force."""


class Relearning:
    """One process that learns again, at most, and what came of it."""

    def __init__(self, folder: Path, data: str | None = None) -> None:
        """`data` are what the server was told to show, for a run whose own are not known."""
        self.folder, self._data = folder, data
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._state: State = "idle"
        self._message = ""
        self._told: dict[str, Any] = {}
        self._begun = self._ended = 0.0
        self._model: tuple[int, PCDNet] | None = None
        if (folder / CANDIDATE).is_dir():  # of an earlier time
            with suppress(PcdnetError):
                if candidate_of(RunFolder.open(folder)) is not None:
                    self._state, self._message = "done", "this was learned again before; adopt or discard it"

    @property
    def busy(self) -> bool:
        """Whether the process is at work."""
        return self._state == "running"

    def start(self, minutes: float) -> None:
        """Begin; one that runs already is refused."""
        with self._lock:
            if self.busy:
                raise Refusal(409, "the run learns again already; wait for it, or cancel it")
            run = RunFolder.open(self.folder)
            run.check_changeable()
            RunFolder.check_idle(self.folder)
            command = [sys.executable, "-m", "pcdnet", "learn-again", str(self.folder), "--minutes", f"{minutes}"]
            command += ["--json"]
            if self._data is not None and run.origin.data is None:
                command += ["--data", self._data]
            self._model, self._told = None, {}
            said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  (its reader closes it)
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
            self._state, self._message = "running", "reading the pictures"
            self._begun = time.monotonic()
            follow = threading.Thread(target=self._follow, args=(self._process, said), daemon=True)
            follow.start()

    def cancel(self) -> None:
        """End the process, which leaves the run as it was, or discard what it made."""
        with self._lock:
            process, running = self._process, self.busy
            if running:
                self._state, self._message = "cancelled", "cancelled; the run is as it was"
        if running and process is not None:
            _end(process)
        run = RunFolder.open(self.folder)
        with RunFolder.locked(self.folder):
            discard(run.path, CANDIDATE)
        self._model, self._told = None, {}
        if not running:
            self._state, self._message = "idle", ""

    def adopt(self) -> None:
        """Have what was learned take the place of the run's model."""
        if self.busy:
            raise Refusal(409, "the run still learns; wait for it, or cancel it")
        adopt(self.folder)
        self._state, self._message, self._model, self._told = "idle", "adopted", None, {}

    def restore(self) -> None:
        """Have the former model come back."""
        if self.busy:
            raise Refusal(409, "the run learns again just now; wait for it, or cancel it")
        restore(self.folder)
        self._state, self._message, self._model, self._told = "idle", "the former model is back", None, {}

    def state(self) -> Learning:
        """How it goes."""
        run = RunFolder.open(self.folder)
        learned = self._learned(run) if self._state == "done" else None
        told, running = self._told, self.busy
        end = time.monotonic() if running else self._ended
        known = running and "step" in told
        return Learning(
            state=self._state,
            step=int(told.get("step", 0)),
            steps=int(told.get("steps", 0)),
            eta=float(told["eta"]) if known else None,
            seconds=max(0.0, end - self._begun) if self._begun else 0.0,
            loss=float(told["loss"]) if "loss" in told else None,
            message=self._message,
            before=None if learned is None else Figures(**asdict(learned.before)),
            after=None if learned is None else Figures(**asdict(learned.after)),
            reasons=[] if learned is None else list(learned.reasons),
            former=len(run.formers()),
        )

    def model(self) -> PCDNet:
        """The model that was learned again."""
        path = self.folder / CANDIDATE
        if self._state != "done" or not path.is_dir():
            raise Refusal(404, "nothing was learned again yet; POST to api/learning first")
        mark = path.stat().st_ino
        if self._model is None or self._model[0] != mark:
            self._model = mark, RunFolder.at(path).load_model()
        return self._model[1]

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.poll() is None:
            _end(self._process, CLOSING)

    def _learned(self, run: RunFolder) -> Learned | None:
        with suppress(PcdnetError):
            if (learned := candidate_of(run)) is not None:
                return learned
        self._state, self._message = "idle", "what was learned again is gone"
        return None

    def _follow(self, process: subprocess.Popen[str], said: TextIO) -> None:
        """Take in what the process says until it ends."""
        assert process.stdout is not None
        done = False
        while line := process.stdout.readline(LONGEST_LINE):
            with suppress(ValueError):
                words = json.loads(line)
                if isinstance(words, dict) and words.get("state") == "running":
                    self._told, self._message = words, f"step {words.get('step')} of {words.get('steps')}"
                    if words.get("step") == words.get("steps"):
                        self._message = "measuring what it has learned"
                done = done or (isinstance(words, dict) and words.get("state") == "done")
        code = process.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
        last = said.read().strip().rpartition("\n")[2].removeprefix("pcdnet: ")
        said.close()
        with self._lock:
            self._ended = time.monotonic()
            if self._process is not process or self._state != "running":
                return
            if code == 0 and done:
                self._state, self._message = "done", "learned again; look at before and after, then adopt or discard it"
            else:
                self._state, self._message = "failed", last or f"the process ended with exit code {code}"


def _end(process: subprocess.Popen[str], grace: float = GRACE) -> None:
    """Ask a process to end, and end it if it does not."""
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
