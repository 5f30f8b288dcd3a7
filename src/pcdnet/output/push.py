"""Push: a model as a repository of the Hugging Face Hub, with a card, so that `hf:owner/name` is a run anywhere.

What goes there is what a run needs to be used: configuration, weights, names, the verdict, and how images were looked
at; no path of the machine that it was trained on, and nothing to go on training from. All of it is one commit.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcdnet.data.sources import is_generated
from pcdnet.errors import PcdnetError
from pcdnet.files import content_of, sealed_toml, whole_file
from pcdnet.hub import MOST, VERDICT, Address, connected, reported
from pcdnet.hub import content_of as content_on_hub
from pcdnet.model.network import PCDNet
from pcdnet.model.storage import CONFIG, WEIGHTS
from pcdnet.origin import FILE as ORIGIN
from pcdnet.output.card import CARD, MARK, PICTURE, card
from pcdnet.output.drawing import figure
from pcdnet.output.figures import save_figure
from pcdnet.run import RunFolder

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from pcdnet.training.evaluation import Evaluation

LONGEST_CARD = 2**20
"""Bytes of a card that is looked at."""


def push(
    source: PCDNet | RunFolder | str | Path,
    to: str,
    *,
    private: bool = False,
    licence: str | None = None,
    scores: Evaluation | Mapping[str, Any] | None = None,
    message: str = "a model of pcdnet",
) -> str:
    """Put a model on the Hugging Face Hub, where `pcdnet.load("hf:owner/name")` finds it; needs the extra `hub`.

    The repository is made if need be. A card that a person has written there stays, one that this function wrote is
    written anew.

    Parameters
    ----------
    source
        A model, or a run: its folder, or a RunFolder.
    to
        The repository, `owner/name`, to which you must be allowed to write: by `hf auth login`, or the environment
        variable HF_TOKEN.
    private
        Whether a repository that is made for it is seen by its owner alone.
    licence
        What the card says that the model may be used for, as the Hub spells it (`mit`, `cc-by-4.0`); nothing by
        default.
    scores
        Scores for the card, as `pcdnet.evaluate` gives them.
    message
        What the commit is called.

    Returns
    -------
    str
        The address of the commit.

    Examples
    --------
    >>> import pcdnet
    >>> pcdnet.push("runs/missing", "me/coins")
    Traceback (most recent call last):
        ...
    pcdnet.errors.PcdnetError: runs/missing is no run: it holds no config.toml; ...
    """
    where = Address.parse(to)
    if where.revision != "main":
        raise PcdnetError(f"models are put on the branch main, and {to!r} names another; leave out @{where.revision}")
    known = scores.to_dict() if scores is not None and not isinstance(scores, Mapping) else scores
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run = prepare(source, folder)
        save_figure(figure(run, "prototypes"), folder / PICTURE)
        api = connected()
        with whole_file(folder / CARD) as file:
            file.write(card(run, where.repository, licence, known).encode())
        with reported(where):
            return _commit(api, where, folder, private=private, message=message)


def prepare(source: PCDNet | RunFolder | str | Path, folder: Path) -> RunFolder:
    """What a stranger needs of a model, in an empty folder; it is a run."""
    if isinstance(source, PCDNet):
        source.save(folder)
        return RunFolder.open(folder)
    run = RunFolder.open(source)
    model = run.load_model()  # which proves that the files are sound
    if run.has_origin:
        # A path says where somebody's files lie, and that is nobody's business.
        data = run.origin.data if run.origin.data is not None and is_generated(run.origin.data) else None
        origin = dataclasses.replace(run.origin, data=data, fingerprint=None)
        _write(folder / ORIGIN, origin.to_json().encode())
    for name in (VERDICT, WEIGHTS):
        if (run.path / name).is_file():
            _write(folder / name, content_of(run.path / name, MOST[name]))
    model.names.write(folder)
    _write(folder / CONFIG, sealed_toml(run.config.to_toml()).encode())
    return RunFolder.open(folder)


def _write(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


def _commit(api: HfApi, where: Address, folder: Path, *, private: bool, message: str) -> str:
    """Put the files of a folder into a repository, and take away those of ours that it has no more."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    api.create_repo(where.repository, private=private, exist_ok=True)
    there = {each.rfilename: each for each in api.model_info(where.repository, files_metadata=True).siblings or []}
    made = {path.name: path for path in folder.iterdir()}
    if CARD in there and MARK not in _text(api, where, there[CARD].size):
        del made[CARD]
    added = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=path) for name, path in sorted(made.items())]
    gone = [CommitOperationDelete(path_in_repo=name) for name in sorted(there.keys() & MOST.keys() - made.keys())]
    done = api.create_commit(where.repository, [*added, *gone], commit_message=message)
    return str(done.commit_url)


def _text(api: HfApi, where: Address, size: int | None) -> str:
    """The card that is there; one that cannot be looked at is somebody's own."""
    if size is None or size > LONGEST_CARD:
        return ""
    return content_on_hub(api, where, "main", CARD, size).decode(errors="replace")
