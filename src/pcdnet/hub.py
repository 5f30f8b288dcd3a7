"""Hub: models of the Hugging Face Hub by their address, `hf:owner/name` or `hf:owner/name@revision`.

What is fetched comes from strangers. Only files that a model has are asked for, by names that are ours; each is refused
when it is larger than such a file can be, read no further than the Hub says that it is long, compared with the Hub's
own checksum, and kept in the user's cache, whole or not at all. Nothing is ever a pickle. What is kept is used without
a network, and never changed. Needs the extra `hub`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcdnet.data.keeping import cache
from pcdnet.data.notes import to_stderr
from pcdnet.errors import PcdnetError
from pcdnet.files import folder, whole_file
from pcdnet.model.storage import CONFIG, WEIGHTS
from pcdnet.names import FILE as NAMES
from pcdnet.origin import FILE as ORIGIN
from pcdnet.progress import phase

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PREFIX = "hf:"
"""How addresses of the Hub begin."""
VERDICT = "verdict.json"
"""The file that says whether training worked."""
MOST: Mapping[str, int] = {
    WEIGHTS: 2**30,
    NAMES: 2**20,
    ORIGIN: 2**20,
    VERDICT: 2**20,
    CONFIG: 2**20,
}
"""The files that are fetched, with how many bytes each may have; the one without which there is no run comes last."""
PATIENCE = 30.0
"""Seconds to wait for a word of the Hub."""
ENDPOINT = "HF_ENDPOINT"
"""The environment variable that names another Hub, for example one of a company."""

_ADDRESS = re.compile(
    r"hf:([A-Za-z0-9][\w.-]{0,95})/([A-Za-z0-9][\w.-]{0,95})(?:@([A-Za-z0-9][\w./-]{0,199}))?", re.ASCII
)
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a model is on the Hub.

    Examples
    --------
    >>> Address.parse("hf:me/coins@v2")
    Address(owner='me', name='coins', revision='v2')
    """

    owner: str
    """Whose it is."""
    name: str
    """What it is called."""
    revision: str = "main"
    """The branch, tag or commit."""

    @staticmethod
    def parse(text: str) -> Address:
        """The address that a text is, with or without `hf:`."""
        given = text if text.startswith(PREFIX) else f"{PREFIX}{text}"
        found = _ADDRESS.fullmatch(given)
        if found is None or ".." in given or "--" in found[2] or given.endswith((".git", ".")):
            raise PcdnetError(f"{text!r:.100} is no address on the Hub; write hf:owner/name or hf:owner/name@revision")
        return Address(found[1], found[2], found[3] or "main")

    @property
    def repository(self) -> str:
        """The name of the repository."""
        return f"{self.owner}/{self.name}"

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}{'' if self.revision == 'main' else f'@{self.revision}'}"


def is_address(name: object) -> bool:
    """Whether a name is an address of the Hub."""
    return str(name).startswith(PREFIX)


def is_kept(path: Path) -> bool:
    """Whether a folder is a copy of a model of the Hub, which stays as it is."""
    return path.absolute().is_relative_to(cache("hub").absolute())


def check_kept(path: Path) -> None:
    """Refuse to write into the copy of a model of the Hub."""
    if is_kept(path):
        raise PcdnetError(
            f"{path.name} is a copy of a model of the Hub and stays as it is; copy it with `pcdnet models "
            f"hf:OWNER/{path.name} --out FOLDER`, and change the copy"
        )


def fetched(address: str) -> Path:
    """The folder of a model in the user's cache; fetched if need be, or as it was last if the Hub is not there."""
    where = Address.parse(address)
    home = cache("hub") / f"{where.owner}--{where.name}"
    note = home / "refs" / hashlib.sha256(where.revision.encode()).hexdigest()[:24]
    if _COMMIT.fullmatch(where.revision) and (kept := home / where.revision / where.name / CONFIG).is_file():
        return kept.parent
    try:
        with reported(where):
            api = connected()
            about = api.model_info(where.repository, revision=where.revision, files_metadata=True, timeout=PATIENCE)
    except Unreachable as error:
        with suppress(OSError, ValueError):
            commit = note.read_text(encoding="ascii").strip()
            if _COMMIT.fullmatch(commit) and (home / commit / where.name / CONFIG).is_file():
                to_stderr(f"the Hub cannot be reached; {where} is used as it was when it was fetched last")
                return home / commit / where.name
        raise error from None
    commit = str(about.sha)
    if not _COMMIT.fullmatch(commit):
        raise PcdnetError(f"what answers for {where} is no Hub; check the environment variable {ENDPOINT}")
    place = home / commit / where.name
    if not (place / CONFIG).is_file():
        _fetch(api, where, commit, _files(where, about.siblings or []), place)
    folder(note.parent)
    with whole_file(note, shared=True) as file:
        file.write(commit.encode())
    return place


