from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

import report_runs as make
from evalmeta.engine.statistics import collect
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import TestResult, Verdict
from evalmeta.report import render as render_as
from evalmeta.report.report import Report, why_incomplete
from evalmeta.report.text import clean

render = partial(render_as, "ctrf")

STATUSES = ("passed", "failed", "skipped", "pending", "other")
TEXT, WHOLE, OPEN = {"type": "string"}, {"type": "integer"}, {"type": "object"}


def exactly(required: dict[str, object], **optional: object) -> dict[str, object]:
    """Gives the schema of an object with these properties and no others."""
    properties = required | optional
    return {"type": "object", "required": [*required], "properties": properties, "additionalProperties": False}


STATUS = {"enum": [*STATUSES]}
NAME = {"type": "string", "minLength": 1}
STEP = exactly({"name": TEXT, "status": STATUS}, extra=OPEN)
TEST = exactly(
    {"name": NAME, "status": STATUS, "duration": WHOLE},
    start=WHOLE,
    stop=WHOLE,
    suite={"type": "array", "minItems": 1, "items": TEXT},
    message=TEXT,
    trace=TEXT,
    rawStatus=TEXT,
    filePath=TEXT,
    line=WHOLE,
    flaky={"type": "boolean"},
    parameters=OPEN,
    steps={"type": "array", "items": STEP},
    extra=OPEN,
)
SUMMARY = exactly(dict.fromkeys(("tests", *STATUSES, "start", "stop"), WHOLE), flaky=WHOLE, suites=WHOLE)
RESULTS = exactly(
    {"tool": exactly({"name": NAME}, version=TEXT), "summary": SUMMARY, "tests": {"type": "array", "items": TEST}},
    extra=OPEN,
)
# The part of CTRF's own schema that evalmeta writes; other keys are not allowed there either.
SCHEMA = exactly(
    {"reportFormat": {"const": "CTRF"}, "specVersion": {"pattern": r"^\d+\.\d+\.\d+$"}, "results": RESULTS},
    generatedBy=TEXT,
)


@given(st.lists(make.reports, max_size=2))
def test_any_texts_make_valid_ctrf(reports: list[Report]) -> None:
    text = render(reports)
    assert clean(text) == text
    Draft7Validator(SCHEMA).validate(json.loads(text))


@given(make.reports)
def test_errors_are_failed_and_undecided_is_other_as_the_summary_counts(report: Report) -> None:
    results = json.loads(render([report]))["results"]
    summary, broken = report.summary, len(report.run_failures)
    counted = results["summary"]
    assert counted["tests"] == len(results["tests"]) == summary.total + broken
    assert (counted["passed"], counted["other"]) == (summary.passed + summary.partly_judged, summary.undecided)
    assert counted["failed"] == summary.failed + summary.errors + broken
    raw = [test["rawStatus"] for test in results["tests"]]
    assert raw.count("ERROR") == summary.errors + (why_incomplete(report.run) is not None)


def test_a_case_that_failed_says_where_and_why() -> None:
    test = json.loads(render([make.mixed()]))["results"]["tests"][1]
    assert test["message"] == "topic_sequence_match: expected the topic Returns, got Orders (and 2 more)"
    assert (test["filePath"], test["line"], test["duration"]) == (make.FILE, 20, 250)
    assert [step["status"] for step in test["steps"]] == ["failed", "other", "failed"]


def test_a_pass_by_rate_is_reported_with_the_run() -> None:
    [run] = json.loads(render([make.rated(0.7)]))["results"]["extra"]["runs"]
    assert (run["passed"], run["passRate"], run["minPassRate"]) == (True, 0.75, 0.7)


def test_a_case_that_passed_and_failed_is_flaky() -> None:
    report = make.rated(0.7)
    report = replace(report, statistics=collect(report.run.cases, report.run.options))
    results = json.loads(render([report]))["results"]
    assert [test["flaky"] for test in results["tests"]] == [False, True, False, True]
    assert results["summary"]["flaky"] == 1


def test_nan_is_null_and_not_0() -> None:
    answer = GeneratedData("Yes.", latency_ms=float("inf"), tokens=Tokens(3, 4))
    result = TestResult("x", Verdict.UNDECIDED, score=float("nan"), rater="rules")
    case = make.case(1, Verdict.UNDECIDED, result)._replace(generated=answer)
    test, _ = json.loads(render([make.report(case)]))["results"]["tests"]
    assert (test["status"], test["steps"][0]["extra"]["score"]) == ("other", None)
    assert (test["extra"]["latencyMilliseconds"], test["extra"]["outputTokens"]) == (None, 4)
