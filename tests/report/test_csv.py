from __future__ import annotations

import csv
import io
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_runs as make
from evalmeta.model.evaluation import Quarantine
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import TestResult, Verdict
from evalmeta.report import render as render_as
from evalmeta.report.csv import COLUMNS
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.report.report import Report

render = partial(render_as, "csv")


def read(*reports: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(reports), newline="")))


def one(result: TestResult) -> dict[str, str]:
    [row] = read(make.report(make.case(1, result.verdict, result)))
    return row


def test_conversations_csv(snapshot: str) -> None:
    assert render([make.conversations()]).replace("\r\n", "\n") == snapshot


def test_mixed_csv(snapshot: str) -> None:
    assert render([make.mixed()]).replace("\r\n", "\n") == snapshot


def test_lines_end_with_cr_lf() -> None:
    assert render([]) == ",".join(COLUMNS) + "\r\n"


def test_a_case_without_results_has_a_row_with_its_verdict() -> None:
    [row] = read(make.report(make.MIXED_CASES[2]))
    assert (row["verdict"], row["error"]) == ("ERROR", "the agent did not answer within 120 s")
    assert (row["answer"], row["expectation"], row["score"]) == ("", "", "")


def test_a_row_says_whether_its_case_is_in_quarantine() -> None:
    case = make.case(1, Verdict.FAILURE)._replace(quarantine=Quarantine("flaky", date(2027, 1, 31)))
    [row] = read(make.report(case))
    assert (row["case_verdict"], row["quarantined"]) == ("FAILURE", "true")


def test_the_cost_of_an_answer_is_numeric() -> None:
    answer = GeneratedData("Yes.", latency_ms=1_234_567.5, tokens=Tokens(12, None))
    [row] = read(make.report(make.case(1, Verdict.PASS)._replace(generated=answer)))
    assert (row["latency_ms"], row["input_tokens"], row["output_tokens"]) == ("1234567.5", "12", "")


@pytest.mark.parametrize(
    ("score", "cell"), [(None, ""), (0.0, "0"), (-1.0, "-1"), (float("nan"), "nan"), (float("inf"), "inf")]
)
def test_a_score_that_is_not_a_number_is_not_0(score: float | None, cell: str) -> None:
    assert one(TestResult("x", Verdict.UNDECIDED, score=score))["score"] == cell


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(1)", "\tx", "\rx", "\n=1", "＝1", "'x"])  # noqa: RUF001 - full-width forms count too
def test_spreadsheets_read_no_text_as_a_formula(text: str) -> None:
    assert one(TestResult("x", Verdict.FAILURE, actual=text))["actual"] == f"'{clean(text)}"


def test_cells_have_at_most_the_length_that_excel_allows() -> None:
    cell = one(TestResult("x", Verdict.FAILURE, actual="a" * 40_000))["actual"]
    assert (len(cell), cell[-1]) == (32_767, "…")


@given(st.lists(make.reports, max_size=2))
def test_texts_and_verdicts_read_back(reports: list[Report]) -> None:
    rows = read(*reports)
    expected = [
        (clean(case.utterance), str(report.verdict_of(case)), *judged)
        for report in reports
        for case in report.run.cases
        for judged in (
            [
                ("MEASURED" if result.is_measured else str(result.verdict), clean(result.actual))
                for result in case.results
            ]
            or [(str(report.verdict_of(case)), "")]
        )
    ]
    names = ("utterance", "case_verdict", "verdict", "actual")
    assert [tuple(row[name].removeprefix("'") for name in names) for row in rows] == expected


@given(make.reports)
def test_every_row_is_complete_and_no_cell_is_a_formula(report: Report) -> None:
    numbers = COLUMNS.index("threshold")
    for row in csv.reader(io.StringIO(render([report]), newline="")):
        assert len(row) == len(COLUMNS)
        texts = row[:numbers] + row[numbers + 1 :]
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in texts)


@given(make.reports)
def test_texts_have_no_control_characters(report: Report) -> None:
    text = render([report]).replace("\r\n", "\n")
    assert clean(text) == text
