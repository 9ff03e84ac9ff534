"""Locks that the file system refuses, as some network drives do, end in an error and never in a torn state."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[1]
# What each script does after its locks are refused; databases that are open then stay open.
SCRIPT = """\
import sys
sys.path.insert(0, sys.argv[1])
from evalmeta import limits
limits.STORE_BUSY_SECONDS = 0.05
from pathlib import Path
from evalmeta import evaluate
from evalmeta.errors import StoreError
from evalmeta.store.database import open_database
from failing_locks import refuse_locks
def wrong_locks(): refuse_locks(int(sys.argv[2]))
try:
    {do}
except StoreError as error:
    print(type(error).__name__, error)
"""
OPEN = "wrong_locks(); open_database(Path('new'))"
COMMIT = """
    with open_database(Path('new')) as database:
        wrong_locks()
        database.execute("INSERT INTO counter VALUES ('a', 1)")
"""
JOURNAL = "wrong_locks(); evaluate([{'utterance': 'Hello', 'topic': 'Hi'}], lambda _: 'Hi', journal='journal')"


def call(script: str, folder: Path, error: int) -> str:
    command = [sys.executable, "-c", SCRIPT.format(do=script), str(TESTS), str(error)]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout


# In an open database, SQLite itself tries for 10 seconds (SQLITE_PROTOCOL).
@pytest.mark.parametrize(
    ("script", "error"),
    [
        (OPEN, errno.ENOLCK),
        (JOURNAL, errno.EACCES),
        pytest.param(COMMIT, errno.ENOLCK, marks=pytest.mark.slow),
        pytest.param(COMMIT, errno.EACCES, marks=pytest.mark.slow),
    ],
    ids=("open", "journal", "commit", "commit refused"),
)
def test_a_lock_that_the_file_system_refuses_is_not_taken_for_another_program(
    tmp_path: Path, script: str, error: int
) -> None:
    told = call(script, tmp_path, error)
    assert told.startswith("StoreError ")
    assert f"files on its file system cannot be locked ({os.strerror(error)})" in told


@pytest.mark.slow
def test_commands_say_that_files_cannot_be_locked_and_change_nothing(
    copy_samples: Callable[[], Path], program: list[str]
) -> None:
    database = copy_samples() / ".evalmeta" / "org.sqlite3"
    locks = [sys.executable, str(TESTS / "failing_locks.py"), str(errno.ENOLCK)]

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert run(*program, "deploy").returncode == 0
    before = database.read_bytes()
    for words in (["deploy"], ["retrieve"], ["test", "run", "--wait"]):
        told = run(*locks, *program, *words)
        assert told.returncode == 4, told
        assert "Set EVALMETA_HOME to a folder on a local disk." in told.stderr
    assert database.read_bytes() == before
    assert run(*program, "test", "run", "--wait").returncode == 0
