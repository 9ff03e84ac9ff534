from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_runs as make
from evalmeta.engine.statistics import collect
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import CaseResult, Run, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.report import render as render_as
from evalmeta.report.json import statistics_json
from evalmeta.report.text import clean

render = partial(render_as, "json")


def test_one_run_is_an_object() -> None:
    report = make.mixed()
    written, run = json.loads(render([report])), write_run(report.run, escape=False)
    assert {**written, "evalmeta": {**run["evalmeta"], **written["evalmeta"]}} == written
    assert {**written, "evalmeta": run["evalmeta"]} == run


def test_the_pass_rate_stands_beside_its_coverage_and_the_reasons() -> None:
    own = json.loads(render([make.mixed()]))["evalmeta"]
    assert own["coverage"] == {"judged": 4, "results": 8, "share": 0.5, "required": None}
    assert own["passRate"] == pytest.approx(1 / 3)
    reason = "only an LLM rater can judge this, and this run has none"
    reasons = [{"reason": reason, "count": 3}]
    assert own["undecidedResults"] == [{"name": "coherence", "count": 3, "reasons": reasons}]


def test_several_runs_are_a_list() -> None:
    assert [run["evalmeta"]["total"] for run in json.loads(render([make.mixed(), make.rated(1)]))] == [5, 4]


def test_no_run_is_an_empty_list() -> None:
    assert render([]) == "[]\n"


def test_it_is_indented_by_two_and_ends_with_a_line_break() -> None:
    text = render([make.mixed()])
    assert text.startswith('{\n  "status": "COMPLETED",\n')
    assert text.endswith("\n}\n")


@given(st.text())
def test_answers_are_read_back_unchanged_and_have_no_control_characters(answer: str) -> None:
    case = make.case(1, Verdict.PASS)._replace(generated=GeneratedData(answer))
    text = render([make.report(case)])
    [read] = read_run(json.loads(text)).cases
    assert read.generated == case.generated
    assert clean(text) == text


def numbers(run: Run) -> dict[str, object]:
    return dict(statistics_json(run, collect(run.cases, run.options)))


def answered(verdict: Verdict, **answer: object) -> CaseResult:
    return make.case(1, verdict)._replace(generated=GeneratedData("Yes.", **answer))


def test_json_has_the_numbers_where_they_were_collected() -> None:
    rated = make.rated(0.7)
    report = replace(rated, statistics=collect(rated.run.cases, rated.run.options))
    found = json.loads(render([report]))["evalmeta"]
    assert found["runId"] == rated.run.id
    assert found["statistics"] == json.loads(json.dumps(numbers(rated.run)))
    assert "statistics" not in json.loads(render([rated]))["evalmeta"]


def test_json_knows_cases_of_repeated_runs_alone() -> None:
    once = numbers(make.run(answered(Verdict.PASS, latency_ms=2.0, tokens=Tokens(3, None))))
    assert "cases" not in once
    assert once["latencyMilliseconds"] == {"p50": 2.0, "p90": 2.0, "p95": 2.0, "p99": 2.0}
    assert once["tokens"] == {"input": 3, "output": None, "answers": 1}
    repeated = numbers(make.run(answered(Verdict.ERROR), options=RunOptions(iterations=2)))
    assert repeated["passRateInterval"] is None
    assert [case["passRate"] for case in repeated["cases"]] == [None]
