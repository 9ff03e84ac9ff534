"""Judging one answer outside of an evaluation, as scripts do that call a built-in scorer or a judge themselves."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.api.evaluating.evaluate import evaluate as run_evaluation
from evalmeta.engine.subjects.replay import bind_recorded
from evalmeta.errors import UsageError
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.generated_data import GeneratedData, Passage
from evalmeta.model.json_value import plain_value
from evalmeta.model.run import Verdict
from evalmeta.systems.databricks.rows import read_inputs
from evalmeta.systems.databricks.traces import read_trace, response_text
from evalmeta.systems.mlflow.assessments import AssessmentSource, AssessmentSourceType, Feedback
from evalmeta.systems.mlflow.tracking import notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.systems.databricks.rows import Request
    from evalmeta.systems.mlflow.entities import Trace

    _ValueOf: TypeAlias = Callable[[TestResult], JsonValue]

# The rater and the project's folder of the evaluation whose scorers run.
_judge: Final[ContextVar[tuple[object, Path | None]]] = ContextVar("judge", default=(None, None))


@contextmanager
def judged_by(rater: object, root: Path | None) -> Iterator[None]:
    """Let scorers that call judges use this rater, or that of the project in this folder."""
    token = _judge.set((rater, root))
    try:
        yield
    finally:
        _judge.reset(token)


def judged_value(result: TestResult) -> str | float | None:
    """Return the value of a result of a judge: yes, no, a number, or None if it was not judged."""
    if result.is_measured:
        return result.score
    return {Verdict.PASS: "yes", Verdict.FAILURE: "no"}.get(result.verdict)


def judge_answer(
    expectation: Expectation,
    *,
    inputs: object = None,
    outputs: object = None,
    trace: Trace | None = None,
    passages: Sequence[Passage] | None = None,
    model: str | None = None,
    value_of: _ValueOf = judged_value,
) -> Feedback:
    """Return what the project's rater says of one answer; without a value and with an error if it cannot judge.

    `value_of` returns the value of a result that is not yes, no or a number.
    """
    if model:
        notice("the model of a judge", "the project's rater judges (docs/rating.md)")
    traced = None if trace is None else read_trace(trace.to_dict())
    given = traced.request if traced and inputs is None else plain_value(inputs)
    asked = read_inputs(given if given is not None else {}, _refuse)
    generated = traced.generated if traced else GeneratedData("")
    if outputs is not None:
        generated = replace(generated, outcome=response_text(plain_value(outputs)))
    if passages is not None:
        generated = replace(generated, retrieved=tuple(passages))
    result = _judged(expectation, asked, generated, given)
    return _feedback_of(result, expectation.label or "", value_of(result))


def _refuse(what: str, _: object = (), hint: str = "", /) -> None:
    raise UsageError(what, actions=[hint] if hint else [])


def _judged(expectation: Expectation, asked: Request, generated: GeneratedData, inputs: JsonValue) -> TestResult:
    turn = Turn(asked.utterance, (expectation,), generated, inputs=inputs)
    evaluation = Evaluation("judgement", "recorded answer", (Case(1, (turn,), asked.history),))
    rater, root = _judge.get()
    [case] = run_evaluation(evaluation, bind_recorded(), rater=rater, root=root).run.cases
    return case.results[0]


def _feedback_of(result: TestResult, name: str, value: JsonValue) -> Feedback:
    source = AssessmentSource(AssessmentSourceType.LLM_JUDGE, result.rater or "evalmeta")
    if value is not None:
        return Feedback(name, value, source=source, rationale=result.explanation)
    return Feedback(name, error=result.error or result.explanation, source=source)
