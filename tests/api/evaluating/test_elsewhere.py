from __future__ import annotations

import asyncio
import pickle
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace

import evalmeta
from engine.builders import MemoryJournal
from engine.remote.test_crew import Process
from evalmeta.api.evaluating.elsewhere import Elsewhere, EvaluationRecipe
from evalmeta.api.evaluating.inputs import load_evaluations
from evalmeta.engine.remote.crew import Crew
from evalmeta.engine.scheduler import Places, Pool
from evalmeta.engine.spending import Spending
from evalmeta.errors import UsageError
from evalmeta.model.run_options import RunOptions, Scoring

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.run import CaseResult

CASES = [{"input": f"question {number}", "contains": "even", "topic": "Numbers"} for number in range(20)]
KEY = "sk-0123456789abcdef"


def answer(utterance: str) -> Mapping[str, object]:
    number = int(utterance.split()[1])
    return {"outcome": f"{number} is {'odd' if number % 2 else 'even'}; the key is {KEY}", "topic": "Numbers"}


def compared(result: CaseResult) -> object:
    generated = result.generated and (result.generated.outcome, result.generated.topic)
    return result.number, result.verdict, generated, [(one.name, one.verdict, one.expected) for one in result.results]


def asked_elsewhere(recipe: EvaluationRecipe) -> list[object]:
    [loaded] = load_evaluations(CASES, name=None, root=None, subject_name="answer")
    journal, options = MemoryJournal(), RunOptions()

    async def run() -> None:
        crew = Crew([Process("one"), Process("two")])
        await crew.open()
        places = Places(Pool(options))
        elsewhere = Elsewhere(crew, pickle.dumps(recipe))
        await elsewhere.execute(
            *(loaded.evaluation, journal),
            options=options,
            on_results=lambda _: None,
            places=places,
            spending=Spending(),
        )
        await crew.close()

    asyncio.run(run())
    return sorted(map(compared, journal.results), key=str)


def test_workers_give_the_results_of_this_process() -> None:
    here = evalmeta.evaluate(CASES, answer)
    recipe = EvaluationRecipe(answer, None, "answer", (), Scoring(), traces=False)
    assert asked_elsewhere(recipe) == sorted(map(compared, here.run.cases), key=str)


def traced(utterance: str) -> str:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Numbers"}
    with trace.get_tracer("numbers").start_as_current_span("invoke_agent", attributes=attributes):
        return str(answer(utterance)["outcome"])


def test_workers_read_the_spans_of_an_agent_there() -> None:
    here = evalmeta.evaluate(CASES, answer)
    recipe = EvaluationRecipe(traced, None, "answer", (), Scoring(), traces=True)
    assert asked_elsewhere(recipe) == sorted(map(compared, here.run.cases), key=str)


def test_workers_hide_what_the_project_does() -> None:
    recipe = EvaluationRecipe(answer, None, "answer", (r"sk-\w+",), Scoring(), traces=False)
    results = asked_elsewhere(recipe)
    assert len(results) == len(CASES)
    assert KEY not in str(results)


def test_an_address_that_names_no_cluster_is_refused() -> None:
    with pytest.raises(UsageError, match="'http://cluster' does not name a cluster"):
        evalmeta.evaluate(CASES, answer, on="http://cluster")
