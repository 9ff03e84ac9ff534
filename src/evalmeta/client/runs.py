"""Runs of agent tests over the Connect API, in evalmeta's own orgs and in Salesforce's.

Orgs of evalmeta report progress, return results in pages, and can extend and rescore runs.

For Salesforce's orgs only what is documented counts: a run's status and its results. Salesforce's own poll
ends only when the results say COMPLETED, and never when a run is ERROR or TERMINATED. Here the more advanced
of status and results counts, an unknown status (RETRY has been seen) means that the run is in progress, and
results that the org cannot return yet are requested again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import (
    EvalmetaError,
    MessageUnreadable,
    NotFound,
    OrgBusy,
    OrgError,
    OrgFault,
    Suggestion,
    UsageError,
)
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, MetadataType, type_of_run
from evalmeta.model.run import CaseResult, Run, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions, invalid_option
from evalmeta.protocol.connect import read_run, run_status
from evalmeta.protocol.json_fields import from_timestamp, integer, object_at, optional_text, text
from evalmeta.protocol.runs import RunDefinition, RunFault, read_faults, read_run_definition, write_options
from evalmeta.protocol.testing import plain_status, read_testing_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.model.json_value import JsonObject


_FIRST_PAGE: Final = "0-0"
_AFTER_ALL: Final = "999999999-999999999"
_OVER: Final = frozenset(status.value for status in RunStatus if status.is_over)
_ENDED_EARLY: Final = frozenset({RunStatus.ERROR, RunStatus.TERMINATED})


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run; the counts are 0 when the org does not report them.

    `not_passed` counts failed cases and errors.
    """

    status: str
    done: int = 0
    not_passed: int = 0
    total: int = 0
    error: str | None = None
    errors: int = 0
    undecided: int = 0

    @property
    def is_over(self) -> bool:
        """Return whether the run has ended."""
        return self.status in _OVER


async def start_run(
    connection: Connection,
    name: str,
    *,
    kind: MetadataType = EVALUATION_DEFINITION,
    options: RunOptions | None = None,
    file: JsonObject | None = None,
) -> str:
    """Start a run of a deployed definition and return its id.

    Args:
        connection: the org.
        name: the definition's full name.
        kind: its type.
        options: how to run it; sent only to evalmeta's own orgs.
        file: a file to run instead, only for a project's embedded org: `path`, `subjectName` and `subject`.

    Raises:
        NotFound: the definition is not in the org.
        SubjectNotBound: no adapter is bound to its agent in the org.
        OrgBusy: Agentforce Studio is already running it.
        OrgError: the org cannot be reached or refuses the call.
        UsageError: an option is out of range.
    """
    body = run_request(name, kind=kind, options=options if connection.is_ours else None, file=file)
    path = f"/einstein/{kind.run_path}/runs"
    reply = await connection.retry(lambda: connection.post(path, body), changes=True)
    run_id = text(reply, "runId")
    if run_id:
        return run_id
    if kind == TESTING_DEFINITION:
        raise OrgBusy(
            f"a run of {name} is already in progress in the org",
            is_undone=True,
            actions=["Start it again when that run is over."],
        )
    raise MessageUnreadable("the org started a run but returned no runId")


def run_request(
    name: str,
    *,
    kind: MetadataType = EVALUATION_DEFINITION,
    options: RunOptions | None = None,
    file: JsonObject | None = None,
) -> JsonObject:
    """Return the body of the request that `start_run` sends for the same arguments; raise UsageError like it."""
    extra = {} if options is None else {"runOptions": _written(options)}
    what: JsonObject = {kind.run_key: name} if file is None else {"evaluationFile": file}
    return {**what, **extra}


def _written(options: RunOptions) -> JsonObject:
    if problem := invalid_option(options):
        raise UsageError(f"options: {problem}")
    return write_options(options)


async def check_runs(connection: Connection, requests: Sequence[JsonObject]) -> list[RunFault]:
    """Return why runs could not start in an org of evalmeta; nothing is started, and no agent is called.

    Salesforce's orgs do not say; the list is empty then. `requests` are results of `run_request` with a `type`, or
    `runId`s of runs that are to continue.
    """
    if not connection.is_ours:
        return []
    path = f"/einstein/{EVALUATION_DEFINITION.run_path}/runs/check"
    return read_faults(await connection.retry(lambda: connection.post(path, {"runs": list(requests)})))


