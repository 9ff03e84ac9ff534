from __future__ import annotations

import io
from contextlib import suppress

import pytest
from rich.console import Console

from evalmeta.report.progress import JobProgress


def test_a_terminal_shows_the_progress_of_a_job(terminal: Console) -> None:
    _show(terminal)
    assert "Deployment 0Af1: InProgress, 2 of 7" in _printed(terminal)


def test_a_job_without_counts_shows_its_status(terminal: Console) -> None:
    with JobProgress(terminal, "Retrieve", enabled=True) as progress:
        progress.update("Pending")
    assert "Retrieve: Pending" in _printed(terminal)


@pytest.mark.parametrize("environment", [{}, {"TERM": "dumb"}])
def test_nothing_is_shown_without_a_terminal(pipe: Console, environment: dict[str, str]) -> None:
    dumb = Console(file=io.StringIO(), force_terminal=bool(environment), _environ=environment)
    for console in (pipe, dumb):
        _show(console)
        assert not _printed(console)


def test_nothing_is_shown_when_it_is_not_enabled(terminal: Console) -> None:
    _show(terminal, enabled=False)
    assert not _printed(terminal)


def test_texts_of_an_org_are_cleaned(terminal: Console) -> None:
    with JobProgress(terminal, "Deploy", enabled=True) as progress:
        progress.update("\x1b[2J[red]Pending[/red]")
    assert "\x1b[2J" not in _printed(terminal)


def test_the_bar_goes_away_when_the_wait_is_interrupted(terminal: Console) -> None:
    with suppress(KeyboardInterrupt), JobProgress(terminal, "Deploy", enabled=True):
        raise KeyboardInterrupt
    assert "\x1b[?25h" in _printed(terminal)


def _show(console: Console, *, enabled: bool = True) -> None:
    with JobProgress(console, "Deployment 0Af1", enabled=enabled) as progress:
        progress.update("InProgress", 2, 7)


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
