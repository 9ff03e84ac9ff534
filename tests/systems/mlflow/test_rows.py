"""Rows that an evaluation can use, and what becomes of answers and scorers that fail."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits, mlflow
from evalmeta.errors import UsageError
from evalmeta.mlflow.genai import create_dataset
from evalmeta.mlflow.genai.scorers import scorer
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.mlflow.entities import Trace

pytestmark = pytest.mark.filterwarnings("ignore:.*not judged")
ROWS = [{"inputs": {"question": "open?"}, "outputs": "Yes."}]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@scorer
def passes(outputs: object) -> bool:
    return bool(outputs)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (SimpleNamespace(simulate=print), "evalmeta.mlflow does not simulate users"),
        ([3], "row 1 is of type int, not a dict"),
    ],
)
def test_data_that_has_no_rows_is_refused(data: object, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        mlflow.genai.evaluate(data, [passes])
    assert str(caught.value) == reason


def test_a_dataset_is_evaluated_as_its_rows_are() -> None:
    dataset = create_dataset("orders").merge_records(ROWS)
    [case] = mlflow.genai.evaluate(dataset, [passes]).run.run.cases
    assert [result.verdict for result in case.results] == [Verdict.PASS]


def test_an_agent_that_returns_nothing_is_an_error_and_not_an_empty_answer() -> None:
    [case] = mlflow.genai.evaluate(ROWS, [passes], predict_fn=lambda question: None).run.run.cases  # noqa: ARG005
    assert "predict_fn returned None; let it return the answer" in str(case.error)


def test_an_assertion_of_a_scorer_that_fails_is_an_error_and_never_a_failure() -> None:
    @scorer
    def asserts(outputs: object) -> bool:
        raise AssertionError(f"no {outputs}")

    [case] = mlflow.genai.evaluate(ROWS, [asserts]).run.run.cases
    [result] = case.results
    assert (result.verdict, result.error) == (Verdict.ERROR, "AssertionError: no Yes.")


def test_scorers_see_all_of_a_trace_that_is_too_long_to_keep() -> None:
    long = "x" * limits.MAX_ANSWER_CHARS

    @mlflow.trace
    def agent(question: str) -> str:
        with mlflow.start_span("parse") as span:
            span.set_outputs(long)
        return question

    @scorer
    def sees(trace: Trace) -> bool:
        return len(str(trace.search_spans(name="parse")[0].outputs)) == len(long)

    [case] = mlflow.genai.evaluate([{"inputs": {"question": "open?"}}], [sees], predict_fn=agent).run.run.cases
    assert [result.verdict for result in case.results] == [Verdict.PASS]
    assert len(repr(case.generated)) < 3 * limits.MAX_ANSWER_CHARS
