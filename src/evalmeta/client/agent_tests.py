"""Running agent tests over the Connect API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.client.polling import poll
from evalmeta.errors import MessageUnreadable
from evalmeta.model.run import RunStatus
from evalmeta.wire.connect import read_run, write_options
from evalmeta.wire.jsonfields import integer, optional_text, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.run import Run, RunOptions

__all__ = ["Progress", "fetch_results", "follow", "start_run"]

_RUNS: Final = "/einstein/ai-evaluations/runs"
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


async def start_run(connection: Connection, name: str, *, options: RunOptions | None = None) -> str:
    """Starts a run of a deployed definition and gives its id; `options` are for evalmeta's own orgs.

    Raises:
        NotFound: no such definition is in the org.
        SubjectNotBound: the org knows no adapter for its agent.
        OrgError: the org cannot be reached or refuses the call.
    """
    extra = {} if options is None else {"runOptions": write_options(options)}
    reply = await connection.post(_RUNS, {"aiEvaluationDefinitionName": name, **extra})
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

    async def check() -> Progress:
        reply = await connection.get(f"{_RUNS}/{run_id}")
        progress = Progress(
            text(reply, "status"),
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
    reply = await connection.get(f"{_RUNS}/{run_id}/results")
    return read_run(reply, run_id=run_id, definition=definition)
