from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

import report_runs as make
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.report import render as render_as

if TYPE_CHECKING:
    from evalmeta.report.report import Report

render = partial(render_as, "junit")

CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"properties", "failure", "error", "skipped"},
}
REQUIRED = {
    "testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
}


def test_conversations_junit(snapshot: str) -> None:
    assert render([make.conversations()]) == snapshot


def test_mixed_junit(snapshot: str) -> None:
    assert render([make.mixed()]) == snapshot


@pytest.mark.slow
@given(st.lists(make.reports, max_size=2))
def test_any_texts_make_well_formed_junit(reports: list[Report]) -> None:
    for element in etree.fromstring(render(reports).encode()).iter():
        name = str(element.tag)
        assert {str(child.tag) for child in element} <= CHILDREN.get(name, set())
        assert set(element.attrib) >= REQUIRED.get(name, set())


@given(make.reports)
def test_counts_are_those_of_the_summary_and_of_the_elements(report: Report) -> None:
    [suite] = _root(report)
    summary, failures = report.summary, report.run_failures
    broken = sum(failure.verdict is Verdict.ERROR for failure in failures)
    counts = [int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == [
        summary.total + len(failures),
        summary.failed + len(failures) - broken,
        summary.errors + broken,
        summary.undecided,
    ]
    names = ("testcase", "testcase/failure", "testcase/error", "testcase/skipped")
    assert counts == [len(suite.findall(name)) for name in names]


@pytest.mark.slow
@given(make.reports)
def test_texts_have_no_control_characters(report: Report) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", render([report]))


def test_times_are_seconds_with_three_decimals() -> None:
    root = _root(make.mixed())
    assert [root.get("time"), root[0].get("time"), root.find(".//testcase").get("time")] == ["3.200", "3.200", "0.250"]


def test_a_pass_by_rate_is_visible_in_the_properties() -> None:
    properties = _properties(make.rated(0.7))
    assert (properties["passed"], properties["pass-rate"], properties["min-pass-rate"]) == ("true", "0.75", "0.7")
    assert properties["decision"].endswith("though 1 case failed in 1 of 2 iterations")


def test_undecided_results_are_listed_in_the_properties() -> None:
    properties = _properties(make.mixed())
    assert (properties["undecided-coherence"], properties["judged-results"], properties["results"]) == ("3", "4", "8")
    assert properties["why-undecided-coherence"].startswith("3 undecided: only an LLM rater")


def test_the_name_includes_the_iteration() -> None:
    names = [case.get("name") for case in _root(make.rated(1)).iter("testcase")]
    assert names[-1] == "2: Question 2? (iteration 2)"


def test_an_incomplete_run_is_not_a_green_suite() -> None:
    error = _root(make.broken_off()).find(".//testcase[@name='the run']/error")
    assert error.get("message") == "the run is ERROR with 1 of 5 case results: the disk is full"


@pytest.mark.parametrize(("undecided", "element"), [("ignore", "skipped"), ("fail", "failure")])
def test_an_undecided_case_is_skipped_unless_it_fails(undecided: str, element: str) -> None:
    options = RunOptions(undecided="fail" if undecided == "fail" else "ignore")
    found = _root(make.report(make.MIXED_CASES[3], options=options)).find(f".//{element}")
    assert found.get("message") == "coherence: only an LLM rater can judge this, and this run has none"


def test_unknown_values_are_left_out() -> None:
    report = make.report(make.case(1, Verdict.PASS))
    assert "file" not in _root(report).find(".//testcase").attrib
    assert "subject-version" not in _properties(replace(report, run=replace(report.run, subject_version=None)))


def _root(report: Report) -> etree._Element:
    return etree.fromstring(render([report]).encode())


def _properties(report: Report) -> dict[str, str]:
    return {each.attrib["name"]: each.attrib["value"] for each in _root(report).iter("property")}
