from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

import report_runs as make
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.report import render
from evalmeta.report.html_pages import choices, lay_out

if TYPE_CHECKING:
    from evalmeta.report.report import Report

LONG = GeneratedData("a" * 4_000)
FAILING = {5, 9_000, 20_000}


def large_report(cases: int = 20_000) -> Report:
    return make.report(*(large_case(number) for number in range(1, cases + 1)))


def large_case(number: int) -> CaseResult:
    verdict = Verdict.FAILURE if number in FAILING else Verdict.PASS
    return make.case(number, verdict)._replace(generated=LONG)


def test_a_small_page_shows_all_cases() -> None:
    [page] = lay_out([make.mixed()])
    assert (page.total, page.shown, page.left_out, page.remark()) == (5, 5, set(), "")


def test_a_page_of_a_large_run_stays_small_and_shows_all_cases_that_did_not_pass() -> None:
    [page] = lay_out([large_report()])
    assert (page.total, page.shown + len(page.left_out), page.left_out_passed) == (20_000, 20_000, len(page.left_out))
    assert 5_000 < page.shown < 10_000
    assert Counter(page.kinds()) == {"all": page.shown, Verdict.FAILURE: 3, Verdict.PASS: page.shown - 3}
    assert {case.number for case in page.cases(passed=False)} == FAILING


@pytest.mark.slow
def test_a_page_says_how_many_cases_it_leaves_out_and_how_to_see_them() -> None:
    report = large_report(10_000)
    [page] = lay_out([report])
    text = render("html", [report])
    assert len(text) < 40_000_000
    assert text.count('<details class="case') == page.shown
    left = len(page.left_out)
    assert f"To keep the page small, {left:,} of 10,000 cases are left out: {left:,} that passed and 0 that" in text
    assert f"<code>evalmeta test results --job-id {report.run.id} --result-format jsonl</code>" in text


@pytest.mark.slow
def test_the_runs_of_a_page_share_its_size() -> None:
    first, second = lay_out([large_report(6_000), large_report(6_000)])
    assert not first.left_out
    assert 0 < second.shown < 6_000


def test_the_iterations_of_a_case_are_together_even_if_they_are_stored_apart() -> None:
    cases = [make.case(number, Verdict.PASS, iteration=iteration) for iteration in (1, 2) for number in (1, 2)]
    [page] = lay_out([make.report(*cases, options=RunOptions(iterations=2))])
    assert [[case.iteration for case, _ in each.iterations] for each in page.cases(passed=True)] == [[1, 2], [1, 2]]


def test_a_partly_judged_case_is_a_state_of_its_own_and_counts_as_undecided() -> None:
    pages = lay_out([make.mixed()])
    shown = {choice.label: choice.number for choice in choices(pages)}
    assert (shown["ok"], shown["partly judged"], shown["undecided results"], pages[0].passed) == (0, 1, 3, 0)
    first, *_ = pages[0].cases(passed=False)
    assert (first.state, first.kinds) == ("PARTLY", "partly undecided")


def test_one_filter_counts_the_cases_of_all_runs() -> None:
    shown = {choice.value: choice.number for choice in choices(lay_out([make.mixed(), make.rated(0.7)]))}
    assert shown == {"all": 7, "failure": 3, "error": 1, "undecided": 3, "partly": 1, "pass": 2, "mixed": 1}


def test_iterations_with_the_same_answer_are_shown_once() -> None:
    answers = [("Yes.", 5.0), ("No.", 5.0), ("Yes.", 7.5)]
    cases = [
        make.case(1, Verdict.FAILURE, make.TOPIC_FAILED, iteration=number)._replace(
            generated=GeneratedData(text, latency_ms=latency)
        )
        for number, (text, latency) in enumerate(answers, 1)
    ]
    report = make.report(*cases, options=RunOptions(iterations=3))
    [case] = lay_out([report])[0].cases(passed=False)
    assert [answer.iterations for answer in case.answers] == [(1, 3), (2,)]
    assert "2 of 3 iterations gave this answer" in render("html", [report])


def test_the_standing_to_the_baseline_is_marked_and_can_be_chosen() -> None:
    report = make.compared()
    [page] = lay_out([report])
    assert {case.number: case.mark for passed in (False, True) for case in page.cases(passed=passed)} == {
        1: "maybe fixed",
        2: "known failure",
        3: "suspect",
        4: "",
    }
    assert [choice.label for choice in choices([page])[-3:]] == ["suspect", "maybe fixed", "known failure"]
    assert render("html", [report]).count('class="pill mark') == 3
