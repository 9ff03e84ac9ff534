"""The command line, called in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from cli.team import Team
from evalmeta.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def evalmeta(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs a command and gives exit code, stdout and stderr."""

    def run(*arguments: str) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(arguments)
        captured = capsys.readouterr()
        return Outcome(int(left.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """Gives two copies of a project with an org in common; the current folder is mine."""
    made = Team(tmp_path, monkeypatch)
    made.go("mine")
    return made
