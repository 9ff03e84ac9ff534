"""Running agent tests over the Connect API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.client.polling import poll
from evalmeta.client.retries import persist
from evalmeta.errors import EvalmetaError, MessageUnreadable, OrgBusy, OrgError, OrgFault
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, type_of_run
from evalmeta.model.run import RunStatus
from evalmeta.wire.connect import read_run
from evalmeta.wire.jsonfields import integer, object_at, optional_text, text
from evalmeta.wire.runoptions import write_options
from evalmeta.wire.testing import plain_status, read_testing_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import CaseResult, Run, RunOptions

__all__ = ["Progress", "cancel_run", "fetch_results", "follow", "kind_of_run", "read_results", "runs_path", "start_run"]

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
    try:
        reply = await persist(lambda: connection.post(address, {}), every=connection.poll_seconds, changes=True)
    except OrgFault as fault:
        if fault.code != "INVALID_STATUS":
            raise
        way_out = f"See what became of it: evalmeta test results --job-id {run_id}"
        raise EvalmetaError(f"run {run_id} is over already", actions=[way_out]) from None
    if reply.get("success") is False:
        raise OrgError(f"the org did not cancel run {run_id}", actions=["See what became of it: evalmeta test results"])


def kind_of_run(run_id: str) -> MetadataType:
    """Gives the type that a run's id tells, or else Testing Center's."""
    return type_of_run(run_id) or EVALUATION_DEFINITION


def runs_path(kind: MetadataType) -> str:
    """Gives where the runs of a type are, below `/services/data/vNN.0`."""
    return f"/einstein/{kind.run_path}/runs"
