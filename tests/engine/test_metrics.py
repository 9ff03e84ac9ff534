"""A row of a judged metric reaches every place that knows metrics."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from engine.raters.llm.model_server import judgement, ruling
from engine.raters.llm.test_rater import FixedReplies
from evalmeta.engine.interfaces import Exchange, Rubric
from evalmeta.engine.metrics import METRICS, OWN, Criteria, Inquiry, Metric, needs_model
from evalmeta.engine.raters import offline_rater
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.prompts import system_message
from evalmeta.engine.raters.llm.rater import ModelRater
from evalmeta.engine.scorers import SCORERS, make_scorers, score
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case
from evalmeta.model.expectations import expectation_kind
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import Scoring
from generate import _metrics

DOCS = Path(__file__).parent.parent.parent / "docs"
ROW = Metric(
    Inquiry("Say whether the answer is polite.", ("question", "answer"), "yes or no."), docs=("it is polite", "")
)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_scorer_a_prompt_and_a_line_on_a_page(name: str) -> None:
    assert name in SCORERS
    assert METRICS[name].prompt.task in system_message(name)
    page = "scoring.md" if name in OWN else "specs.md" if name == "rubric" else "rating.md"
    assert f"`{name}`" in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", METRICS)
def test_rules_judge_what_needs_no_model(name: str) -> None:
    rating = offline_rater()(Rubric(name, "Where is it?", "It was shipped.", expected="It was shipped."))
    assert (rating is None) == needs_model(name) == (not METRICS[name].rules)


@pytest.mark.parametrize("name", OWN)
def test_a_metric_of_definitions_needs_a_reference_if_they_must_supply_a_value(name: str) -> None:
    kind = expectation_kind(name)
    assert kind is not None
    assert (kind.needs == "value") == ("reference" in OWN[name].needs)


def test_a_new_row_is_all_that_a_metric_of_another_system_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "acme/politeness", ROW)  # type: ignore[arg-type]
    result = judged("acme/politeness", ruling("yes", rationale="It is polite."))
    assert (result.verdict, result.score, result.explanation) == (Verdict.PASS, 1.0, "It is polite.")
    assert needs_model("acme/politeness")
    table = "".join(_metrics({"acme/politeness": ROW}, "metric | passes if | needs"))
    assert table == "| metric | passes if | needs |\n|---|---|---|\n| `acme/politeness` | it is polite | |\n"


def test_a_new_row_with_criteria_is_rated(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Metric(Criteria("Say how polite the answer is.", "what makes it polite."))
    monkeypatch.setitem(METRICS, "politeness", row)  # type: ignore[arg-type]
    monkeypatch.setitem(OWN, "politeness", row)  # type: ignore[arg-type]
    result = judged("politeness", judgement(4))
    assert (result.verdict, result.score) == (Verdict.PASS, 4.0)


def judged(name: str, reply: object) -> TestResult:
    """Judges an answer by a metric with a model that gives this reply."""
    rater = ModelRater([FixedReplies([json.dumps(reply)])], LlmRater(adapter="llm", model="fixed"))
    exchange = Exchange(Case(1, ()), "Where is it?", GeneratedData("It was shipped."))

    async def go() -> TestResult:
        result = score(Expectation(name), exchange, scorers=make_scorers(Scoring(), rater))
        assert not isinstance(result, TestResult)
        return await result

    return asyncio.run(go())