class Unreachable(PcdnetError):
    """The Hub, or a way to it, is not there."""


def connected() -> HfApi:
    """The Hub, through its own client."""
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise Unreachable(
            "the Hub needs the package huggingface_hub, which is missing; pip install 'pcdnet[hub]'"
        ) from None
    return HfApi(endpoint=os.environ.get(ENDPOINT) or None, library_name="pcdnet")


@contextmanager
def reported(where: Address) -> Iterator[None]:
    """Whatever the Hub and the way to it say is wrong, in one sentence; the Hub's own words may be anything."""
    try:
        with phase(f"waiting for the Hub, {where}"):
            yield
    except PcdnetError:
        raise
    except Exception as error:  # of the client, of what it calls, of the system
        raise _in_words(where, error) from None


def _in_words(where: Address, error: Exception) -> PcdnetError:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    status = getattr(getattr(error, "response", None), "status_code", None)
    if "OfflineModeIsEnabled" in kinds:
        return Unreachable(f"{where} is on the Hub, and HF_HUB_OFFLINE is set; unset it, or name a folder instead")
    if "GatedRepoError" in kinds:
        return PcdnetError(f"{where} is open only to those whom its owner lets in; ask there, then run: hf auth login")
    if "RevisionNotFoundError" in kinds:
        return PcdnetError(f"{where.repository} has no revision {where.revision!r}; leave it out, or name another")
    if "RepositoryNotFoundError" in kinds or status in (401, 403, 404):
        return PcdnetError(
            f"the Hub shows no {where.repository} to you; check the name or, if you may, run: hf auth login"
        )
    if status is not None and status < 500:
        return PcdnetError(f"the Hub refuses {where} (status {status}); check the name and what your account may do")
    if not kinds & {"OSError", "TransportError", "HTTPError"}:
        cause = type(error.__cause__ or error).__name__
        return PcdnetError(f"the Hub's client failed at {where} ({cause}); try again, or update huggingface_hub")
    return Unreachable(
        f"the Hub cannot be reached for {where} ({type(error).__name__}); check the network, then try again"
    )


def _files(where: Address, siblings: list[Any]) -> dict[str, Any]:
    """What the Hub says of a model's files, by name, if they can be those of one."""
    known = {each.rfilename: each for each in siblings if each.rfilename in MOST}
    for name in (CONFIG, WEIGHTS):
        if name not in known:
            raise PcdnetError(f"{where} is no model of pcdnet: it has no {name}; name another, or `pcdnet push` one")
    for name, each in known.items():
        if type(each.size) is not int or not 0 <= each.size <= MOST[name]:
            limit = f"{MOST[name] // 2**20} MiB"
            raise PcdnetError(
                f"{name} of {where} has {each.size} bytes, and at most {limit} are read; name another model"
            )
    return known


def _fetch(api: HfApi, where: Address, commit: str, files: Mapping[str, Any], place: Path) -> None:
    """Fetch all files of a model, the one that makes it a run last."""
    to_stderr(f"fetching {where} ({sum(each.size for each in files.values()) / 1e6:.1f} MB)")
    folder(place)
    for name in MOST:
        if name in files:
            with reported(where):
                content = content_of(api, where, commit, name, files[name].size)
            if not _is_sound(content, files[name]):
                raise PcdnetError(f"{name} of {where} is not what its checksum says; try again, or name another model")
            cure = "make room, or set the environment variable PCDNET_CACHE to another folder"
            with whole_file(place / name, cure, shared=True) as file:
                file.write(content)


def content_of(api: HfApi, where: Address, revision: str, name: str, size: int) -> bytes:
    """What a file of the Hub holds, read no further than it is said to be long."""
    from huggingface_hub import hf_hub_url

    client: Any = import_module("huggingface_hub.utils")
    url = hf_hub_url(where.repository, name, revision=revision, endpoint=api.endpoint)
    headers = {**client.build_hf_headers(library_name="pcdnet"), "Accept-Encoding": "identity"}
    parts, length = list[bytes](), 0
    with client.get_session().stream("GET", url, headers=headers, timeout=PATIENCE) as answer:
        client.hf_raise_for_status(answer)
        for part in answer.iter_raw(2**16):
            parts.append(part)
            length += len(part)
            if length > size:
                break
    if length != size:
        raise PcdnetError(
            f"{name} of {where} is not {size} bytes long, as the Hub says; try again, or name another model"
        )
    return b"".join(parts)


def _is_sound(content: bytes, said: Any) -> bool:
    """Whether a file has the checksum that the Hub says: that of large files, or the one by which git knows others."""
    if said.lfs is not None:
        return hashlib.sha256(content).hexdigest() == str(said.lfs.sha256)
    known = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return known == str(said.blob_id)
