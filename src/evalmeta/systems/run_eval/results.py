"""Results of run-eval: what the steps of a test returned, and how its evaluators judged it.

Source: @salesforce/agents, `src/evalFormatter.ts` (EvalApiResponse). An evaluator that evalmeta cannot judge and a
failed step are among the `errors` of the test; then sf exits with 1. An undecided result has an `error_message`, and
neither a score nor `is_pass`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.generated_data import invoked_actions
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.systems.run_eval.reader import PlannedTest
    from evalmeta.systems.run_eval.references import StepOutput


_RATING: Final = "evaluator.bot_response_rating"
_UNJUDGED: Final = "evaluator."
_PASSED: Final = {Verdict.PASS: True, Verdict.FAILURE: False}


def write_test_result(test: PlannedTest, case: CaseResult | None, *, run_id: str, error: str = "") -> JsonObject:
    """Write the result of a test; `error` says why a test has no case."""
    answers = [turn.generated for turn in case.earlier] if case else []
    if case and case.generated:
        answers.append(case.generated)
    session = next(
        (answer.session_id for answer in answers if answer.session_id), f"{run_id}-{case.number if case else 0}"
    )
    done = [step for step in test.outputs if step.sent <= len(answers)]
    order = [*test.evaluators]
    results = sorted(case.results if case else (), key=lambda each: order.index(each.label or ""))
    errors = [*_failed_step(test, len(done), (case.error if case else error) or ""), *_unjudged(results)]
    return {
        "id": test.id,
        "outputs": [_output(step, answers, session) for step in done] if case else [],
        "evaluation_results": [
            _evaluation(test, result) for result in results if not result.name.startswith(_UNJUDGED)
        ],
        "errors": errors,
    }


def _output(step: StepOutput, answers: Sequence[GeneratedData], session: str) -> JsonObject:
    output: JsonObject = {"type": step.type, "id": step.id}
    if step.type == "agent.create_session":
        return {**output, "session_id": session}
    if step.type == "agent.send_message":
        return {**output, "response": answers[step.sent - 1].outcome}
    return {**output, "response": _state(answers[step.sent - 1]) if step.sent else {}}


def _state(answer: GeneratedData) -> JsonObject:
    """Return what `agent.get_state` reports of the last message."""
    last: JsonObject = {
        "topic": answer.topic,
        "latency": None if answer.latency_ms is None else round(answer.latency_ms),
        "invokedActions": None if answer.actions is None else invoked_actions(answer.actions),
        "message": {"message": answer.outcome},
    }
    return {"planner_response": {"lastExecution": last}}


def _evaluation(test: PlannedTest, result: TestResult) -> JsonObject:
    kind, passed = test.evaluators[result.label or ""], _PASSED.get(result.verdict)
    is_decided = passed is not None or result.is_measured
    score = result.score if kind == _RATING or passed is None else float(passed)
    return {
        "type": kind,
        "id": result.label,
        "score": score if is_decided else None,
        "is_pass": passed,
        "actual_value": result.actual,
        "expected_value": result.expected,
        "error_message": None if is_decided else (result.error or f"undecided: {result.explanation}"),
        "explainability": result.explanation,
    }


def _unjudged(results: Sequence[TestResult]) -> Iterator[JsonObject]:
    for result in results:
        if result.name.startswith(_UNJUDGED):
            yield {"id": result.label, "error_message": f"{result.name} cannot be judged here: {result.explanation}"}


def _failed_step(test: PlannedTest, done: int, error: str) -> Iterator[JsonObject]:
    if error:
        failed = test.outputs[done].id if done < len(test.outputs) else test.id
        yield {"id": failed, "error_message": error}