async def wait_for_run(
    connection: Connection,
    run_id: str,
    *,
    definition: str = "",
    wait: float | None = None,
    case_timeout: float = limits.ORG_CASE_SECONDS,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Run:
    """Wait until a run is over, report its progress, and return it with its results; raise WaitRanOut.

    A case can hang for 20 minutes in Salesforce's orgs. If no case of a run there has ended for `case_timeout` seconds,
    the run is returned as it is, still in progress, with the reason as its error.
    """
    if not connection.is_ours:
        return await _wait_for_salesforce_run(connection, run_id, definition, wait, case_timeout, on_progress)
    await poll_run(connection, run_id, wait=wait, on_progress=on_progress)
    return await fetch_results(connection, run_id, definition=definition)


async def fetch_run(connection: Connection, run_id: str, *, definition: str = "") -> Run:
    """Return a run with its results so far; raise NotFound, or OrgError if a completed run has no results."""
    if connection.is_ours:
        return await fetch_results(connection, run_id, definition=definition)
    run, fault = await _fetch_salesforce_run(connection, run_id, definition)
    if fault is not None:
        raise fault
    return run


async def poll_run(
    connection: Connection,
    run_id: str,
    *,
    wait: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Wait until a run in an org of evalmeta is over, and report its progress; raise like `wait_for_run`."""

    async def check() -> Progress:
        reply = await connection.get(_path(run_id))
        status = text(reply, "status")
        progress = Progress(
            plain_status(status) if kind_of_run(run_id) == TESTING_DEFINITION else status,
            integer(reply, "testCasesCompleted", 0),
            integer(reply, "testCasesNotPassed", 0),
            integer(reply, "testCasesTotal", 0),
            optional_text(reply, "errorMessage"),
            integer(reply, "testCasesInError", 0),
            integer(reply, "testCasesUndecided", 0),
        )
        on_progress(progress)
        return progress

    return await connection.poll(check, lambda progress: progress.is_over, job_id=run_id, wait=wait)


async def fetch_results(connection: Connection, run_id: str, *, definition: str = "") -> Run:
    """Return a run with its results so far, which evalmeta's own orgs return in pages; raise MessageUnreadable."""
    cases: list[CaseResult] = []
    after = _FIRST_PAGE if connection.is_ours else ""
    while len(cases) <= limits.MAX_TEST_CASES * limits.MAX_ITERATIONS:
        path = f"{_path(run_id)}/results{after and f'?after={after}'}"
        reply = await connection.retry(partial(connection.get, path))
        run = _read_results(reply, run_id, definition)
        cases += run.cases
        before, after = after, text(object_at(reply, "evalmeta"), "next")
        if not run.cases or not after:
            return replace(run, cases=tuple(cases))
        if after == before:
            break
    raise MessageUnreadable(f"the results of run {run_id} never end")


async def fetch_header(connection: Connection, run_id: str, *, definition: str = "") -> Run:
    """Return a run in an org of evalmeta without its cases; raise like `fetch_results`."""
    path = f"{_path(run_id)}/results?after={_AFTER_ALL}"
    return _read_results(await connection.retry(lambda: connection.get(path)), run_id, definition)


async def cancel_run(connection: Connection, run_id: str) -> None:
    """Cancel a run; finished cases stay. Raise EvalmetaError if it is over, OrgError if the org does not cancel it."""
    see = Suggestion("See its results", "test", "results", "--job-id", run_id)
    try:
        reply = await connection.retry(lambda: connection.post(f"{_path(run_id)}/cancel", {}), changes=True)
    except OrgFault as fault:
        if fault.code != "INVALID_STATUS":
            raise
        raise EvalmetaError(f"run {run_id} has already finished", actions=[see]) from None
    if reply.get("success") is False:
        raise OrgError(f"the org did not cancel run {run_id}", actions=[see])


async def fetch_definition(connection: Connection, run_id: str) -> RunDefinition:
    """Return the definition of a run, what is deployed now, and whether the run has no worker."""
    return read_run_definition(await connection.retry(lambda: connection.get(f"{_path(run_id)}/definition")))


async def extend_run(connection: Connection, run_id: str, *, iterations: int, max_cost: float | None = None) -> None:
    """Add iterations to a finished run; only the new ones run. Raise UsageError if it has that many.

    `max_cost` is its new cost limit, None for the one it has.
    """
    limit: JsonObject = {} if max_cost is None else {"maxCost": max_cost}
    await _post(connection, f"{_path(run_id)}/extend", {"iterations": iterations, **limit})


async def rescore_run(
    connection: Connection, run_id: str, options: RunOptions, *, as_deployed: bool, org_url: str = ""
) -> str:
    """Start a run that scores the answers of a finished run again, and return its id.

    `as_deployed` uses the definition as it is deployed now. `org_url` is the address of another org whose run the
    embedded org shall score. Raise UsageError if the run is not over.
    """
    origin: JsonObject = {"orgUrl": org_url} if org_url else {}
    body: JsonObject = {"runOptions": _written(options), "asDeployed": as_deployed, **origin}
    return await _post(connection, f"{_path(run_id)}/rescore", body)


async def _post(connection: Connection, path: str, body: JsonObject) -> str:
    try:
        reply = await connection.retry(lambda: connection.post(path, body), changes=True)
    except OrgFault as fault:
        if fault.code not in {"INVALID_STATUS", "INVALID_API_INPUT"}:
            raise
        raise UsageError(str(fault).removeprefix(f"{fault.code}: ")) from None
    return text(reply, "runId")


class _Snapshot(NamedTuple):
    """A run as its org reports it; `fault` is why a COMPLETED run has no results yet."""

    run: Run
    fault: EvalmetaError | None = None


async def _wait_for_salesforce_run(
    connection: Connection,
    run_id: str,
    definition: str,
    wait: float | None,
    case_timeout: float,
    on_progress: Callable[[Progress], None],
) -> Run:
    faults, run = 0, _empty_run(run_id, definition, RunStatus.NEW)
    ended, since = -1, time.monotonic()

    async def check() -> Run:
        nonlocal faults, run, ended, since
        try:
            run, fault = await _fetch_salesforce_run(connection, run_id, definition)
        except OrgFault as error:
            if not _is_server_error(error):
                raise
            fault = error
        faults = faults + 1 if fault is not None else 0
        if fault is not None and faults >= limits.MAX_POLL_ERRORS:
            raise fault
        not_passed = sum(case.verdict in {Verdict.FAILURE, Verdict.ERROR} for case in run.cases)
        on_progress(Progress(run.status.value, len(run.cases), not_passed, run.total, run.error))
        # Before an org shows cases, it is not known whether they have begun.
        if len(run.cases) != ended or not run.total or run.status is not RunStatus.IN_PROGRESS:
            ended, since = len(run.cases), time.monotonic()
        return run

    def is_done(run: Run) -> bool:
        return run.status.is_over or time.monotonic() - since > case_timeout

    run = await connection.poll(check, is_done, job_id=run_id, wait=wait)
    return run if run.status.is_over else replace(run, error=_stalled(run, case_timeout))


def _stalled(run: Run, seconds: float) -> str:
    missing = run.total - len(run.cases)
    if missing <= 0:
        return f"all cases have ended, but {seconds:g} seconds later the org still says that the run is in progress"
    what = f"{missing:,} of its {run.total:,} cases have" if missing > 1 else f"one of its {run.total:,} cases has"
    why = "as happens for about 20 minutes if a context variable is not declared"
    return f"no case has ended for {seconds:g} seconds, and {what} no result ({why})"


async def _fetch_salesforce_run(connection: Connection, run_id: str, definition: str) -> _Snapshot:
    state = await connection.get(_path(run_id))
    word = _status_word(state)
    status = run_status(word)
    if status is RunStatus.NEW:
        return _Snapshot(_with_state(_empty_run(run_id, definition, status), state))
    try:
        reply = await connection.get(f"{_path(run_id)}/results")
    except (OrgFault, NotFound) as fault:
        if isinstance(fault, OrgFault) and not _is_server_error(fault):
            raise
        is_late = status is RunStatus.COMPLETED
        run = _empty_run(run_id, definition, RunStatus.IN_PROGRESS if is_late else status)
        return _Snapshot(_with_state(run, state), fault if is_late else None)
    # Orgs leave out the status, and the list of cases while it is empty; readers require both.
    reply = {**reply, "status": _status_word(reply) or word, "testCases": reply.get("testCases") or []}
    run = _read_results(reply, run_id, definition)
    return _Snapshot(_with_state(run if status not in _ENDED_EARLY else replace(run, status=status), state))


def _is_server_error(fault: OrgFault) -> bool:
    return fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _with_state(run: Run, state: JsonObject) -> Run:
    """Add what is in the status but not in the results: Agentforce Studio's results have no times."""
    return replace(
        run,
        started=run.started or from_timestamp(text(state, "startTime")) or 0.0,
        ended=run.ended or (from_timestamp(text(state, "endTime")) if run.status.is_over else None),
        error=run.error or optional_text(state, "errorMessage") or None,
    )


def _empty_run(run_id: str, definition: str, status: RunStatus) -> Run:
    return Run(run_id, definition, "", status, 0.0, 0)


def _status_word(source: JsonObject) -> str:
    return plain_status(text(source, "status").strip().upper())


def _read_results(reply: JsonObject, run_id: str, definition: str) -> Run:
    read = read_testing_run if kind_of_run(run_id) == TESTING_DEFINITION else read_run
    return read(reply, run_id=run_id, definition=definition)


def _path(run_id: str) -> str:
    return f"/einstein/{kind_of_run(run_id).run_path}/runs/{run_id}"


def kind_of_run(run_id: str) -> MetadataType:
    """Return the metadata type that a run's id implies, by default Testing Center's."""
    return type_of_run(run_id) or EVALUATION_DEFINITION
