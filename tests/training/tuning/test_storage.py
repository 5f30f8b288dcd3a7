"""Laws of storages: several processes share one and lose nothing, and one that cannot be used takes one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

from pcdnet.errors import PcdnetError
from tests.training.tuning.studies import searched, shared, tuned

WORKER = [sys.executable, "-m", "tests.training.tuning.studies"]
TRIALS = 5


@pytest.fixture
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server of one's own, without any port, that is gone afterwards."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    program = found[-1] if found else shutil.which("initdb")
    if program is None:
        pytest.skip("needs PostgreSQL's initdb and pg_ctl; on Debian run: apt-get install postgresql")
    tools, options = Path(program).parent, dict[str, Any](check=True, capture_output=True)
    with tempfile.TemporaryDirectory() as folder:
        if os.getuid() == 0:  # PostgreSQL does not run as root
            shutil.chown(folder, user="nobody")
            options["user"] = "nobody"
        options["cwd"] = folder
        subprocess.run([tools / "initdb", "-D", "data", "-A", "trust", "-U", "pcdnet", "--no-sync"], **options)
        server = f"-k {folder} -c listen_addresses= -c fsync=off"
        subprocess.run([tools / "pg_ctl", "-D", "data", "-w", "-l", "log", "-o", server, "start"], **options)
        try:
            yield f"postgresql+psycopg://pcdnet@/postgres?host={folder}"
        finally:
            subprocess.run([tools / "pg_ctl", "-D", "data", "-m", "immediate", "stop"], **options)


def test_of_two_processes_on_one_postgresql_storage_one_is_killed_and_no_trial_is_lost(
    postgresql: str, tmp_path: Path
) -> None:
    def worker(name: str, hang: int) -> subprocess.Popen[str]:
        command = [*WORKER, str(tmp_path / name), str(TRIALS), postgresql, str(hang)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with worker("dies", 1) as dies:
        assert dies.stdout is not None
        assert dies.stdout.readline() == "hangs\n"
        with worker("lives", 0) as lives:
            assert lives.stdout is not None
            while not (tmp_path / "lives" / "best.toml").exists():  # both are at work
                assert lives.poll() is None
                time.sleep(0.05)
            dies.kill()
            assert lives.stdout.readline() == f"{TRIALS}\n"
    again = tuned(tmp_path / "again", TRIALS, storage=postgresql, name="killed").record  # there is nothing left to do
    lost = [trial for trial in again.trials if trial.ending == "interrupted"]
    assert len(again.finished) == TRIALS
    assert len(lost) == 1
    retried = [trial for trial in again.finished if trial.retry_of is not None]
    assert [(trial.retry_of, trial.values) for trial in retried] == [(lost[0].number, lost[0].values)]
    assert all(trial.error is not None for trial in again.finished)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql+psycopg://me:secret@localhost:1/none", "postgresql+psycopg://me:***@localhost:1/none cannot be"),
        ("sqlite:////no/such/folder/study.db", "unable to open database file"),
        ("no address", "'no address' cannot be used"),
        ("redis://localhost", "cannot be used"),
        ("oracle://me:secret@localhost/none", "needs a database driver: "),
    ],
)
def test_a_storage_that_cannot_be_used_takes_one_sentence(url: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="; .*storage$") as refused:
        tuned(tmp_path / "study", 1, storage=url)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_storage_that_breaks_down_loses_no_trial(tmp_path: Path) -> None:
    def cut_off(*_: object) -> float:
        raise optuna.exceptions.StorageInternalError("gone")

    with (
        pytest.raises(PcdnetError, match="cannot be used: .*; see to it and run the same again"),
        shared(tmp_path) as study,
    ):
        searched(study, tmp_path, 1, cut_off)
    with shared(tmp_path) as study:
        assert study.rescue() == [0]


def test_a_study_of_another_program_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    study = optuna.create_study(storage=url, study_name="theirs")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(PcdnetError, match="holds a study theirs of another program; give this one another name"):
        tuned(tmp_path / "study", 2, storage=url, name="theirs")
    assert len(tuned(tmp_path / "study", 1, storage=url).record.trials) == 1
