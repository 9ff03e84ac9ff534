"""The Connect API for agent tests: start a run, ask for its status, fetch its results."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from evalmeta import limits
from evalmeta.errors import OrgFault
from evalmeta.formats.document import reading_from
from evalmeta.model.registry import TESTING_DEFINITION, type_at_path, type_of_run
from evalmeta.org.handlers.rest import guarded, json_reply, read_body
from evalmeta.org.runs import extend, is_abandoned, look_at_definition, rescore, stand_ins, start, start_file
from evalmeta.org.threads import in_thread
from evalmeta.protocol.connect import write_run
from evalmeta.protocol.json_fields import integer, object_at, read_object, text, to_timestamp
from evalmeta.protocol.run_options import read_options
from evalmeta.protocol.testing import studio_status, write_testing_run
from evalmeta.store.database import full_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import CaseResult, Run, RunOptions, TestResult
    from evalmeta.org.organization import Organization


# The iteration and the number of the case before a page; 0-0 stands before the first.
_PLACE: Final = re.compile("([0-9]{1,9})-([0-9]{1,9})")


async def post_run(request: Request) -> Response:
    """Starts a run: the definition's name under the key of its type, and `runOptions` as an extension.

    Another extension is `evaluationFile`, with `path`, `subjectName` and `subject`, instead of a name.
    """
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
        name, options = text(body, kind.run_key), read_options(object_at(body, "runOptions"))
        # Workers are begun from the event loop.
        idle = replace(org, launch=lambda _: None)
        file = object_at(body, "evaluationFile")
        if file:
            run_id = await in_thread(idle, lambda own: _start_file(own, file, options))
        else:
            run_id = await in_thread(idle, lambda own: start(own, kind, name, options, user=user))
        org.launch(run_id)
        return json_reply({"runId": run_id, "status": "CREATED" if _is_testing(kind) else "NEW"}, status=201)

    return await guarded(request, answer, oldest=kind.since)


def _start_file(org: Organization, file: JsonObject, options: RunOptions) -> str:
    return start_file(
        org,
        text(file, "path"),
        options,
        subject_name=text(file, "subjectName"),
        subject=object_at(file, "subject") or None,
        reading=reading_from(object_at(file, "reading")),
    )


async def get_definition(request: Request) -> Response:
    """Gives what a run asks and what is deployed now, an extension: whoever resumes a run wants to know."""
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        run = _run(org, user, kind, request)
        found = await in_thread(org, lambda own: look_at_definition(own, run))
        now = None if found.now is None else b64encode(found.now).decode()
        body = {"then": b64encode(found.then).decode(), "now": now, "isAbandoned": found.is_abandoned}
        return json_reply(body)

    return await guarded(request, answer, oldest=kind.since)


async def post_extend(request: Request) -> Response:
    """Gives a run that is over more `iterations`, an extension."""
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
        run, iterations = _run(org, user, kind, request), integer(body, "iterations", 0)
        idle = replace(org, launch=lambda _: None)
        await in_thread(idle, lambda own: extend(own, run, iterations=iterations))
        org.launch(run.id)
        return json_reply({"runId": run.id, "status": "CREATED" if _is_testing(kind) else "NEW"})

    return await guarded(request, answer, oldest=kind.since)


async def post_rescore(request: Request) -> Response:
    """Starts a run that judges another one's answers again, by `runOptions`, an extension."""
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        body = read_object(await read_body(request, limit=limits.MAX_JSON_BYTES))
        run, options = _run(org, user, kind, request), read_options(object_at(body, "runOptions"))
        as_deployed = body.get("asDeployed") is True
        idle = replace(org, launch=lambda _: None)
        run_id = await in_thread(idle, lambda own: rescore(own, run, options, as_deployed=as_deployed, user=user))
        org.launch(run_id)
        return json_reply({"runId": run_id, "status": "CREATED" if _is_testing(kind) else "NEW"}, status=201)

    return await guarded(request, answer, oldest=kind.since)


async def post_cancel(request: Request) -> Response:
    """Cancels a run; its finished cases stay."""
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        run = _run(org, user, kind, request)
        error = f"canceled by {user.name}"
        if not await in_thread(org, lambda own: own.runs.cancel(run.id, error=error, now=time.time())):
            raise OrgFault(f"Run {run.id} is over already", code="INVALID_STATUS")
        return json_reply({"success": True})

    return await guarded(request, answer, oldest=kind.since)


async def get_status(request: Request) -> Response:
    """Tells how far a run is; one that lost its worker gets a new one."""
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        run = _run(org, user, kind, request)
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
    """Gives the results so far; with `after`, an extension, a page of them and `evalmeta.next`, which asks for more."""
    kind = _kind(request)

    async def answer(org: Organization, user: User) -> Response:
        run, after = _run(org, user, kind, request), request.query_params.get("after")
        if after is None:
            return await in_thread(org, lambda own: json_reply(_whole(own, kind, run)))
        place = _place(after)
        return await in_thread(org, lambda own: json_reply(_page(own, kind, run, after=place)))

    return await guarded(request, answer, oldest=kind.since)


def _whole(org: Organization, kind: MetadataType, run: Run) -> JsonObject:
    run = _with_cases(org, run, org.runs.cases(run.id))
    return write_testing_run(run) if _is_testing(kind) else write_run(run, escape=True, stand_ins=stand_ins(org, run))


def _page(org: Organization, kind: MetadataType, run: Run, *, after: tuple[int, int]) -> JsonObject:
    # Whoever asks for pages is a client of evalmeta's and needs no stand-ins.
    run = _with_cases(org, run, org.runs.page(run.id, after=after))
    written = write_testing_run(run) if _is_testing(kind) else write_run(run, escape=True)
    following = f"{run.cases[-1].iteration}-{run.cases[-1].number}" if run.cases else ""
    return {**written, "evalmeta": {**object_at(written, "evalmeta"), "next": following}}


def _place(after: str) -> tuple[int, int]:
    found = _PLACE.fullmatch(after)
    if found is None:
        raise OrgFault(f"no place in results: {after[:40]}", code="INVALID_INPUT")
    return int(found[1]), int(found[2])


def _with_cases(org: Organization, run: Run, cases: Iterable[CaseResult]) -> Run:
    return replace(run, error=_cleaned(org, run.error), cases=tuple(_without_paths(org, case) for case in cases))


def _kind(request: Request) -> MetadataType:
    kind = type_at_path(request.path_params["run_path"])
    if kind is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return kind


def _is_testing(kind: MetadataType) -> bool:
    return kind == TESTING_DEFINITION


def _run(org: Organization, user: User, kind: MetadataType, request: Request) -> Run:
    run_id = full_id(request.path_params["run_id"])
    run = org.runs.get(run_id) if type_of_run(run_id) == kind else None
    if run is None or not org.runs.is_visible_to(run.id, user):
        raise OrgFault(f"Run not found: {run_id}", code="NOT_FOUND")
    return run


def _without_paths(org: Organization, case: CaseResult) -> CaseResult:
    results = tuple(_told(org, each) if each.error else each for each in case.results)
    return replace(case, error=_cleaned(org, case.error), results=results)


def _told(org: Organization, result: TestResult) -> TestResult:
    return result._replace(error=_cleaned(org, result.error), explanation=org.without_paths(result.explanation))


def _cleaned(org: Organization, error: str | None) -> str | None:
    return None if error is None else org.without_paths(error)
