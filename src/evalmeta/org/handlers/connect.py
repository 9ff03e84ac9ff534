"""The Connect API for agent tests: start a run, ask for its status, fetch its results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson
from starlette.responses import Response

from evalmeta import limits
from evalmeta.errors import EvalmetaError, OrgFault
from evalmeta.org.evaluations import is_abandoned, start
from evalmeta.org.handlers.bodies import read_body
from evalmeta.org.handlers.faults import code_of, message_of
from evalmeta.wire.connect import read_options, write_run
from evalmeta.wire.jsonfields import object_at, read_object, text
from evalmeta.wire.timestamps import to_timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from evalmeta.model.jsonvalue import JsonValue
    from evalmeta.model.run import CaseResult, Run
    from evalmeta.org.organization import Organization

__all__ = ["get_results", "get_status", "post_run"]

_STATUS_CODES: Final = {
    "INVALID_SESSION_ID": 401,
    "NOT_FOUND": 404,
    "REQUEST_TOO_LARGE": 413,
    "SERVER_UNAVAILABLE": 503,
}


async def post_run(request: Request) -> Response:
    """Starts a run: `{"aiEvaluationDefinitionName": NAME}`, and `runOptions` as an extension."""

    async def answer(org: Organization) -> Response:
        body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
        name = text(body, "aiEvaluationDefinitionName")
        run_id = start(org, name, read_options(object_at(body, "runOptions")))
        return _json({"runId": run_id, "status": "NEW"}, status=201)

    return await _guarded(request, answer)


async def get_status(request: Request) -> Response:
    """Tells how far a run is; one that lost its worker gets a new one."""

    async def answer(org: Organization) -> Response:
        run = _run(org, request)
        if is_abandoned(org, run):
            org.launch(run.id)
        done, not_passed = org.runs.count(run.id)
        return _json(
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

    return await _guarded(request, answer)


async def get_results(request: Request) -> Response:
    """Gives the results so far."""

    async def answer(org: Organization) -> Response:
        run = _run(org, request)
        cases = tuple(_without_paths(org, case) for case in org.runs.cases(run.id))
        return _json(write_run(replace(run, error=_cleaned(org, run.error), cases=cases), escape=True))

    return await _guarded(request, answer)


async def _guarded(request: Request, answer: Callable[[Organization], Awaitable[Response]]) -> Response:
    org: Organization = request.app.state.org
    try:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if org.user_of(token) is None:
            raise OrgFault("Session expired or invalid", code="INVALID_SESSION_ID")
        if not org.speaks(request.path_params["version"]):
            raise OrgFault("The requested resource does not exist", code="NOT_FOUND")
        return await answer(org)
    except EvalmetaError as error:
        code = code_of(error, otherwise="JSON_PARSER_ERROR")
        return _json([{"message": message_of(error, org), "errorCode": code}], status=_STATUS_CODES.get(code, 400))


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


def _json(content: JsonValue, *, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status_code=status, media_type="application/json;charset=UTF-8")
