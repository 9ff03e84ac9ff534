"""The command line, called in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from evalmeta.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable


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
