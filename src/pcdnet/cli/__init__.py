"""The command line: results on stdout, progress and complaints on stderr; one file a command.

Exit codes: 0 fine; 1 a mistake that the user can cure, in one sentence; 2 wrong usage; 3 training ended, and its
verdict is `failed`; 130 interrupted; 141 nobody reads the results any more. Whatever takes long to import is
imported by the commands that need it.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

import tyro.extras

from pcdnet.cli.arguments import as_flag
from pcdnet.cli.bench import Bench
from pcdnet.cli.data import Data
from pcdnet.cli.decompose import Decompose
from pcdnet.cli.demo import Demo
from pcdnet.cli.evaluate import Evaluate
from pcdnet.cli.export import Export
from pcdnet.cli.figure import DrawFigure
from pcdnet.cli.gather import Gather
from pcdnet.cli.help import as_plain_help, helped, overview, unknown_command, wants_help
from pcdnet.cli.hide import Hide
from pcdnet.cli.learn_again import LearnAgain
from pcdnet.cli.merge import Merge
from pcdnet.cli.models import Models
from pcdnet.cli.push import Push
from pcdnet.cli.report import WriteReport
from pcdnet.cli.runs import Runs
from pcdnet.cli.serve import Serve
from pcdnet.cli.signals import interrupted_by_sigterm
from pcdnet.cli.torchrun import check_alone, take_part
from pcdnet.cli.train import Train, with_defaults, with_new_names
from pcdnet.cli.tune import Tune
from pcdnet.data.notes import printable
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.progress import phase, shown
from pcdnet.training.launch import present_rank


class Command(Protocol):
    """What the command line is parsed to: a dataclass that has its options as fields."""

    def run(self) -> int | None:
        """Run the command; the exit code, where it is not 0."""


COMMANDS: dict[str, type[Command]] = {
    "demo": Demo,
    "train": Train,
    "tune": Tune,
    "eval": Evaluate,
    "decompose": Decompose,
    "gather": Gather,
    "runs": Runs,
    "report": WriteReport,
    "figure": DrawFigure,
    "serve": Serve,
    "merge": Merge,
    "hide": Hide,
    "learn-again": LearnAgain,
    "models": Models,
    "export": Export,
    "push": Push,
    "bench": Bench,
    "data": Data,
}
"""Every command, by its name."""
LOADED = {
    "demo": "pcdnet.output.report",
    "train": "pcdnet.output.report",
    "tune": "pcdnet.training.tuning",
    "eval": "pcdnet.training.evaluation",
    "decompose": "pcdnet.output.decompose",
    "gather": "pcdnet.output.gather",
    "runs": "pcdnet.output.runs",
    "report": "pcdnet.output.report",
    "figure": "pcdnet.output.drawing",
    "serve": "pcdnet.run",
    "merge": "pcdnet.run",
    "export": "pcdnet.run",
    "push": "pcdnet.run",
    "bench": "pcdnet.run",
}
"""What commands need of the package that loads torch, which takes longer than anybody waits without a word."""
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM)
"""What the system says of disks that are full, failing or not to be written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process, and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    for name in ("stdout", "stderr"):  # None where the shell closed it: what goes there is not wanted
        setattr(sys, name, getattr(sys, name) or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that cannot be encoded is no reason to lose a result
        sys.stdout.reconfigure(errors="backslashreplace")
    code = None
    try:
        with interrupted_by_sigterm():
            try:
                code = run(arguments)
            finally:
                sys.stdout.flush()  # here, where a reader that went away can still be noticed
    except PcdnetError as error:
        return _complain(error.worded(as_flag), 130 if isinstance(error, Interrupted) else 1)
    except MemoryError:
        return _complain("there is not enough memory for so many images; ask for fewer", 1)
    except RuntimeError as error:
        if "allocate memory" not in str(error):  # as torch says that there is not enough
            raise
        return _complain("there is not enough memory for a model or images so large; use smaller ones", 1)
    except KeyboardInterrupt as interruption:
        return _complain(str(interruption) or "interrupted; nothing half-written is left", 130)
    except BrokenPipeError:
        _close_stdout()
        return 141
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return _complain(f"{str(error.filename)[:80]}... is too long a name; give a shorter one", 1)
        if error.errno not in DISK:
            raise
        _close_stdout()
        where = f" ({error.filename})" if error.filename else ""
        return _complain(f"a disk failed: {error.strerror}{where}; make room or check it, then try again", 1)
    return code or 0


def run(arguments: Sequence[str]) -> int | None:
    """Do what the arguments ask for; the exit code, where it is not 0."""
    if present_rank() > 0:
        return take_part(arguments)
    check_alone(arguments)
    if arguments == ["--version"]:
        import pcdnet

        print(f"pcdnet {pcdnet.__version__}")
        return None
    if arguments[:1] in ([], ["--help"], ["-h"], ["--help-all"]):
        print(overview(COMMANDS))
        return None
    if mistake := unknown_command(arguments[0], COMMANDS):
        return _complain(mistake, 2)
    with phase("starting"):
        command = parse(arguments)
    with shown():
        if arguments[0] in LOADED and "torch" not in sys.modules:
            with phase("loading PyTorch", at_once=True):
                import_module(LOADED[arguments[0]])
        return command.run()


def parse(arguments: Sequence[str]) -> Command:
    """The command that the arguments ask for; wrong usage ends the process with exit code 2."""
    arguments = with_new_names(arguments)
    # What training's options default to depends on the preset, so it is looked up before tyro reads the rest.
    training = with_defaults(arguments[1:] if arguments[:1] == ["train"] else [])
    commands: dict[str, Any] = {**COMMANDS, "train": training}
    if wants_help(arguments) and arguments[0] in commands:
        commands[arguments[0]] = helped(arguments[0], commands[arguments[0]], arguments)
    command: Command = tyro.extras.subcommand_cli_from_dict(
        commands,
        prog="pcdnet",
        description="Find the repeating objects in images without labels, and explain every image as a stack of them.",
        args=as_plain_help(arguments),
        config=(tyro.conf.FlagCreatePairsOff,),
    )
    return command


def _close_stdout() -> None:
    """Python flushes stdout once more on its way out: let it flush into nothing."""
    with suppress(OSError, ValueError):  # where it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, code: int) -> int:
    with suppress(OSError):  # a log on the disk that is full
        print(printable(f"pcdnet: {message}"), file=sys.stderr, flush=True)
    return code
