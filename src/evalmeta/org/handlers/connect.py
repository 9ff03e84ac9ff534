"""The Connect API for agent tests: start runs, report their status, return their results.

`runOptions`, `evaluationFile`, `after`, the address `check`, and the addresses below a run that end in `definition`,
`extend` and `rescore` are extensions of evalmeta.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson
from starlette.exceptions import HTTPException

from evalmeta import limits
from evalmeta.errors import EvalmetaError, OrgFault, StoreError
from evalmeta.formats.document import reading_from
from evalmeta.model.registry import TESTING_DEFINITION, MetadataType, metadata_type, type_at_path, type_of_run
from evalmeta.model.run import Run, Verdict
from evalmeta.org import runs
from evalmeta.org.handlers.rest import json_reply, json_stream, read_body, respond
from evalmeta.org.organization import Organization, run_in_thread
from evalmeta.org.readiness import find_faults
from evalmeta.protocol.connect import write_cases, write_run
from evalmeta.protocol.json_fields import integer, list_of_objects, number, object_at, read_object, text, to_timestamp
from evalmeta.protocol.runs import RunFault, read_options, write_faults, write_run_definition
from evalmeta.protocol.testing import studio_status, write_testing_case, write_testing_run
from evalmeta.store.database import full_id
from evalmeta.store.stored_cases import open_cases

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.org.readiness import Need

# The iteration and the number of the last case before a page; 0-0 is the beginning.
_POSITION: Final = re.compile("([0-9]{1,9})-([0-9]{1,9})")


class _Call(NamedTuple):
    request: Request
    org: Organization
    user: User
    kind: MetadataType

    @property
    def is_studio(self) -> bool:
        return self.kind == TESTING_DEFINITION

    async def body(self) -> JsonObject:
        return read_object(await read_body(self.request, limit=limits.MAX_JSON_BYTES))

    def run_id(self) -> str:
        return full_id(self.request.path_params["run_id"])

    def run(self, named: str = "") -> Run:
        run_id = full_id(named) if named else self.run_id()
        run = self.org.runs.get(run_id) if type_of_run(run_id) == self.kind else None
        if run is None or not self.org.runs.is_visible_to(run.id, self.user):
            raise OrgFault(f"Run not found: {run_id}", code="NOT_FOUND")
        return run


def _endpoint(handler: Callable[[_Call], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    @wraps(handler)
    async def endpoint(request: Request) -> Response:
        kind = type_at_path(request.path_params["run_path"])
        if kind is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return await respond(request, lambda org, user: handler(_Call(request, org, user, kind)), oldest=kind.since)

    return endpoint


@_endpoint
async def post_run(call: _Call) -> Response:
    """Start a run of a definition, named under the key of its type, or of an `evaluationFile`."""
    body = await call.body()
    return await _launched(call, lambda org: runs.start_prepared(org, _prepared(org, call.kind, body), user=call.user))


@_endpoint
async def post_check(call: _Call) -> Response:
    """Return why `runs` could not start: requests as for `post_run` with their `type`, or `runId`s of earlier runs."""
    requests = list_of_objects(await call.body(), "runs")

    def check(org: Organization) -> list[RunFault]:
        # Not the prepared runs: their cases have no room in memory together.
        needs: dict[int, list[Need]] = {}
        faults: list[RunFault] = []
        for place, request in enumerate(requests):
            try:
                if run_id := text(request, "runId"):
                    run = runs.prepared_again(org, call._replace(org=org).run(run_id))
                else:
                    run = _prepared(org, metadata_type(text(request, "type")) or call.kind, request)
                needs[place] = run.needs
            except StoreError:
                raise
            except EvalmetaError as error:
                faults.append(RunFault(error, (place,)))
        places = [*needs]
        of_needs = find_faults(org, [*needs.values()])
        return [*faults, *(fault._replace(runs=tuple(places[number] for number in fault.runs)) for fault in of_needs)]

    faults = await run_in_thread(call.org, check)
    return json_reply(write_faults(faults, clean=call.org.without_paths))


def _prepared(org: Organization, kind: MetadataType, body: JsonObject) -> runs.PreparedRun:
    # Other clients than evalmeta's send no options.
    options = read_options(object_at(body, "runOptions"), default=org.settings().run_options())
    file = object_at(body, "evaluationFile")
    if not file:
        return runs.prepare_run(org, kind, text(body, kind.run_key), options)
    return runs.prepare_file_run(
        org,
        text(file, "path"),
        options,
        subject_name=text(file, "subjectName"),
        subject=object_at(file, "subject") or None,
        reading=reading_from(object_at(file, "reading")),
    )


@_endpoint
async def get_definition(call: _Call) -> Response:
    """Return the definition of a run and what is deployed now."""
    run = call.run()
    return json_reply(write_run_definition(await run_in_thread(call.org, lambda org: runs.definition_of_run(org, run))))


@_endpoint
async def post_extend(call: _Call) -> Response:
    """Add `iterations` to a finished run, or continue it with another `maxCost`."""
    body, run = await call.body(), call.run()
    iterations, max_cost = integer(body, "iterations", 0), number(body, "maxCost", None)

    def extend(org: Organization) -> str:
        runs.extend_run(org, run, iterations=iterations, max_cost=max_cost)
        return run.id

    return await _launched(call, extend, status=200)


@_endpoint
async def post_rescore(call: _Call) -> Response:
    """Start a run that scores the answers of another run again, with `runOptions`.

    With `orgUrl`, it is a run of that org, which the project saved.
    """
    body = await call.body()
    remote = runs.find_remote_run(call.org, call.run_id(), text(body, "orgUrl"))
    run = remote or call.run()
    options = read_options(object_at(body, "runOptions"), default=run.options)
    as_deployed = body.get("asDeployed") is True
    return await _launched(
        call, lambda org: runs.rescore_run(org, run, options, as_deployed=as_deployed, user=call.user)
    )


async def _launched(call: _Call, create: Callable[[Organization], str], *, status: int = 201) -> Response:
    # The run is created in a thread, but workers are launched from the event loop.
    run_id = await run_in_thread(replace(call.org, launch=lambda _: None), create)
    call.org.launch(run_id)
    return json_reply({"runId": run_id, "status": "CREATED" if call.is_studio else "NEW"}, status=status)


@_endpoint
async def post_cancel(call: _Call) -> Response:
    """Cancel a run; its finished cases stay."""
    run, error = call.run(), f"canceled by {call.user.name}"
    if not await run_in_thread(call.org, lambda org: org.runs.cancel(run.id, error=error, now=org.database.now())):
        raise OrgFault(f"Run {run.id} has already finished", code="INVALID_STATUS")
    return json_reply({"success": True})


@_endpoint
async def get_status(call: _Call) -> Response:
    """Return the status of a run, and launch a new worker if it has lost its own."""
    org, run = call.org, call.run()
    if runs.is_abandoned(org, run):
        org.launch(run.id)
    counts = org.runs.count(run.id)
    return json_reply(
        {
            "status": studio_status(run.status) if call.is_studio else run.status.value,
            "startTime": to_timestamp(run.started),
            "endTime": None if run.ended is None else to_timestamp(run.ended),
            "errorMessage": org.paths.optional(run.error),
            "testCasesCompleted": counts.total(),
            "testCasesNotPassed": counts[Verdict.FAILURE] + counts[Verdict.ERROR],
            "testCasesInError": counts[Verdict.ERROR],
            "testCasesUndecided": counts[Verdict.UNDECIDED],
            "testCasesTotal": run.total,
        }
    )


@_endpoint
async def get_results(call: _Call) -> Response:
    """Return the results so far; with `after`, one page of them and the value of `after` for the next page."""
    run, after = call.run(), call.request.query_params.get("after")
    if after is None:
        return await run_in_thread(call.org, lambda org: _all_results(org, run, is_studio=call.is_studio))
    position = _POSITION.fullmatch(after)
    if position is None:
        raise OrgFault(f"not a valid position in the results: {after[:40]}", code="INVALID_INPUT")
    first = int(position[1]), int(position[2])
    return await run_in_thread(
        call.org, lambda org: json_reply(_result_page(org, run, after=first, is_studio=call.is_studio))
    )


def _all_results(org: Organization, run: Run, *, is_studio: bool) -> Response:
    """Return all results; each case is written and sent as soon as it is read, so that memory does not grow."""
    paths = org.paths
    run = replace(run, error=paths.optional(run.error), cases=open_cases(org.database, run.id, change=paths.case))
    cases: Iterable[JsonObject]
    if is_studio:
        written, cases = write_testing_run(replace(run, cases=())), map(write_testing_case, run.cases)
    else:
        written = write_run(replace(run, cases=()), escape=True)
        cases = write_cases(run, escape=True, placeholders=runs.placeholders(org, run))
    # Quotes inside texts are escaped, so only the empty list itself can be found.
    head, _, end = orjson.dumps(written).partition(b'"testCases":[]')
    return json_stream(head + b'"testCases":[', map(orjson.dumps, cases), b"]" + end)


def _result_page(org: Organization, run: Run, *, after: tuple[int, int], is_studio: bool) -> JsonObject:
    # Only clients of evalmeta ask for pages, and they need neither placeholders nor escaped text.
    paths = org.paths
    cases = tuple(map(paths.case, org.runs.page(run.id, after=after)))
    run = replace(run, error=paths.optional(run.error), cases=cases)
    written = write_testing_run(run) if is_studio else write_run(run, escape=False)
    following = f"{run.cases[-1].iteration}-{run.cases[-1].number}" if run.cases else ""
    return {**written, "evalmeta": {**object_at(written, "evalmeta"), "next": following}}
