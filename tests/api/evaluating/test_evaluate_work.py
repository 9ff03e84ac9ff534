"""What `evaluate` does once, however many cases there are, and what it does not do at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.builders import TOPIC, case, criterion
from evalmeta import RunOptions, evaluate
from evalmeta.engine import case_run
from evalmeta.engine.scorers import comparisons, trajectories
from evalmeta.engine.subjects import calls
from evalmeta.engine.subjects import objects as python
from evalmeta.model.definition import Expectation
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.store import runs
from evalmeta.store.database import open_database
from evalmeta.xmlio import definitions
from org.parts import definition, make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.evaluation import Case

EXPECTATIONS = (
    TOPIC,
    Expectation("action_sequence_match", "['Find']"),
    criterion("string_comparison", "contains", "$.generatedData.outcome", "Paris"),
    Expectation("output_latency_milliseconds", "60000"),
    Expectation("no_such_expectation", "1"),
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cases(count: int) -> list[Case]:
    # The last question comes first, so that the results must be sorted.
    return [case(f"question {number}", number=number, expectations=EXPECTATIONS) for number in range(count, 0, -1)]


async def answer(utterance: str) -> dict[str, object]:
    number = int(utterance.rsplit(maxsplit=1)[-1])
    if not number % 10:
        raise ValueError(utterance)
    return {
        "outcome": "In Paris — see [1]" if number % 3 else "On its way",
        "topic": "Orders",
        "actions": [{"name": "Find", "input": {"id": number, "places": ["Paris", None]}, "latency_ms": 1}],
        "latency_ms": number,
        "tokens": {"input": number},
        "trace": {"steps": [1.5, True]},
        "retrieved": [{"uri": "doc", "content": None}],
    }


def count_calls(patch: pytest.MonkeyPatch, owner: object, name: str) -> list[object]:
    calls: list[object] = []
    called: Callable[..., object] = getattr(owner, name)

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return called(*arguments)

    patch.setattr(owner, name, counted)
    return calls


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_returned_results_equal_those_in_the_journal(tmp_path: Path, iterations: int) -> None:
    options = RunOptions(iterations=iterations)
    finished = evaluate(cases(40), answer, name="A", journal=tmp_path / "j", options=options)
    with open_database(tmp_path / "j") as database:
        stored = runs.Runs(database).cases(finished.run.id)
    assert len(stored) == 40 * iterations
    assert finished.run.cases == stored
    assert {each.verdict for each in stored} == {Verdict.FAILURE, Verdict.ERROR}


def test_a_resumed_run_returns_the_earlier_results_too(tmp_path: Path) -> None:
    stopped = evaluate(cases(40), answer, name="A", journal=tmp_path / "j", options=RunOptions(max_errors=2))
    finished = evaluate(cases(40), answer, name="A", journal=tmp_path / "j")
    again = evaluate(cases(40), answer, name="A", journal=tmp_path / "j")
    assert (stopped.run.status, finished.run.status) == (RunStatus.ERROR, RunStatus.COMPLETED)
    assert [each.number for each in finished.run.cases] == [*range(1, 41)]
    assert 0 < len(stopped.run.cases) < 40
    assert all(each in finished.run.cases for each in stopped.run.cases)
    assert again.run == finished.run


def test_results_are_not_read_back_from_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = count_calls(monkeypatch, runs, "decode_case")
    evaluate(cases(20), answer, name="A", journal=tmp_path / "j")
    assert decoded == []
    evaluate(cases(20), answer, name="A", journal=tmp_path / "j")
    assert len(decoded) == 20


def test_results_that_are_not_kept_are_counted(tmp_path: Path) -> None:
    finished = evaluate(cases(20), answer, name="A", journal=tmp_path / "j", keep_results=False)
    assert (finished.run.cases, finished.summary.total, finished.summary.errors) == ((), 20, 14)


def test_an_agent_function_is_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count_calls(monkeypatch, calls, "_call_method"), count_calls(monkeypatch, python, "_accepted_names")
    evaluate(cases(20), answer, name="A")
    assert [len(each) for each in asked] == [1, 1]


def test_an_answer_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    converted = count_calls(monkeypatch, python, "_checked"), count_calls(monkeypatch, case_run, "generated_data")
    evaluate(cases(9), answer, name="A")
    assert [len(each) for each in converted] == [9, 0]


def test_a_criterion_of_many_cases_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = count_calls(monkeypatch, comparisons, "operand_reader")
    # Every case of a file has expectations of its own, which are equal.
    contains = [criterion("string_comparison", "contains", "$.generatedData.topic", "rders") for _ in range(20)]
    same = [case(f"question {number}", number=number, expectations=(contains[number - 1],)) for number in range(1, 21)]
    comparisons.criterion_of.cache_clear()
    assert evaluate(same, lambda _: {"outcome": "", "topic": "Orders"}, name="A").summary.passed == 20
    assert len(prepared) == 2


def test_the_cases_of_a_file_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path / "project")
    folder = project.root / "aiEvaluationDefinitions"
    folder.mkdir()
    for name in ("A", "B"):
        folder.joinpath(f"{name}.aiEvaluationDefinition").write_bytes(definition(name, cases=2))
    parsed = count_calls(monkeypatch, definitions, "_test_case")
    assert [each.summary.total for each in evaluate([folder], answer)] == [2, 2]
    # The second case of each file expects the same as the first.
    assert len(parsed) == 2


def test_the_expected_calls_of_many_cases_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = count_calls(monkeypatch, trajectories, "read_call")
    actions = ["Login", {"name": "Find", "input": {"id": {"at_least": 1}}}]
    same = [{"input": f"question {number}", "actions": actions} for number in range(1, 21)]
    trajectories.calls_of_terms.cache_clear()
    made = [{"name": "Login"}, {"name": "Find", "input": {"id": 7}}]
    assert evaluate(same, lambda _: {"outcome": "Found", "actions": made}, name="A").summary.passed == 20
    assert len(prepared) == 2
