"""What report formats show of failures that a baseline forgives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from api.test_comparisons import run
from evalmeta.api.comparisons import baseline_of
from evalmeta.api.finished_runs import FinishedRun
from evalmeta.cli.baselines import Comparator, verdicts_by_baseline
from evalmeta.engine.summary import summarise
from evalmeta.model.run import Verdict
from evalmeta.report import render
from evalmeta.report.report import Report

if TYPE_CHECKING:
    from evalmeta.model.statistics import FailOn

PASS, FAILURE, ERROR = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR
COMPARISON = "the comparison with the baseline"


def reported(before: list[Verdict], after: list[Verdict], *, fail_on: FailOn = "significant") -> Report:
    known, now = run(1, *before), run(2, *after)
    finished = FinishedRun(now, summarise(now.cases, now.options))
    [verdict] = verdicts_by_baseline(Comparator(baseline_of(known), fail_on), [finished])
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
    found = junit_of(reported([PASS, FAILURE], [FAILURE, FAILURE], fail_on="broken"))
    assert found == {"1": "failure", "2": "skipped", COMPARISON: "failure"}


def test_errors_are_never_forgiven() -> None:
    assert junit_of(reported([ERROR, PASS], [ERROR, PASS]))["1"] == "error"


@pytest.mark.parametrize(("fail_on", "levels"), [("significant", "notice warning"), ("broken", "error error")])
def test_annotations_are_errors_only_if_the_job_is_red(fail_on: FailOn, levels: str) -> None:
    text = render("github", [reported([PASS], [FAILURE], fail_on=fail_on)])
    assert [line.split()[0].strip(":") for line in text.splitlines()] == levels.split()


def test_tap_marks_known_failures_as_todo_and_fails_for_the_comparison() -> None:
    points = [line for line in render("tap", [reported([FAILURE], [FAILURE])]).splitlines() if "ok 1" in line]
    assert [point.split(" # ")[1] for point in points] == ["TODO known failure, in 4KB000000000001AAA"]
    assert f"not ok 2 - Orders: {COMPARISON}" in render("tap", [reported([PASS], [FAILURE], fail_on="broken")])


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
    assert "\u274c | <code>Orders</code>" in render("markdown", [reported([PASS], [FAILURE], fail_on="broken")])


def test_a_run_without_a_baseline_is_judged_on_its_own() -> None:
    now = run(2, FAILURE)
    finished = FinishedRun(now, summarise(now.cases, now.options))
    assert verdicts_by_baseline(None, [finished]) == [None]
    assert junit_of(Report(now, finished.summary)) == {"1": "failure"}
