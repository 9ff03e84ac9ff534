from __future__ import annotations

import io
from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

import report_runs as make
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.report.human import Limits, find, limits_of, stream
from evalmeta.report.terminal import print_human
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.report.report import Report


def render(reports: Sequence[Report], **options: object) -> str:
    return "".join(stream(reports, **options))


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


def test_a_long_path_is_shown_once() -> None:
    path = (
        f"force-app/main/{'long_folder_name/' * 6}aiEvaluationDefinitions/Returns_Desk.aiEvaluationDefinition-meta.xml"
    )
    usual = make.mixed()
    report = replace(usual, file=path)

    lines = render([report]).splitlines()

    assert [line for line in lines if path in line] == [path]
    # `Returns_Desk:7` would name case 7.
    assert [line for line in lines if line.startswith("FAILED Returns_Desk line ")]
    assert not [line for line in lines if "Returns_Desk:" in line.partition("  case ")[0] and "case" in line]
    # A case of another file keeps its path.
    number = next(case.number for case in report.run.cases if case.verdict is Verdict.FAILURE)
    assert f"other.yaml:{make.LINES[number]}" in render([replace(report, files={number: "other.yaml"})])
    without_lines = render([replace(report, lines={})])
    assert "FAILED Returns_Desk  case" in without_lines
    out = io.StringIO()
    print_human([report], Console(file=out, width=200, force_terminal=True, color_system=None), detail="failures")
    assert out.getvalue().count(path) == 1


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


@pytest.mark.slow
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


def failing(number: int, *, first: int = 1) -> Report:
    cases = [make.case(each, Verdict.FAILURE, make.TOPIC_FAILED) for each in range(first, first + number)]
    return make.report(*cases)


def undecided(number: int, **options: object) -> Report:
    cases = [make.case(each, Verdict.UNDECIDED, make.COHERENCE_UNDECIDED) for each in range(1, number + 1)]
    return make.report(make.case(number + 1, Verdict.PASS, make.TOPIC_PASSED), *cases, options=RunOptions(**options))


def test_many_failures_are_shown_in_part_and_named_by_number() -> None:
    text = render([failing(1_000)])
    assert text.count("\nFAILED ") == 50 + 50
    assert "... and 950 more cases (51-1000) did not pass; -v or the html report shows them in full\n" in text
    assert "\n... and 950 more cases (51-1000) of Returns_Desk\n" in text
    assert "1,000 cases: 0 passed, 1,000 failed" in text


def test_all_failures_are_shown_in_full_on_request() -> None:
    text = render([failing(1_000)], detail="all")
    assert text.count("topic_sequence_match): FAILURE") == 1_000
    assert "shows them in full" not in text


def test_a_case_with_many_failures_shows_the_first_and_counts_the_others() -> None:
    results = [TestResult("contains", Verdict.FAILURE, str(number), "no") for number in range(1_000)]
    others = [TestResult("coherence", Verdict.UNDECIDED, explanation="no rater") for _ in range(9)]
    text = render([make.report(make.case(1, Verdict.FAILURE, *others, *results))])

    assert text.count("contains: FAILURE") == 20
    assert "... and 989 more results: 980 FAILURE, 9 UNDECIDED; the json report has all" in text
    assert text.count("\n") < 200
    assert (
        render([make.report(make.case(1, Verdict.FAILURE, *results))], detail="all").count("contains: FAILURE") == 1_000
    )


def test_a_few_failures_are_all_shown() -> None:
    text = render([failing(30)])
    assert text.count("topic_sequence_match): FAILURE") == 30
    assert " more case" not in text


def test_the_runs_of_a_suite_share_the_limit_by_their_needs() -> None:
    suite = [failing(1_000), failing(3), make.report(make.PASSED), failing(1_000)]
    assert [limit.failing for limit in limits_of(suite)] == [23, 3, 0, 24]


@pytest.mark.parametrize("numbers", [[1, 2, 3, 7], [7]])
def test_numbers_that_are_not_shown_are_joined_to_ranges(numbers: list[int]) -> None:
    report = make.report(*(make.case(number, Verdict.FAILURE, make.TOPIC_FAILED) for number in numbers))
    assert find(report, Limits(0, 0)).failing == numbers


def test_a_list_names_a_case_once_with_the_iterations_in_which_it_failed() -> None:
    cases = [make.case(1, Verdict.FAILURE, make.TOPIC_FAILED, iteration=each) for each in (1, 3)]
    passed = make.case(1, Verdict.PASS, make.TOPIC_PASSED, iteration=2)
    report = make.report(cases[0], passed, cases[1], options=RunOptions(iterations=3))
    [line] = find(report, Limits()).lines
    assert line.startswith("FAILED Returns_Desk  case 1 (in 2 of 3 iterations: 1, 3)  topic_sequence_match")


def test_undecided_cases_are_listed_only_if_they_fail_the_run() -> None:
    assert not find(undecided(2), Limits()).lines
    [first, _] = find(undecided(2, undecided="fail"), Limits()).lines
    assert first.startswith("FAILED Returns_Desk  case 1  undecided: coherence: ")
    [first, _] = find(undecided(2, min_decided=0.9), Limits()).lines
    assert first.startswith("undecided Returns_Desk  case 1  coherence: ")


def test_undecided_cases_are_shown_in_part() -> None:
    text = render([undecided(25)])
    assert text.count("coherence): UNDECIDED") == 10
    assert "... and 15 more cases (11-25) undecided; -v or the html report shows them in full\n" in text


def test_a_case_that_passed_in_part_fails_a_run_that_must_judge_more() -> None:
    report = make.report(make.MIXED_CASES[0], options=RunOptions(min_decided=1))
    [line] = find(report, Limits()).lines
    assert line.startswith("undecided Returns_Desk  case 1  coherence: ")


def test_results_are_read_once_and_not_kept() -> None:
    class Stream(tuple[()]):
        __slots__ = ()
        read = 0

        def __iter__(self) -> Iterator[CaseResult]:  # type: ignore[override]
            Stream.read += 1
            return islice((make.case(each, Verdict.PASS, make.TOPIC_PASSED) for each in count(1)), 10_000)

    report = make.report(make.PASSED)
    found = find(replace(report, run=replace(report.run, cases=Stream())), Limits())
    assert (Stream.read, found.groups, found.failing) == (1, [], [])
