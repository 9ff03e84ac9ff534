from __future__ import annotations

from dataclasses import replace

import pytest

import report_runs as make
from evalmeta.engine.statistics import collect
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.report import render as render_as
from evalmeta.report.json import statistics_json
from evalmeta.report.summary import case_rates, statistics_lines

REPEATED = RunOptions(iterations=2)


def case(number: int, iteration: int = 1, *, verdict: Verdict = Verdict.PASS, **answer: object) -> CaseResult:
    generated = GeneratedData("Yes.", **answer)
    return make.case(number, verdict, iteration=iteration)._replace(generated=generated)


def lines(*cases: CaseResult, options: RunOptions | None = None) -> list[str]:
    run = make.run(*cases, options=options)
    return list(statistics_lines(run, collect(run.cases, run.options)))


def test_of_a_small_run_asked_once_nothing_is_said() -> None:
    assert lines(*(case(number, latency_ms=5.0) for number in range(1, 20))) == []


def test_flaky_cases_are_named_with_what_they_passed() -> None:
    failed = Verdict.FAILURE
    found = lines(case(1), case(2), case(1, 2), case(2, 2, verdict=failed), options=REPEATED)
    assert found == [
        "95 % confidence interval of the pass rate: 19.78 % to 97.33 %",
        "of 2 answers to a case, at least one passes: 100 % (pass@2); all pass: 50 % (pass^2)",
        "flaky: case 2 (passed 1 of 2)",
    ]


def test_many_flaky_cases_are_counted() -> None:
    found = [
        case(number, place, verdict=verdict)
        for number in range(1, 23)
        for place, verdict in ((1, Verdict.PASS), (2, Verdict.FAILURE))
    ]
    assert lines(*found, options=REPEATED)[2].endswith(", 20 (passed 1 of 2) and 2 more")


def test_iterations_that_decided_nothing_have_no_interval() -> None:
    assert lines(case(1, verdict=Verdict.ERROR), options=REPEATED) == []


@pytest.mark.parametrize(
    ("latencies", "said"),
    [
        ([0.0] * 20, "latency: p50 < 0.1 ms, p95 < 0.1 ms of 20 answers"),
        ([3.14] * 20, "latency: p50 3.1 ms, p95 3.1 ms of 20 answers"),
        ([1234.5] * 21, "latency: p50 1.234 s, p95 1.234 s of 21 answers"),
    ],
)
def test_latencies_are_shown_from_20_answers_on(latencies: list[float], said: str) -> None:
    assert lines(*(case(number, latency_ms=latency) for number, latency in enumerate(latencies, 1))) == [said]


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([Tokens(1000, 2), Tokens(500, 3)], ["tokens: 1,500 in, 5 out"]),
        ([Tokens(1000), None], ["tokens: 1,000 in, unknown out, reported by 1 of 2 answers"]),
        ([None, None], []),
    ],
)
def test_unknown_tokens_are_not_shown_as_zero(tokens: list[Tokens | None], said: list[str]) -> None:
    assert lines(*(case(number, tokens=token) for number, token in enumerate(tokens, 1))) == said


def test_a_summary_holds_the_numbers_before_the_time_it_took() -> None:
    rated = make.rated(0.7)
    report = replace(rated, statistics=collect(rated.run.cases, rated.run.options))
    [flaky, took] = [
        line for line in render_as("human", [report]).splitlines() if line.startswith("  flaky") or "took" in line
    ]
    assert flaky == "  flaky: case 2 (passed 1 of 2)"
    assert took.endswith("; took 3.2 s")


def test_every_report_has_the_chances_of_several_answers_and_the_rate_of_each_case() -> None:
    rated = make.rated(0.7)
    report = replace(rated, statistics=collect(rated.run.cases, rated.run.options))
    texts = {name: render_as(name, [report]) for name in ("human", "markdown", "html", "junit")}
    assert "at least one passes: 100 % (pass@2); all pass: 50 % (pass^2)" in texts["human"]
    assert "flaky: case 2 (passed 1 of 2)" in texts["human"]
    assert "| 2 | <code>" in texts["markdown"]
    assert "| 50 % (1 of 2) |" in texts["markdown"]
    assert "<dt>pass@2</dt><dd>100 %</dd>" in texts["html"]
    assert all(f'<span class="dim">{rate}</span>' in texts["html"] for rate in ("100 % (2 of 2)", "50 % (1 of 2)"))
    for name, value in (("pass-at-2", "1"), ("pass-hat-2", "0.5"), ("pass-rate-of-2", "50 % (1 of 2)")):
        assert f'<property name="{name}" value="{value}"/>' in texts["junit"]
    found = statistics_json(report.run, report.statistics)
    assert found["passAtK"][1] == {"k": 2, "anyPasses": 1.0, "allPass": 0.5, "cases": 2}


def test_a_run_of_one_iteration_has_no_rates_of_cases() -> None:
    run = make.run(case(1))
    assert list(case_rates(run, collect(run.cases, run.options))) == []
