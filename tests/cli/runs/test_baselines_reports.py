"""What report formats show of failures that a baseline forgives."""

from __future__ import annotations

import json
import re

import pytest
from lxml import etree

from api.runs.test_comparisons import run
from evalmeta.api.runs.comparisons import Baseline, Comparator, baseline_of
from evalmeta.api.runs.decision import Decision
from evalmeta.api.runs.finished import FinishedRun
from evalmeta.model.run import Verdict
from evalmeta.model.tally import summarise
from evalmeta.report import render
from evalmeta.report.human import stream
from evalmeta.report.report import Report

PASS, FAILURE, ERROR = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR
COMPARISON = "the comparison with the baseline"


def reported(before: list[Verdict], after: list[Verdict], *, suspects_fail: bool = False) -> Report:
    known, now = run(1, *before), run(2, *after)
    finished = FinishedRun(now, summarise(now.cases, now.options))
    [verdict] = Decision.of(Comparator(baseline_of(known), suspects_fail), [finished]).verdicts()
    return Report(now, finished.summary, baseline=verdict)


def junit_of(report: Report) -> dict[str, str]:
    """Return what each testcase has: a failure, an error, skipped, or nothing."""
    [suite] = etree.fromstring(render("junit", [report]).encode())
    cases = suite.findall("testcase")
    found = {str(case.get("name")).split(":")[0]: "".join(str(each.tag) for each in case) for case in cases}
    counts = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    assert all(suite.get(name) == f"{[*found.values()].count(tag)}" for name, tag in counts.items())
    assert suite.get("tests") == f"{len(cases)}"
    return found


def test_junit_has_no_failure_that_the_baseline_forgives() -> None:
    assert junit_of(reported([PASS, FAILURE], [PASS, FAILURE])) == {"1": "", "2": "skipped"}
    assert 'message="known failure, in 4KB000000000001AAA: ' in render("junit", [reported([FAILURE], [FAILURE])])


def test_junit_has_no_failure_that_may_be_chance() -> None:
    report = reported([PASS, PASS], [PASS, FAILURE])
    assert junit_of(report) == {"1": "", "2": "skipped"}
    assert "not significantly worse than 4KB000000000001AAA: " in render("junit", [report])


def test_junit_has_the_failures_that_make_the_job_red_and_the_comparison() -> None:
    found = junit_of(reported([PASS, FAILURE], [FAILURE, FAILURE], suspects_fail=True))
    assert found == {"1": "failure", "2": "skipped", COMPARISON: "failure"}


def test_errors_are_never_forgiven() -> None:
    assert junit_of(reported([ERROR, PASS], [ERROR, PASS]))["1"] == "error"


@pytest.mark.parametrize(("strict", "levels"), [(False, "notice warning"), (True, "error error")])
def test_annotations_are_errors_only_if_the_job_is_red(strict: bool, levels: str) -> None:  # noqa: FBT001
    text = render("github", [reported([PASS], [FAILURE], suspects_fail=strict)])
    assert [line.split()[0].strip(":") for line in text.splitlines()] == levels.split()


def test_tap_marks_known_failures_as_todo_and_fails_for_the_comparison() -> None:
    points = [line for line in render("tap", [reported([FAILURE], [FAILURE])]).splitlines() if "ok 1" in line]
    assert [point.split(" # ")[1] for point in points] == ["TODO known failure, in 4KB000000000001AAA"]
    assert f"not ok 2 - Orders: {COMPARISON}" in render("tap", [reported([PASS], [FAILURE], suspects_fail=True)])


def test_ctrf_reports_known_failures_as_other() -> None:
    results = json.loads(render("ctrf", [reported([PASS, FAILURE], [PASS, FAILURE])]))["results"]
    assert [test["status"] for test in results["tests"]] == ["passed", "other"]
    assert {name: results["summary"][name] for name in ("tests", "passed", "failed", "other")} == {
        "tests": 2,
        "passed": 1,
        "failed": 0,
        "other": 1,
    }


def test_markdown_shows_the_comparison_and_its_decision() -> None:
    text = render("markdown", [reported([PASS, FAILURE], [PASS, FAILURE])])
    assert "| \u2705 | <code>Orders</code>" in text
    assert "Compared with <code>4KB000000000001AAA</code>: no change" in text
    assert "\u274c | <code>Orders</code>" in render("markdown", [reported([PASS], [FAILURE], suspects_fail=True)])


KNOWN = "known failure, in 4KB000000000001AAA"


