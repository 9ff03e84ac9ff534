from __future__ import annotations

from typing import TYPE_CHECKING

import report_runs as make
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, RunOptions, Verdict
from evalmeta.report import render
from evalmeta.report.html_pages import lay_out

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
    assert page.verdicts == {Verdict.FAILURE: 3, Verdict.PASS: page.shown - 3}
    assert {each.number for each in page.cases() if each.verdict is Verdict.FAILURE} == FAILING


def test_a_page_says_how_many_cases_it_leaves_out_and_how_to_see_them() -> None:
    report = large_report(10_000)
    [page] = lay_out([report])
    text = render("html", [report])
    assert len(text) < 40_000_000
    assert text.count("<details class") == page.shown
    left = len(page.left_out)
    assert f"To keep the page small, {left:,} of 10,000 cases are left out: {left:,} that passed and 0 that" in text
    assert f"<code>evalmeta test results --job-id {report.run.id} --result-format jsonl</code>" in text


def test_the_runs_of_a_page_share_its_size() -> None:
    first, second = lay_out([large_report(6_000), large_report(6_000)])
    assert not first.left_out
    assert 0 < second.shown < 6_000


def test_the_iterations_of_a_case_are_together_even_if_they_are_stored_apart() -> None:
    cases = [make.case(number, Verdict.PASS, iteration=iteration) for iteration in (1, 2) for number in (1, 2)]
    [page] = lay_out([make.report(*cases, options=RunOptions(iterations=2))])
    assert [[case.iteration for case, _ in each.iterations] for each in page.cases()] == [[1, 2], [1, 2]]
