from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

import report_runs as make
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
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


def test_a_run_that_a_baseline_decides_names_no_required_pass_rate() -> None:
    report = make.report(make.MIXED_CASES[0], make.MIXED_CASES[3], options=RunOptions(min_pass_rate=0.5))
    assert "  pass rate 100 % (required: at least 50 %)" in render([report])
    assert "(required" not in render([replace(report, baseline=make.compared().baseline)])


def test_a_run_without_cases_is_only_heading_and_summary() -> None:
    assert len(render([make.report()]).splitlines()) == 4


def test_an_utterance_cannot_add_a_line() -> None:
    forged = make.report(make.case(1, Verdict.PASS, utterance="hello\nok        2 all is well"))
    assert "ok        1 hello ok 2 all is well\n" in render([forged], detail="all")


@given(st.lists(make.reports, max_size=2))
@example([make.report_of(replace(make.run(make.PASSED), id=f"{number}\x1f")) for number in range(2)])
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
    assert ("0 of 2 runs passed\n  10 cases: 0 passed, 2 partly judged" in render(runs)) == (total == 2)


def test_the_verdict_stands_last_after_a_list_of_what_failed() -> None:
    *_, failed, error, failed_too, blank, verdict, counts = render([make.mixed()]).splitlines()
    assert failed.startswith(f"FAILED {make.FILE}:20  case 2  topic_sequence_match: expected the topic Returns")
    assert error == f"ERROR  {make.FILE}:34  case 3  the agent did not answer within 120 s"
    assert failed_too.startswith(f"FAILED {make.FILE}:62  case 5  ")
    assert (blank, verdict) == ("", "Returns_Desk not passed: 1 case ended in an error; 2 cases failed")
    assert counts.endswith("5 cases: 0 passed, 1 partly judged, 2 failed, 1 error, 1 undecided; took 3.2 s")


def test_closing_sentences_stand_between_the_list_and_the_verdict() -> None:
    lines = render([make.mixed()], closing=["To run them again: evalmeta"]).splitlines()
    assert lines[-5:-2] == ["", "To run them again: evalmeta", ""]


def test_quiet_reports_are_only_the_verdict() -> None:
    assert render([make.mixed()], detail="verdict").splitlines() == render([make.mixed()]).splitlines()[-2:]
    runs = [make.report(make.MIXED_CASES[4])] * 25
    lines = render([*runs, make.report(make.PASSED)], detail="verdict").splitlines()
    assert lines[19:21] == ["Returns_Desk not passed: 1 case failed", "... and 5 more runs did not pass"]
    assert lines[21:] == ["1 of 26 runs passed", "  26 cases: 1 passed, 25 failed, 0 errors, 0 undecided; took 3.2 s"]


def test_passes_are_counts_unless_all_is_asked_for() -> None:
    assert "partly    1 How long" not in render([make.mixed()])
    assert "partly    1 How long may I return what I bought? (undecided: coherence)\n" in render(
        [make.mixed()], detail="all"
    )


def test_a_suite_has_one_line_for_a_run_that_passed() -> None:
    first, *others = render([make.report(make.PASSED), make.mixed()]).splitlines()
    assert first == "ok Returns_Desk: 1 passed, run 4KB000000000001GAA, took 3.2 s"
    assert others[:2] == ["", "Returns_Desk: subject Returns_Agent v2, run 4KB000000000001GAA"]


def test_a_suite_that_passed_says_once_why_results_are_undecided() -> None:
    text = render([make.report(make.MIXED_CASES[0])] * 3)
    assert text.count("undecided results (never count as passed)") == 1
    assert "coherence, 3 results:" in text
    assert "ok Returns_Desk: 0 passed, 1 partly judged, run " in text
    assert "  3 cases: 0 passed, 3 partly judged, 0 failed" in text


def test_a_run_that_passes_with_undecided_results_says_how_to_be_stricter() -> None:
    text = render([make.report(make.MIXED_CASES[0])])
    assert "To be stricter, use --undecided fail or --min-decided." in text
    assert "An LLM rater can judge more of them: add one to evalmeta.toml (docs/rating.md) and use --rater." in text
    assert "--min-decided" not in render([make.mixed()])


def test_a_terminal_does_not_break_the_lines_that_are_copied(terminal: Console) -> None:
    command = "To run only these again: evalmeta test run " + "--api-name A_Name " * 10
    print_human([make.mixed()], terminal, closing=[command.strip()])
    assert f"{command.strip()}\n" in _printed(terminal)
    assert f"\n{make.FILE}:20\n" in _printed(terminal)


def test_a_terminal_of_80_columns_breaks_no_place_and_indents_what_does_not_fit() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None, _environ={})
    print_human([make.mixed()], terminal)
    lines = _printed(terminal).splitlines()
    places = [f"{make.FILE}:{line}" for line in make.LINES.values()]
    assert {line.split()[-1] for line in lines if len(line) > terminal.width} <= set(places)
    place = lines.index(f"FAILED {make.FILE}:20")
    assert lines[place + 1] == "       case 2  topic_sequence_match: expected the topic Returns, got Orders (and"


def test_a_rating_is_shown_with_the_best_one() -> None:
    assert "rated     1 of 5 by rules\n" in render([make.mixed()])


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