def test_the_human_report_counts_known_failures_and_shows_the_others() -> None:
    report = reported([PASS, FAILURE, FAILURE], [FAILURE, FAILURE, FAILURE], suspects_fail=True)
    lines = render("human", [report]).splitlines()
    assert "2 known failures, in 4KB000000000001AAA: cases 2-3; -v or the html report has all" in lines
    assert [line.split()[1] for line in lines if line.startswith("FAILED   ")] == ["1"]
    assert lines[-2:-1] == ["Orders not passed: 1 suspect case did not pass again, and passed in 4KB000000000001AAA"]
    assert "3 failed (2 forgiven)" in lines[-1]
    assert f"FAILED    2 ({KNOWN})" in "".join(stream([report], detail="all"))


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ([PASS, FAILURE], [PASS, FAILURE], "passed: 1 case failed, as in 4KB000000000001AAA"),
        ([PASS, PASS], [PASS, FAILURE], "passed: 1 case failed, not significantly worse than 4KB000000000001AAA"),
        ([FAILURE], [FAILURE, FAILURE], "not passed: 1 failing case is not in 4KB000000000001AAA"),
        ([FAILURE], [FAILURE, ERROR], "not passed: 1 case ended in an error; 1 case failed"),
        ([FAILURE], [PASS], "passed: all judged cases passed"),
    ],
)
@pytest.mark.parametrize("result_format", ["human", "html", "markdown", "github"])
def test_reports_for_people_say_what_the_baseline_decides(
    result_format: str, before: list[Verdict], after: list[Verdict], outcome: str
) -> None:
    text = render(result_format, [reported(before, after)])
    assert outcome in text.replace("&#58;", ":").replace("&#8203;", "")


def test_a_suite_counts_runs_as_the_baseline_decides() -> None:
    reports = [reported([FAILURE], [FAILURE]), reported([PASS], [FAILURE], suspects_fail=True)]
    for result_format in ("human", "html", "markdown"):
        assert "1 of 2 runs passed" in render(result_format, reports)


def test_json_has_what_the_baseline_decides_and_the_forgiven_cases() -> None:
    document = json.loads(render("json", [reported([PASS, FAILURE], [PASS, FAILURE])]))
    assert document["evalmeta"]["baseline"] == {
        "name": "4KB000000000001AAA",
        "passed": True,
        "decision": "passed: 1 case failed, as in 4KB000000000001AAA",
        "forgiven": [2],
    }


def test_the_html_report_marks_forgiven_failures_and_shows_the_comparison() -> None:
    text = render("html", [reported([PASS, FAILURE], [PASS, FAILURE])])
    assert text.count('<span class="pill mark known-failure">known failure</span>') == 1
    assert f'<p class="fact">{KNOWN}</p>' in text
    assert "0 broken, 0 suspect, 1 still failing, 1 still passing" in text


def test_the_html_report_shows_runs_with_failures_first() -> None:
    green, known = reported([PASS], [PASS]), reported([FAILURE], [FAILURE])
    text = render("html", [green, known, reported([PASS], [FAILURE], suspects_fail=True)])
    assert re.findall(r'class="decision \w+">(\w+:? \w+)', text) == ["not passed", "passed: 1", "passed: all"]


def test_markdown_names_forgiven_failures_last() -> None:
    text = render("markdown", [reported([FAILURE, PASS], [FAILURE, FAILURE], suspects_fail=True)])
    assert re.findall(r"<b>FAILED</b> (.*?) <code>", text) == ["2", f"1 ({KNOWN})"]


def test_a_run_of_a_test_that_the_baseline_lacks_is_judged_on_its_own() -> None:
    now = run(2, FAILURE, name="Returns")
    finished = FinishedRun(now, summarise(now.cases, now.options))
    assert Decision.of(Comparator(baseline_of(run(1, FAILURE)), suspects_fail=False), [finished]).verdicts() == [None]
    assert junit_of(Report(now, finished.summary)) == {"1": "failure"}


def test_a_fall_of_all_tests_together_is_red_in_the_reports_of_those_that_fell() -> None:
    before = [run(number, *[PASS] * 4, name=f"Test{number}") for number in range(1, 13)]
    after = [
        run(20 + number, *[FAILURE] * (number > 2), *[PASS] * (4 - (number > 2)), name=f"Test{number}")
        for number in range(1, 13)
    ]
    known = {name: baseline_of(one).tests[name] for one in before for name in baseline_of(one).tests}
    comparator = Comparator(Baseline("b.json", known), suspects_fail=False)
    finished = [FinishedRun(now, summarise(now.cases, now.options)) for now in after]
    decision = Decision.of(comparator, finished)
    verdicts = decision.verdicts()
    assert [verdict.passed for verdict in verdicts if verdict] == [True] * 2 + [False] * 10
    assert verdicts[-1].text == "all tests together are significantly worse than b.json"
    assert decision.code(0) == 100
