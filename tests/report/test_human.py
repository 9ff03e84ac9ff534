from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import report_runs as make
from evalmeta.model.run import RunOptions, Verdict
from evalmeta.report.human import render
from evalmeta.report.tables import print_human
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.report.report import Report


def test_conversations_human(snapshot: str) -> None:
    assert render([make.conversations()]) == snapshot


def test_mixed_run(snapshot: str) -> None:
    assert render([make.mixed()]) == snapshot


def test_several_runs(snapshot: str) -> None:
    assert render([make.rated(0.7), make.rated(0.8), make.broken_off()]) == snapshot


def test_strict_run(snapshot: str) -> None:
    assert render([make.report(*make.MIXED_CASES[:1], options=RunOptions(undecided="fail"))]) == snapshot


def test_an_undecided_run_with_a_rate_says_that_there_is_none() -> None:
    report = make.report(make.MIXED_CASES[3], options=RunOptions(min_pass_rate=0.5))
    assert "  pass rate none, no case was judged (required: at least 50 %)\n" in render([report])


def test_a_run_without_cases_is_only_heading_and_summary() -> None:
    assert len(render([make.report()]).splitlines()) == 5


def test_an_utterance_cannot_add_a_line() -> None:
    forged = make.report(make.case(1, Verdict.PASS, utterance="hello\nok        2 all is well"))
    assert "ok        1 hello ok 2 all is well\n" in render([forged])


@given(st.lists(make.reports, max_size=2))
def test_pipes_get_no_control_characters(reports: list[Report]) -> None:
    text = render(reports)
    assert clean(text) == text


@given(st.lists(make.reports, max_size=2))
def test_terminals_get_no_control_characters_of_texts(reports: list[Report]) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None, _environ={})
    print_human(reports, terminal)
    text = _printed(terminal)
    assert clean(text) == text


def test_a_terminal_shows_what_a_pipe_shows() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None, _environ={})
    print_human([make.mixed(), make.mixed()], terminal)
    assert set(render([make.mixed(), make.mixed()]).split()) <= set(_printed(terminal).split())


def test_a_terminal_shows_iterations_where_there_are_several(terminal: Console) -> None:
    print_human([make.rated(0.7)], terminal)
    assert "FAILED 2 (iteration 2)" in _printed(terminal)


def test_a_terminal_shows_colour(terminal: Console) -> None:
    print_human([make.mixed()], terminal)
    assert "\x1b[1;31mFAILED" in _printed(terminal)


def test_markup_in_an_utterance_is_text(terminal: Console) -> None:
    print_human([make.report(make.case(1, Verdict.FAILURE, make.TOPIC_FAILED, utterance="[red]stop[/red]"))], terminal)
    assert "[red]stop[/red]" in _printed(terminal)


def test_a_pipe_gets_plain_lines(pipe: Console) -> None:
    print_human([make.mixed()], pipe)
    assert _printed(pipe) == render([make.mixed()])


@pytest.mark.parametrize("total", [1, 2])
def test_the_last_line_counts_runs_if_there_are_several(total: int) -> None:
    runs = [replace(make.mixed())] * total
    assert ("2 runs with 10 cases: 0 passed, 2 did not pass\n" in render(runs)) == (total == 2)


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
