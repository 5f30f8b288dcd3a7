"""Storage: a study opened in a database; whatever goes wrong with that is one sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from sqlalchemy import make_url
from sqlalchemy.exc import IntegrityError, ProgrammingError, SQLAlchemyError

from pcdnet.config import Config
from pcdnet.errors import PcdnetError, Setting
from pcdnet.training.tuning.sampling import ByNumber, first_values
from pcdnet.training.tuning.space import SearchSpace
from pcdnet.training.tuning.study import STORAGE_ERRORS, SharedStudy


@contextmanager
def open_study(
    url: str, name: str, space: SearchSpace, base: Config, *, seed: int, patience: float
) -> Iterator[SharedStudy]:
    """A study of a storage, made if need be; whatever goes wrong with the storage is one sentence."""
    former = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        storage = _storage(url)
        try:
            # Before that step prototypes are noisy, and errors say little.
            noisy = base.train.noise_steps if base.train.noise_steps < base.train.steps else 0
            study = optuna.create_study(
                storage=storage,
                study_name=name,
                sampler=ByNumber(seed, first_values(space, base)),
                pruner=optuna.pruners.MedianPruner(n_warmup_steps=noisy),
                load_if_exists=True,
            )
            yield SharedStudy(study, space, patience)
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except STORAGE_ERRORS as error:
        raise _unusable(url, error) from None
    finally:
        optuna.logging.set_verbosity(former)


def _storage(url: str) -> optuna.storages.RDBStorage:
    """The storage; of two processes that make its tables at the same moment one fails, and then finds them."""
    options: dict[str, Any] = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}
    for left in reversed(range(10)):
        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
        except (IntegrityError, ProgrammingError):
            if not left:
                raise
            time.sleep(0.2)
        except ImportError as error:
            raise PcdnetError(
                f"the storage {_without_password(url)} needs a database driver: {error.__cause__ or error}; for "
                f"PostgreSQL run: pip install 'psycopg[binary]', and begin with postgresql+psycopg:// in ",
                Setting("storage"),
            ) from None
        except RuntimeError as error:  # tables of another version of Optuna
            raise _unusable(url, error) from None
    raise AssertionError("the last try returns or raises")


def _unusable(url: str, error: Exception) -> PcdnetError:
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    words = str(getattr(cause, "orig", None) or cause).strip().partition("\n")[0]
    return PcdnetError(
        f"the storage {_without_password(url)} cannot be used: {words}; see to it and run the same again, or use "
        f"another ",
        Setting("storage"),
    )


def _without_password(url: str) -> str:
    with suppress(SQLAlchemyError, ValueError):
        return make_url(url).render_as_string(hide_password=True)
    return repr(url.rpartition("@")[2])
