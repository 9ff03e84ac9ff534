"""Running agent tests over the Connect API.

Runs in orgs that keep to what Salesforce documents: how far one is, by its status and by its results.

Salesforce's own poll ends only when the results say COMPLETED, and never when a run is ERROR
or TERMINATED. Here whichever of status and results knows more is believed, a word that is not
known (RETRY has been seen) means that the run goes on, and results that the org cannot give
while it does are asked for again.

What orgs of evalmeta's do with runs besides: compare their definitions, extend them, judge their answers again.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.client.http import persist, poll
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
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, type_of_run
from evalmeta.model.run import Run, RunStatus, Verdict
from evalmeta.protocol.connect import read_run
from evalmeta.protocol.json_fields import from_timestamp, integer, object_at, optional_text, text
from evalmeta.protocol.run_options import write_options
from evalmeta.protocol.testing import plain_status, read_testing_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import CaseResult, RunOptions


_BEGINNING: Final = "0-0"
_OVER: Final = frozenset(status.value for status in RunStatus if status.is_over)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; the counts are 0 when the org does not tell them."""

    status: str
    done: int = 0
    not_passed: int = 0
    total: int = 0
    error: str | None = None

    @property
    def is_over(self) -> bool:
        """Says whether nothing more will happen."""
        return self.status in _OVER


async def start_run(
    connection: Connection,
    name: str,
    *,
    kind: MetadataType = EVALUATION_DEFINITION,
    options: RunOptions | None = None,
    file: JsonObject | None = None,
) -> str:
    """Starts a run of a deployed definition of a type and gives its id.

    Args:
        connection: the org.
        name: the definition's full name.
        kind: its type.
        options: how to run it; they are sent to evalmeta's own orgs only.
        file: run this file instead, which only a project's embedded org does: `path`, `subjectName` and `subject`.

    Raises:
        NotFound: no such definition is in the org.
        SubjectNotBound: the org knows no adapter for its agent.
        OrgBusy: Agentforce Studio is at a run of it already.
        OrgError: the org cannot be reached or refuses the call.
    """
    extra = {"runOptions": write_options(options)} if options is not None and connection.is_ours else {}
    what: JsonObject = {kind.run_key: name} if file is None else {"evaluationFile": file}
    reply = await persist(
        lambda: connection.post(runs_path(kind), {**what, **extra}), every=connection.poll_seconds, changes=True
    )
    run_id = text(reply, "runId")
    if run_id:
        return run_id
    if kind == TESTING_DEFINITION:
        raise OrgBusy(
            f"a run of {name} is in progress in the org already",
            is_undone=True,
            actions=["Start it again when that one is over."],
        )
    raise MessageUnreadable("the org started a run and gave no runId")


async def follow(
    connection: Connection, run_id: str, *, wait: float | None = None, on_progress: Callable[[Progress], None]
) -> Progress:
    """Waits until a run of an org of evalmeta's is over, and reports every answer on the way.

    What Salesforce's orgs say of a run needs more care: `remote_runs.watch`.

    Raises:
        NotFound: no such run is in the org.
        WaitRanOut: the run goes on after `wait` seconds.
    """
    kind = kind_of_run(run_id)

    async def check() -> Progress:
        reply = await connection.get(f"{runs_path(kind)}/{run_id}")
        status = text(reply, "status")
        progress = Progress(
            plain_status(status) if kind == TESTING_DEFINITION else status,
            integer(reply, "testCasesCompleted", 0),
            integer(reply, "testCasesNotPassed", 0),
            integer(reply, "testCasesTotal", 0),
            optional_text(reply, "errorMessage"),
        )
        on_progress(progress)
        return progress

    return await poll(check, lambda progress: progress.is_over, job_id=run_id, wait=wait, every=connection.poll_seconds)


async def fetch_results(connection: Connection, run_id: str, *, definition: str = "") -> Run:
    """Fetches a run with all results there are so far; orgs of evalmeta's own give them in pages.

    Raises:
        NotFound: no such run is in the org.
        MessageUnreadable: what came is no results object, or has no end.
    """
    cases: list[CaseResult] = []
    after = _BEGINNING if connection.is_ours else ""
    while len(cases) <= limits.MAX_TEST_CASES * limits.MAX_ITERATIONS:
        reply = await _fetch_page(connection, run_id, after)
        run = read_results(reply, run_id=run_id, definition=definition)
        cases += run.cases
        before, after = after, text(object_at(reply, "evalmeta"), "next")
        if not run.cases or not after:
            return replace(run, cases=tuple(cases))
        if after == before:
            break
    raise MessageUnreadable(f"the results of run {run_id} have no end")


