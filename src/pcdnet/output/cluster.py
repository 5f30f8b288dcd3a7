"""Cluster: a function over many texts on Ray Data, on this machine or on a cluster that is there; quiet, and bounded.

Ray is imported when it is used. It reports nothing to its makers, shows no dashboard, and what it says of itself stays
in its own log files. Work whose process dies is done again by another one.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pcdnet.errors import PcdnetError, Setting
from pcdnet.progress import phase

PATIENCE = 10
"""Seconds in which a cluster has to answer."""
OBJECTS = 128 * 2**20
"""Bytes of memory that a cluster of our own keeps for what its processes hand on, which is next to nothing."""

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_worker_niceness": "0"}
_NEEDED = ("ray", "pyarrow", "pandas")
_SETTINGS = b"\x04"  # the kind of the first frame that either side of an HTTP/2 connection sends


def check_installed() -> None:
    """Refuse the work where Ray is missing."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise PcdnetError(f"the engine ray needs {missing[0]}, which is missing; run: pip install 'pcdnet[scale]'")


@contextmanager
def cluster(address: str | None = None) -> Iterator[Any]:
    """Ray, connected to the cluster of an address, or to one of our own that has all cores and ends with the block.

    Within a process that has started Ray already, that is used, and left as it is.
    """
    check_installed()
    with warnings.catch_warnings(), _environment(_QUIET):
        warnings.filterwarnings("ignore", module=r"ray(\.|$)")
        with phase("loading Ray"):
            ray = import_module("ray")
        if ray.is_initialized():
            if address is not None:
                raise PcdnetError("Ray is connected already in this process; leave out ", Setting("address"))
            yield ray
            return
        try:
            with phase("starting Ray" if address is None else "connecting to the cluster"):
                _start(ray, address)
            yield ray
        finally:
            with _uninterrupted():
                ray.shutdown()


def mapped(ray: Any, worker: type, given: tuple[Any, ...], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What processes made by `worker(*given)` return in the column `done` for rows, in the order in which it is done.

    Each process has a core. Rows whose process died are done again by another, for ever: `worker` must see to an end.
    """
    data = import_module("ray.data")
    context = data.DataContext.get_current().copy()
    context.enable_progress_bars = context.print_on_execution_start = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    most = max(1, min(len(rows), int(ray.cluster_resources().get("CPU", 1))))
    with data.DataContext.current(context):
        done = data.from_items(list(rows), override_num_blocks=len(rows)).map_batches(
            worker,
            batch_size=None,
            fn_constructor_args=given,
            compute=data.ActorPoolStrategy(min_size=1, max_size=most, initial_size=most),
            num_cpus=1,
        )
        for batch in done.iter_batches(batch_size=None, prefetch_batches=0):
            yield from map(str, batch["done"])


def _start(ray: Any, address: str | None) -> None:
    """Connect to a cluster, or start one; Ray's own way with signals is not ours."""
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is not None:
        _check_answer(address)
    main = threading.current_thread() is threading.main_thread()
    former = signal.getsignal(signal.SIGTERM)
    try:
        with _silent():
            if address is None:
                ray.init(include_dashboard=False, object_store_memory=OBJECTS, **quiet)
            else:
                ray.init(address=address, **quiet)
    except (Exception, SystemExit) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if address is None:
            raise PcdnetError(f"Ray cannot be started ({reason}); use ", Setting("engine", "local")) from None
        if "AuthenticationError" in str(error.__cause__):  # where an address is given, Ray looks for no token itself
            raise PcdnetError(
                f"the Ray cluster at {address} asks for a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN as there"
            ) from None
        raise _unanswered(address, reason) from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, former)


def _check_answer(address: str) -> None:
    """Refuse an address at which nothing, or no Ray, answers: Ray itself waits for minutes."""
    if address in ("auto", "local"):
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise PcdnetError(Setting("address", address), " is no address; give HOST:PORT of a Ray cluster, or auto")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE) as connection:
            answer = b"" if address.startswith("ray://") else _greeted(connection)
    except OSError as error:
        raise _unanswered(address, error.strerror or str(error)) from None
    if not address.startswith("ray://") and answer[3:4] != _SETTINGS:
        raise _unanswered(address, "it is no Ray")


def _greeted(connection: socket.socket) -> bytes:
    """The beginning of what a server says to a client of gRPC, which is how the processes of Ray talk."""
    if os.environ.get("RAY_USE_TLS", "0") != "0":
        return b"---" + _SETTINGS  # which would want a certificate first
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5))
    return connection.recv(9)


def _unanswered(address: str, reason: str) -> PcdnetError:
    return PcdnetError(
        f"no Ray cluster answers at {address} ({reason}); start one there, or leave out ", Setting("address")
    )


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """The environment with these values, unless people have set others."""
    new = [name for name in values if name not in os.environ]
    os.environ.update({name: values[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


@contextmanager
def _silent() -> Iterator[None]:
    """Let Ray's core not write on our stderr that it was asked to be quiet."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let no second Ctrl-C leave processes behind."""
    main = threading.current_thread() is threading.main_thread()
    former = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, former)
