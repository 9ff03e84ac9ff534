from __future__ import annotations

import io
from contextlib import suppress

import pytest
from rich.console import Console

from evalmeta.report.progress import Progress


def test_a_pipe_gets_a_first_and_a_last_line(pipe: Console) -> None:
    _show(pipe)
    assert _printed(pipe) == "Orders: started, 20 cases\nOrders: finished, 20 of 20 cases, 2 not passed\n"


def test_the_number_of_cases_may_become_known_later(pipe: Console, terminal: Console) -> None:
    for console in (pipe, terminal):
        with Progress(console, enabled=True) as progress:
            progress.start("a", 0, "Orders")
            progress.update("a", 2, total=2)
            progress.finish("a")
    assert _printed(pipe) == "Orders: started\nOrders: finished, 2 of 2 cases, 0 not passed\n"


def test_a_terminal_gets_a_bar(terminal: Console) -> None:
    _show(terminal)
    assert "Orders" in _printed(terminal)
    assert "started" not in _printed(terminal)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_is_shown_when_it_is_not_enabled(*, is_terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, _environ={})
    _show(console, enabled=False)
    assert not _printed(console)


def test_a_dumb_terminal_gets_plain_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    _show(console)
    assert _printed(console).startswith("Orders: started")


def test_labels_are_cleaned(pipe: Console, terminal: Console) -> None:
    for console in (pipe, terminal):
        _show(console, label="\x1b[2J[red]Orders[/red]")
        assert "\x1b[2J" not in _printed(console)


def test_the_bars_go_away_when_the_run_is_interrupted(terminal: Console) -> None:
    with suppress(KeyboardInterrupt), Progress(terminal, enabled=True) as progress:
        progress.start("a", 3, "Orders")
        raise KeyboardInterrupt
    assert "\x1b[?25h" in _printed(terminal)


def _show(console: Console, *, enabled: bool = True, label: str = "Orders") -> None:
    with Progress(console, enabled=enabled) as progress:
        progress.start("a", 20, label)
        progress.update("a", 10)
        progress.update("a", 20, failed=2)
        progress.finish("a")


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
