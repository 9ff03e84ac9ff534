from __future__ import annotations

import io
import re
from contextlib import suppress
from types import SimpleNamespace

import pytest
from rich.console import Console

from evalmeta.report.progress import JobProgress, Progress

RUN = "4KB000000000001GAA"


def test_a_pipe_gets_a_first_and_a_last_line(pipe: Console) -> None:
    _show(pipe)
    assert _printed(pipe) == (
        "Orders (run 4KB000000000001GAA): started, 20 cases\n"
        "Orders (run 4KB000000000001GAA): finished, 20 of 20 cases, 2 not passed\n"
    )


def test_the_number_of_cases_may_become_known_later(pipe: Console, terminal: Console) -> None:
    for console in (pipe, terminal):
        with Progress(console, enabled=True) as progress:
            progress.start(RUN, 0, "Orders")
            progress.update(RUN, 2, total=2)
            progress.finish(RUN)
    assert _printed(pipe) == (
        "Orders (run 4KB000000000001GAA): started\n"
        "Orders (run 4KB000000000001GAA): finished, 2 of 2 cases, 0 not passed\n"
    )


def test_a_terminal_gets_a_bar(terminal: Console) -> None:
    _show(terminal)
    assert "Orders" in _printed(terminal)
    assert "started" not in _printed(terminal)


def test_a_log_has_no_line_for_each_run_of_a_suite(pipe: Console) -> None:
    with Progress(pipe, enabled=True, runs=2) as progress:
        for run in (RUN, "4KB000000000002GAA"):
            progress.start(run, 1, "Orders")
            progress.finish(run)
    assert not _printed(pipe)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_is_shown_when_it_is_not_enabled(*, is_terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, _environ={})
    _show(console, enabled=False)
    assert not _printed(console)


def test_a_dumb_terminal_gets_plain_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    _show(console)
    assert _printed(console).startswith("Orders (run 4KB000000000001GAA): started")


def test_labels_are_cleaned(pipe: Console, terminal: Console) -> None:
    for console in (pipe, terminal):
        _show(console, label="\x1b[2J[red]Orders[/red]")
        assert "\x1b[2J" not in _printed(console)


def test_a_run_whose_cases_run_differently_often_counts_results(pipe: Console) -> None:
    with Progress(pipe, enabled=True) as progress:
        progress.start(RUN, 7, "Orders", iterations=0)
        progress.update(RUN, 7)
        progress.finish(RUN)
    assert "started, 7 case results\n" in _printed(pipe)
    assert "7 of 7 case results" in _printed(pipe)


def test_a_run_in_several_iterations_counts_cases_at_the_start_and_results_at_the_end(pipe: Console) -> None:
    with Progress(pipe, enabled=True) as progress:
        progress.start(RUN, 12, "Orders", iterations=3)
        progress.update(RUN, 12, failed=1)
        progress.finish(RUN)
    assert _printed(pipe) == (
        "Orders (run 4KB000000000001GAA): started, 4 cases x 3 iterations\n"
        "Orders (run 4KB000000000001GAA): finished, 12 of 12 case results, 1 not passed\n"
    )


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("total", [1, 99_999])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_long_name_is_shortened_and_never_the_id(width: int, total: int, *, is_terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=width, color_system=None, _environ={})
    with Progress(console, enabled=True) as progress:
        progress.start(RUN, total, "Orders_of_the_desk_" * 20)
        progress.update(RUN, total, failed=total)
        progress.finish(RUN)
    printed = _printed(console)
    assert printed.count(f"… (run {RUN})") >= 1
    assert printed.count("(run ") == printed.count(f"(run {RUN})")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_id_of_a_job_is_never_cut_off(width: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, _environ={})
    with JobProgress(console, "Deployment 0Af000000000001AAA", enabled=True) as progress:
        progress.update("InProgress", 3, 20)
    assert "Deployment 0Af000000000001AAA" in _printed(console)


def test_the_bars_go_away_when_the_run_is_interrupted(terminal: Console) -> None:
    with suppress(KeyboardInterrupt), Progress(terminal, enabled=True) as progress:
        progress.start(RUN, 3, "Orders")
        raise KeyboardInterrupt
    assert "\x1b[?25h" in _printed(terminal)


SECOND = "4KB000000000002GAA"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have passed, which only the test changes."""
    now = [1000.0]
    monkeypatch.setattr("evalmeta.report.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_log_shows_every_30_seconds_that_a_run_is_alive_though_nothing_finishes(
    pipe: Console, clock: list[float]
) -> None:
    with Progress(pipe, enabled=True) as progress:
        progress.start(RUN, 20, "Orders")
        for _ in range(65):
            clock[0] += 1
            progress.update(RUN, 5, 2, errors=1, undecided=1)
    _, *lines = _printed(pipe).splitlines()
    counts = "5 of 20 cases, 2 passed, 1 failed, 1 undecided, 1 error"
    assert lines == [
        f"Orders (run {RUN}): {counts}, 10.0/min, about 2 min left",
        f"Orders (run {RUN}): {counts}, 5.0/min, about 3 min left",
    ]


def test_the_first_line_of_a_suite_counts_all_of_its_runs(pipe: Console, clock: list[float]) -> None:
    with Progress(pipe, enabled=True, runs=4) as progress:
        for run_id in (RUN, SECOND):
            progress.start(run_id, 3, "Orders")
            progress.update(run_id, 3, 1)
            progress.finish(run_id, failed=1, undecided=0)
            clock[0] += 15
        progress.start("4KB000000000003GAA", 3, "Orders")
        progress.update("4KB000000000003GAA", 0)
        before = progress.counts
        progress.update("4KB000000000003GAA", 3)
    assert (before[:11], progress.counts[:11]) == ("2 of 4 runs", "3 of 4 runs")
    assert _printed(pipe).splitlines()[-1] == "2 of 4 runs, 6 cases, 4 passed, 2 failed, 12.0/min, about 30 s left"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (120, "1 of 2 runs, 4 of 6 cases, 1 passed, 1 failed, 1 undecided, 1 error, 24.0/min, about 5 s left"),
        (80, "4 of 6 cases, 1 passed, 1 failed, 1 undecided, 1 error, about 5 s left"),
        (60, "4 of 6 cases, 1 passed, 1 failed, 1 undecided, 1 error"),
        (40, "4 of 6 cases, 1 passed, 1 failed"),
    ],
)
def test_the_first_line_of_a_suite_fits_the_terminal(clock: list[float], width: int, line: str) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, _environ={})
    with Progress(console, enabled=True, runs=2) as progress:
        for run_id in (RUN, SECOND):
            progress.start(run_id, 3, "Orders")
        progress.update(RUN, 3, 2, errors=1)
        progress.finish(RUN)
        progress.update(SECOND, 1, undecided=1)
        clock[0] += 10
    assert f"{line}\n" in re.sub(r" *\r?\n", "\n", _printed(console))


def _show(console: Console, *, enabled: bool = True, label: str = "Orders") -> None:
    with Progress(console, enabled=enabled) as progress:
        progress.start(RUN, 20, label)
        progress.update(RUN, 10)
        progress.update(RUN, 20, failed=2)
        progress.finish(RUN)


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
