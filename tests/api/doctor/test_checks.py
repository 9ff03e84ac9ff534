"""What the checks of `evalmeta doctor` find, without the processes that it carries them out in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.api.doctor.checks import Task, check
from evalmeta.model.store import STORE_VARIABLE
from postgres_servers import free_port

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "evalmeta.toml").touch()
    return tmp_path


def test_a_shared_store_that_cannot_be_reached_is_an_error_before_the_first_run(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STORE_VARIABLE, f"postgresql://ada@127.0.0.1:{free_port()}/team")
    status, message, action = check(Task("store", str(project)))
    assert status == "error"
    assert "/team cannot be reached: " in message
    assert action == "Check that the server runs and the address is right."


def test_results_that_wait_for_their_store_are_a_warning(project: Path) -> None:
    (project / ".evalmeta/unsent").mkdir(parents=True)
    (project / ".evalmeta/unsent/4KB000000000001GAA-01234567.results").touch()
    status, message, action = check(Task("store", str(project)))
    assert status == "warning"
    assert "results of 4KB000000000001GAA wait on this machine" in message
    assert action == "Send them: evalmeta test resume --unfinished"
