"""Runs in orgs that keep to what Salesforce documents: how far one is, by its status and by its results.

Salesforce's own poll ends only when the results say COMPLETED, and never when a run is ERROR
or TERMINATED. Here whichever of status and results knows more is believed, a word that is not
known (RETRY has been seen) means that the run goes on, and results that the org cannot give
while it does are asked for again.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.client.agent_tests import Progress, kind_of_run, read_results, runs_path
from evalmeta.client.polling import poll
from evalmeta.errors import NotFound, OrgFault
from evalmeta.model.run import Run, RunStatus, Verdict
from evalmeta.wire.jsonfields import optional_text, text
from evalmeta.wire.testing import plain_status
from evalmeta.wire.timestamps import from_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.errors import EvalmetaError
    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["look", "watch"]

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
