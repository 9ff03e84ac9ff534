"""The Connect API for agent tests: start a run, ask for its status, fetch its results."""

from __future__ import annotations

import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from evalmeta import limits
from evalmeta.errors import OrgFault
from evalmeta.model.registry import TESTING_DEFINITION, type_at_path, type_of_run
from evalmeta.org.evaluations import is_abandoned, start
from evalmeta.org.handlers.bodies import read_body
from evalmeta.org.handlers.rest import guarded, json_reply
from evalmeta.org.results import stand_ins
from evalmeta.wire.connect import read_options, write_run
from evalmeta.wire.jsonfields import object_at, read_object, text
from evalmeta.wire.testing import studio_status, write_testing_run
from evalmeta.wire.timestamps import to_timestamp

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import CaseResult, Run
    from evalmeta.model.user import User
    from evalmeta.org.organization import Organization

__all__ = ["get_results", "get_status", "post_cancel", "post_run"]


async def post_run(request: Request) -> Response:
    """Starts a run: the definition's name under the key of its type, and `runOptions` as an extension."""
    kind = _kind(request)

    async def answer(org: Organization, _: User) -> Response:
        body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
        run_id = start(org, kind, text(body, kind.run_key), read_options(object_at(body, "runOptions")))
        return json_reply({"runId": run_id, "status": "CREATED" if _is_testing(kind) else "NEW"}, status=201)

    return await guarded(request, answer, oldest=kind.since)


async def post_cancel(request: Request) -> Response:
    """Cancels a run; its finished cases stay."""
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        run = _run(org, kind, request)
        if not org.runs.cancel(run.id, error=f"canceled by {user.name}", now=time.time()):
            raise OrgFault(f"Run {run.id} is over already", code="INVALID_STATUS")
        return json_reply({"success": True})

    return await guarded(request, answer, oldest=kind.since)


async def get_status(request: Request) -> Response:
    """Tells how far a run is; one that lost its worker gets a new one."""
    kind = _kind(request)

    async def answer(org: Organization, _: User) -> Response:
        run = _run(org, kind, request)
        if is_abandoned(org, run):
            org.launch(run.id)
        done, not_passed = org.runs.count(run.id)
        return json_reply(
            {
                "status": studio_status(run.status) if _is_testing(kind) else run.status.value,
                "startTime": to_timestamp(run.started),
                "endTime": None if run.ended is None else to_timestamp(run.ended),
                "errorMessage": _cleaned(org, run.error),
                "testCasesCompleted": done,
                "testCasesNotPassed": not_passed,
                "testCasesTotal": run.total,
            }
        )

    return await guarded(request, answer, oldest=kind.since)


async def get_results(request: Request) -> Response:
    """Gives the results so far."""
    kind = _kind(request)

    async def answer(org: Organization, _: User) -> Response:
        run = _run(org, kind, request)
        cases = tuple(_without_paths(org, case) for case in org.runs.cases(run.id))
        run = replace(run, error=_cleaned(org, run.error), cases=cases)
        if _is_testing(kind):
            return json_reply(write_testing_run(run))
        return json_reply(write_run(run, escape=True, stand_ins=stand_ins(org, run)))

    return await guarded(request, answer, oldest=kind.since)


def _kind(request: Request) -> MetadataType:
    kind = type_at_path(request.path_params["run_path"])
    if kind is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return kind


def _is_testing(kind: MetadataType) -> bool:
    return kind == TESTING_DEFINITION


def _run(org: Organization, kind: MetadataType, request: Request) -> Run:
    run_id = request.path_params["run_id"]
    run = org.runs.get(run_id) if type_of_run(run_id) == kind else None
    if run is None:
        raise OrgFault(f"Run not found: {run_id}", code="NOT_FOUND")
    return run


def _without_paths(org: Organization, case: CaseResult) -> CaseResult:
    results = tuple(replace(each, error=_cleaned(org, each.error)) if each.error else each for each in case.results)
    return replace(case, error=_cleaned(org, case.error), results=results)


def _cleaned(org: Organization, error: str | None) -> str | None:
    return None if error is None else org.without_paths(error)
