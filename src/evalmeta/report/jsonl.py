"""Runs as JSON Lines with one case result a line, which can be replayed as recorded answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.report.report import verdict_of
from evalmeta.report.text import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.report.report import Report


def render(reports: Sequence[Report]) -> str:
    """Return an object for each case result; all objects have the same keys, and unknown values are null.

    The keys `utterance`, `outcome`, `topic`, `actions`, `latency_ms`, `tokens` and `error` are those of recorded
    answers, so that a subject can replay the file. Texts are complete; the traces of answers are left out.
    """
    return "".join(f"{json_text(_case(report, case))}\n" for report in reports for case in report.run.cases)


def _case(report: Report, case: CaseResult) -> JsonObject:
    return {
        "definition": report.run.definition,
        "iteration": case.iteration,
        "number": case.number,
        "verdict": str(verdict_of(report, case)),
        "utterance": case.utterance,
        **_answer(case.generated),
        "error": case.error,
        "results": [_result(result) for result in case.results],
        "label": case.label or None,
        "earlier": [{"utterance": each.utterance, **_answer(each.generated)} for each in case.earlier],
    }


def _answer(generated: GeneratedData | None) -> JsonObject:
    if generated is None:
        return {"outcome": None, "topic": None, "actions": [], "latency_ms": None, "tokens": None}
    tokens = generated.tokens
    return {
        "outcome": generated.outcome,
        "topic": generated.topic,
        "actions": [_action(action) for action in generated.actions],
        "latency_ms": generated.latency_ms,
        "tokens": {"input": tokens.input, "output": tokens.output} if tokens else None,
    }


def _action(action: Action) -> JsonObject:
    return {"name": action.name, "input": action.input, "output": action.output, "latency_ms": action.latency_ms}


def _result(result: TestResult) -> JsonObject:
    return {
        "name": result.name,
        "label": result.label,
        "verdict": str(result.verdict),
        "score": result.score,
        "expected": result.expected,
        "actual": result.actual,
        "explanation": result.explanation,
        "detail": result.detail,
        "rater": result.rater,
        "error": result.error,
        "threshold": result.threshold,
        "turn": result.turn or None,
    }
