"""Running agent tests over the Connect API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.client.polling import poll
from evalmeta.client.retries import persist
from evalmeta.errors import MessageUnreadable
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, type_of_run
from evalmeta.model.run import RunStatus
from evalmeta.wire.connect import read_run, write_options
from evalmeta.wire.jsonfields import integer, optional_text, text
from evalmeta.wire.testing import plain_status, read_testing_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import Run, RunOptions

__all__ = ["Progress", "cancel_run", "fetch_results", "follow", "start_run"]

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
    connection: Connection, name: str, *, kind: MetadataType = EVALUATION_DEFINITION, options: RunOptions | None = None
) -> str:
    """Starts a run of a deployed definition of a type and gives its id; `options` are for evalmeta's own orgs.

    Raises:
        NotFound: no such definition is in the org.
        SubjectNotBound: the org knows no adapter for its agent.
        OrgError: the org cannot be reached or refuses the call.
    """
    extra = {} if options is None else {"runOptions": write_options(options)}
    reply = await persist(
        lambda: connection.post(_runs(kind), {kind.run_key: name, **extra}), every=connection.poll_seconds, changes=True
    )
    run_id = text(reply, "runId")
    if not run_id:
        raise MessageUnreadable("the org started a run and gave no runId")
    return run_id


async def follow(
    connection: Connection, run_id: str, *, wait: float | None = None, on_progress: Callable[[Progress], None]
) -> Progress:
    """Waits until a run is over and reports every answer on the way.

    Raises:
        NotFound: no such run is in the org.
        WaitRanOut: the run goes on after `wait` seconds.
    """
    kind = _kind(run_id)

    async def check() -> Progress:
        reply = await connection.get(f"{_runs(kind)}/{run_id}")
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
    """Fetches a run with all results there are so far."""
    kind = _kind(run_id)
    reply = await persist(lambda: connection.get(f"{_runs(kind)}/{run_id}/results"), every=connection.poll_seconds)
    read = read_testing_run if kind == TESTING_DEFINITION else read_run
    return read(reply, run_id=run_id, definition=definition)


async def cancel_run(connection: Connection, run_id: str) -> None:
    """Has the org end a run; what is finished stays.

    Raises:
        NotFound: no such run is in the org.
        OrgError: the run is over already, or the org cannot be reached.
    """
    address = f"{_runs(_kind(run_id))}/{run_id}/cancel"
    await persist(lambda: connection.post(address, {}), every=connection.poll_seconds, changes=True)


def _kind(run_id: str) -> MetadataType:
    return type_of_run(run_id) or EVALUATION_DEFINITION


def _runs(kind: MetadataType) -> str:
    return f"/einstein/{kind.run_path}/runs"