async def _fetch_page(connection: Connection, run_id: str, after: str) -> JsonObject:
    address = f"{runs_path(kind_of_run(run_id))}/{run_id}/results{after and f'?after={after}'}"
    return await persist(lambda: connection.get(address), every=connection.poll_seconds)


def read_results(reply: JsonObject, *, run_id: str, definition: str = "") -> Run:
    """Reads the results object of a run, which has the shape of the run's type.

    Raises:
        MessageUnreadable: it is none.
    """
    read = read_testing_run if kind_of_run(run_id) == TESTING_DEFINITION else read_run
    return read(reply, run_id=run_id, definition=definition)


async def cancel_run(connection: Connection, run_id: str) -> None:
    """Has the org end a run; what is finished stays.

    Raises:
        NotFound: no such run is in the org.
        EvalmetaError: the run is over already.
        OrgError: the org does not end it, or cannot be reached.
    """
    address = f"{runs_path(kind_of_run(run_id))}/{run_id}/cancel"
    results = Suggestion("See its results", "test", "results", "--job-id", run_id)
    try:
        reply = await persist(lambda: connection.post(address, {}), every=connection.poll_seconds, changes=True)
    except OrgFault as fault:
        if fault.code != "INVALID_STATUS":
            raise
        raise EvalmetaError(f"run {run_id} is over already", actions=[results]) from None
    if reply.get("success") is False:
        raise OrgError(
            f"the org did not cancel run {run_id}",
            actions=[Suggestion("See its results", "test", "results", "--job-id", run_id)],
        )


def kind_of_run(run_id: str) -> MetadataType:
    """Gives the type that a run's id tells, or else Testing Center's."""
    return type_of_run(run_id) or EVALUATION_DEFINITION


def runs_path(kind: MetadataType) -> str:
    """Gives where the runs of a type are, below `/services/data/vNN.0`."""
    return f"/einstein/{kind.run_path}/runs"


_ENDED_EARLY: Final = frozenset({RunStatus.ERROR, RunStatus.TERMINATED})


class _Seen(NamedTuple):
    """A run as it was seen; `fault` says why one that is COMPLETED has no results, so that it goes on."""

    run: Run
    fault: EvalmetaError | None = None


async def look(connection: Connection, run_id: str, *, definition: str = "") -> Run:
    """Gives a run with all results that the org has so far.

    Raises:
        NotFound: no such run is in the org.
        OrgError: the org cannot be reached, or does not give the results of a run that is COMPLETED.
    """
    run, fault = await _see(connection, run_id, definition)
    if fault is not None:
        raise fault
    return run


async def watch(
    connection: Connection,
    run_id: str,
    *,
    definition: str = "",
    wait: float | None = None,
    on_progress: Callable[[Progress], None],
) -> Run:
    """Waits until a run is over, reports every answer on the way, and gives it with its results.

    Raises:
        NotFound: no such run is in the org.
        WaitRanOut: the run goes on after `wait` seconds.
        OrgError: as in `look`, and so `limits.MAX_POLL_ERRORS` times in a row.
    """
    faults, run = 0, _bare(run_id, definition, RunStatus.NEW)

    async def check() -> Run:
        nonlocal faults, run
        try:
            run, fault = await _see(connection, run_id, definition)
        except OrgFault as error:
            if not _is_breakdown(error):
                raise
            fault = error
        faults = faults + 1 if fault is not None else 0
        if fault is not None and faults >= limits.MAX_POLL_ERRORS:
            raise fault
        on_progress(_progress(run))
        return run

    return await poll(check, lambda run: run.status.is_over, job_id=run_id, wait=wait, every=connection.poll_seconds)


