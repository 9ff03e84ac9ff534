"""The Connect API for agent tests: start a run, ask for its status, fetch its results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.errors import OrgFault
from evalmeta.org.evaluations import is_abandoned, start
from evalmeta.org.handlers.bodies import read_body
from evalmeta.org.handlers.rest import guarded, json_reply
from evalmeta.wire.connect import read_options, write_run
from evalmeta.wire.jsonfields import object_at, read_object, text
from evalmeta.wire.timestamps import to_timestamp

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.run import CaseResult, Run
    from evalmeta.model.user import User
    from evalmeta.org.organization import Organization

__all__ = ["get_results", "get_status", "post_run"]


async def post_run(request: Request) -> Response:
    """Starts a run: `{"aiEvaluationDefinitionName": NAME}`, and `runOptions` as an extension."""

    async def answer(org: Organization, _: User) -> Response:
        body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
        name = text(body, "aiEvaluationDefinitionName")
        run_id = start(org, name, read_options(object_at(body, "runOptions")))
        return json_reply({"runId": run_id, "status": "NEW"}, status=201)

    return await guarded(request, answer)


async def get_status(request: Request) -> Response:
    """Tells how far a run is; one that lost its worker gets a new one."""

    async def answer(org: Organization, _: User) -> Response:
        run = _run(org, request)
        if is_abandoned(org, run):
            org.launch(run.id)
        done, not_passed = org.runs.count(run.id)
        return json_reply(
            {
                "status": run.status.value,
                "startTime": to_timestamp(run.started),
                "endTime": None if run.ended is None else to_timestamp(run.ended),
                "errorMessage": _cleaned(org, run.error),
                "testCasesCompleted": done,
                "testCasesNotPassed": not_passed,
                "testCasesTotal": run.total,
            }
        )

    return await guarded(request, answer)


async def get_results(request: Request) -> Response:
    """Gives the results so far."""

    async def answer(org: Organization, _: User) -> Response:
        run = _run(org, request)
        cases = tuple(_without_paths(org, case) for case in org.runs.cases(run.id))
        return json_reply(write_run(replace(run, error=_cleaned(org, run.error), cases=cases), escape=True))

    return await guarded(request, answer)


def _run(org: Organization, request: Request) -> Run:
    run_id = request.path_params["run_id"]
    run = org.runs.get(run_id)
    if run is None:
        raise OrgFault(f"Run not found: {run_id}", code="NOT_FOUND")
    return run


def _without_paths(org: Organization, case: CaseResult) -> CaseResult:
    results = tuple(replace(each, error=_cleaned(org, each.error)) if each.error else each for each in case.results)
    return replace(case, error=_cleaned(org, case.error), results=results)


def _cleaned(org: Organization, error: str | None) -> str | None:
    return None if error is None else org.without_paths(error)
