"""The evaluation API of `sf agent test run-eval`, which has one call: run tests and return their results.

Sources: @salesforce/agents, `src/agentEvalRunner.ts` (sf sends the call to api.salesforce.com, not to the org) and
`src/evalFormatter.ts` (EvalApiResponse). An evaluator that evalmeta cannot judge and a failed step are among the
`errors` of the test; then sf exits with 1. An undecided result has an `error_message`, but no score and no `is_pass`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson
from starlette.routing import Route

from evalmeta import limits
from evalmeta.errors import FormatError, OrgFault
from evalmeta.model.generated_data import GeneratedData, invoked_actions
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.org.handlers import Handlers
from evalmeta.org.handlers.rest import authenticated, json_reply, read_body
from evalmeta.org.organization import Organization, run_in_thread
from evalmeta.org.runs import check_needs, is_abandoned, prepare_received_run, start_prepared
from evalmeta.org.subjects import agents_of
from evalmeta.store.stored_cases import open_cases
from evalmeta.systems.run_eval.payloads import PlannedTest, read_payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.login import User
    from evalmeta.systems.run_eval.evaluators import StepOutput


_RATING: Final = "evaluator.bot_response_rating"
_UNJUDGED: Final = "evaluator."
_PASSED: Final = {Verdict.PASS: True, Verdict.FAILURE: False}
_NAME: Final = "run-eval"
_SHOWN: Final = 3
_ID_CHARS: Final = 15
_FIRST_PAUSE: Final = 0.02
_LAST_PAUSE: Final = 0.5


@authenticated()
async def post_tests(request: Request, org: Organization, user: User) -> Response:
    """Run the tests of a payload, each agent's in a run of its own, and return the results in their order."""
    body = await read_body(request, limit=limits.MAX_SPEC_BYTES)
    try:
        payload = await asyncio.to_thread(read_payload, body, label="payload", name=_NAME, is_raw=True)
    except FormatError as error:
        raise _refusal(error) from None
    payloads: list[JsonValue] = orjson.loads(body)["tests"]
    tests = payload.tests

    def start(org: Organization) -> dict[str, list[int]]:
        known = {agent.id[:_ID_CHARS]: agent.name for agent in agents_of(org)}
        agents = [_agent_of(known, test) for test in tests]
        groups = [[place for place, agent in enumerate(agents) if agent == name] for name in dict.fromkeys(agents)]
        options = replace(org.settings().run_options(), iterations=1, cases=None, shard=None)
        parts = [
            orjson.dumps({"tests": [payloads[place] for place in places], "subjectName": agents[places[0]]})
            for places in groups
        ]
        prepared = [prepare_received_run(org, part, _NAME, options) for part in parts]
        # No agent is asked if one of them cannot be.
        for run in prepared:
            check_needs(org, run)
        return {start_prepared(org, run, user=user): places for run, places in zip(prepared, groups, strict=True)}

    # Runs are created in a thread, but workers are launched from the event loop.
    runs = await run_in_thread(replace(org, launch=lambda _: None), start)
    by_place: dict[int, JsonObject] = {}
    waiting = [_results(org, run_id, [tests[place] for place in places]) for run_id, places in runs.items()]
    for places, results in zip(runs.values(), await asyncio.gather(*waiting), strict=True):
        by_place.update(zip(places, results, strict=True))
    return json_reply({"results": [by_place[place] for place in range(len(tests))]})


def _refusal(error: FormatError) -> OrgFault:
    problems = [f"{problem.location}: {problem.message}" for problem in error.problems if problem.is_error]
    more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    return OrgFault("; ".join((*problems[:_SHOWN], *more)) or str(error), code="INVALID_INPUT")


def _agent_of(agents: Mapping[str, str], test: PlannedTest) -> str:
    if not test.agent_id:
        message = f"the test {test.id!r:.80} names no agent: its agent.create_session needs an agent_id"
        raise OrgFault(message, code="INVALID_INPUT", actions=["With sf, name the agent: --api-name NAME."])
    name = agents.get(test.agent_id[:_ID_CHARS])
    if name is None:
        raise OrgFault(f"the agent {test.agent_id!r:.40} is not in this org", code="INVALID_INPUT")
    return name


async def _results(org: Organization, run_id: str, tests: Sequence[PlannedTest]) -> list[JsonObject]:
    org.launch(run_id)
    error = await _wait(org, run_id)
    cases = {case.number: case for case in open_cases(org.database, run_id, change=org.paths.case)}
    reason = org.without_paths(error or "the test was not run")
    return [_test_result(test, cases.get(number), run_id=run_id, error=reason) for number, test in enumerate(tests, 1)]


async def _wait(org: Organization, run_id: str) -> str:
    """Wait until a run is over, and return its error; start a new worker if it has lost its own."""
    pause = _FIRST_PAUSE
    while True:
        run = org.runs.get(run_id)
        if run is None:
            return "the run was deleted"
        if run.status.is_over:
            return run.error or ""
        if pause >= _LAST_PAUSE and is_abandoned(org, run):
            org.launch(run_id)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LAST_PAUSE)


def _test_result(test: PlannedTest, case: CaseResult | None, *, run_id: str, error: str = "") -> JsonObject:
    """Write the result of a test; `error` says why a test has no case."""
    answers = [turn.generated for turn in case.earlier] if case else []
    if case and case.generated:
        answers.append(case.generated)
    own = f"{run_id}-{case.number if case else 0}"
    session = next((answer.session_id for answer in answers if answer.session_id), own)
    done = [step for step in test.outputs if step.sent <= len(answers)]
    order = [*test.evaluators]
    results = sorted(case.results if case else (), key=lambda result: order.index(result.label or ""))
    errors: list[JsonObject] = []
    if failure := (case.error if case else error):
        failed = test.outputs[len(done)] if len(done) < len(test.outputs) else test
        errors.append({"id": failed.id, "error_message": failure})
    for result in results:
        if result.name.startswith(_UNJUDGED):
            message = f"{result.name} cannot be judged here: {result.explanation}"
            errors.append({"id": result.label, "error_message": message})
    judged = [_evaluation(test, result) for result in results if not result.name.startswith(_UNJUDGED)]
    outputs = [_output(step, answers, session) for step in done] if case else []
    return {"id": test.id, "outputs": outputs, "evaluation_results": judged, "errors": errors}


def _output(step: StepOutput, answers: Sequence[GeneratedData], session: str) -> JsonObject:
    output: JsonObject = {"type": step.type, "id": step.id}
    if step.type == "agent.create_session":
        return {**output, "session_id": session}
    if step.type == "agent.send_message":
        return {**output, "response": answers[step.sent - 1].outcome}
    return {**output, "response": _state(answers[step.sent - 1]) if step.sent else {}}


def _state(answer: GeneratedData) -> JsonObject:
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


HANDLERS: Final = Handlers([Route("/einstein/evaluation/v1/tests", post_tests, methods=["POST"])])
