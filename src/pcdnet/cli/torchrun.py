"""torchrun: `pcdnet train` in several processes: the first is the command as ever, the others work for it unheard."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress

from pcdnet.errors import Elsewhere, Interrupted, PcdnetError, Setting
from pcdnet.training.launch import world_size

HELP = {"--help", "--help-all", "-h", "--version"}


def check_alone(arguments: Sequence[str]) -> None:
    """Refuse what several processes cannot do together."""
    if world_size() > 1 and arguments[:1] != ["train"] and not HELP & set(arguments):
        command = arguments[0] if arguments else "help"
        raise PcdnetError(f"torchrun started {world_size()} processes of one training; start {command} without it")


def check_one_seed(seeds: str | None) -> None:
    """Refuse several seeds, each of which would be trained in processes of its own."""
    if world_size() > 1:
        what = Setting("seeds", seeds) if seeds is not None else "this folder of several seeds"
        raise PcdnetError(
            what, f" would start processes in each of the {world_size()} that torchrun started; leave out one of them"
        )


def take_part(arguments: Sequence[str]) -> int:
    """Be another process than the first, which says what is trained; the exit code is 0 if it also says what failed."""
    if arguments[:1] != ["train"] or HELP & set(arguments):
        return 0
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--device", default="cpu")
    given, _ = early.parse_known_args(arguments)
    with suppress(Elsewhere, Interrupted, KeyboardInterrupt):
        from pcdnet.cli.signals import stop_on_signal
        from pcdnet.training.fit import fit

        with stop_on_signal(quiet=True) as stop:
            fit(device=given.device, quiet=True, stop=stop)
    return 0