async def _see(connection: Connection, run_id: str, definition: str) -> _Seen:
    address = f"{runs_path(kind_of_run(run_id))}/{run_id}"
    told = await connection.get(address)
    status = _known(_word(told))
    if status is RunStatus.NEW:
        return _Seen(_told(_bare(run_id, definition, status), told))
    try:
        reply = await connection.get(f"{address}/results")
    except (OrgFault, NotFound) as fault:
        if isinstance(fault, OrgFault) and not _is_breakdown(fault):
            raise
        late = status is RunStatus.COMPLETED
        run = _bare(run_id, definition, RunStatus.IN_PROGRESS if late else status)
        return _Seen(_told(run, told), fault if late else None)
    run = read_results(_whole(reply, told), run_id=run_id, definition=definition)
    return _Seen(_told(run if status not in _ENDED_EARLY else replace(run, status=status), told))


def _is_breakdown(fault: OrgFault) -> bool:
    return fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _whole(reply: JsonObject, told: JsonObject) -> JsonObject:
    """Gives results with the keys without which they are none: the run's status, and no cases yet."""
    return {**reply, "status": _word(reply) or _word(told), "testCases": reply.get("testCases") or []}


def _told(run: Run, told: JsonObject) -> Run:
    """Adds what the status knows and the results do not: Agentforce Studio's have no times."""
    return replace(
        run,
        started=run.started or from_timestamp(text(told, "startTime")) or 0.0,
        ended=run.ended or (from_timestamp(text(told, "endTime")) if run.status.is_over else None),
        error=run.error or optional_text(told, "errorMessage") or None,
    )


def _bare(run_id: str, definition: str, status: RunStatus) -> Run:
    return Run(run_id, definition, "", status, 0.0, 0)


def _word(source: JsonObject) -> str:
    return plain_status(text(source, "status").strip().upper())


def _known(word: str) -> RunStatus:
    return RunStatus(word) if word in RunStatus.__members__ else RunStatus.IN_PROGRESS


def _progress(run: Run) -> Progress:
    not_passed = sum(case.verdict in {Verdict.FAILURE, Verdict.ERROR} for case in run.cases)
    return Progress(run.status.value, len(run.cases), not_passed, run.total, run.error)


class DefinitionOfRun(NamedTuple):
    """A run's definition as it was when the run was made, and as it is deployed now (None: no more)."""

    then: bytes
    now: bytes | None
    is_abandoned: bool


async def fetch_definition(connection: Connection, run_id: str) -> DefinitionOfRun:
    """Gives what a run asks, what is deployed now, and whether nobody works on the run.

    Raises:
        NotFound: no such run is in the org.
        OrgError: the org cannot be reached or refuses the call.
    """
    reply = await persist(lambda: connection.get(f"{_path(run_id)}/definition"), every=connection.poll_seconds)
    now = optional_text(reply, "now")
    then = _content(text(reply, "then"))
    return DefinitionOfRun(then, None if now is None else _content(now), reply.get("isAbandoned") is True)


async def extend_run(connection: Connection, run_id: str, *, iterations: int) -> None:
    """Gives a run that is over more iterations; only the new ones are asked.

    Raises:
        NotFound: no such run is in the org.
        UsageError: the run is not over, or has as many iterations already.
        OrgError: the org cannot be reached or refuses the call.
    """
    await _post(connection, f"{_path(run_id)}/extend", {"iterations": iterations})


async def rescore_run(connection: Connection, run_id: str, options: RunOptions, *, as_deployed: bool) -> str:
    """Starts a run that judges the answers of one that is over again, and gives its id.

    `as_deployed` judges by the definition as it is deployed now, not as it was then.

    Raises:
        NotFound: no such run is in the org.
        UsageError: the run is not over, or an option is beyond its limit.
        OrgError: the org cannot be reached or refuses the call.
    """
    body: JsonObject = {"runOptions": write_options(options), "asDeployed": as_deployed}
    return await _post(connection, f"{_path(run_id)}/rescore", body)


async def _post(connection: Connection, path: str, body: JsonObject) -> str:
    try:
        reply = await persist(lambda: connection.post(path, body), every=connection.poll_seconds, changes=True)
    except OrgFault as fault:
        if fault.code not in {"INVALID_STATUS", "INVALID_API_INPUT"}:
            raise
        raise UsageError(str(fault).removeprefix(f"{fault.code}: ")) from None
    return text(reply, "runId")


def _path(run_id: str) -> str:
    return f"{runs_path(kind_of_run(run_id))}/{run_id}"


def _content(encoded: str) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except binascii.Error:
        raise MessageUnreadable("the definition of a run is no base64") from None
