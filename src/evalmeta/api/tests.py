"""Agent tests: listing them, running them, following runs, fetching results."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from evalmeta.client.agent_tests import Progress, fetch_results, follow, start_run
from evalmeta.client.retrieve import list_components
from evalmeta.engine.policy import summarise
from evalmeta.errors import NotFound
from evalmeta.model.registry import TYPES
from evalmeta.org.evaluations import bind_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.model.run import Run, RunOptions, Summary
    from evalmeta.package.project import Project
    from evalmeta.wire.messages import FileProperties

__all__ = [
    "FinishedRun",
    "Progress",
    "check_subject",
    "finish_run",
    "list_tests",
    "look_at_run",
    "select_tests",
    "start_run",
]


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run with its results, and what they come to."""

    run: Run
    summary: Summary


async def list_tests(connection: Connection) -> list[FileProperties]:
    """Lists the definitions in the org by name."""
    return await list_components(connection, TYPES[0].name)


async def select_tests(connection: Connection, names: Sequence[str] = ()) -> list[str]:
    """Gives the names of the tests to run: those asked for, or all in the org.

    Raises:
        NotFound: a name is not in the org, or nothing is.
    """
    there = [each.full_name for each in await list_tests(connection)]
    if not there:
        raise NotFound("the org has no agent tests", actions=["Deploy some first: evalmeta deploy"])
    for name in names:
        if name not in there:
            close = get_close_matches(name, there, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"In the org: {', '.join(there)}."
            raise NotFound(f"no agent test {name!r} is in the org", actions=[hint, "Deploy it first: evalmeta deploy"])
    return list(dict.fromkeys(names)) or there


def check_subject(project: Project, run: Run) -> None:
    """Makes sure that a run can go on in the project's own org: its agent is bound and loads.

    Raises:
        SubjectNotBound: the agent has no adapter.
        SettingsError: its adapter cannot be used.
    """
    bind_subject(project.settings.subjects, run.subject_name, root=project.root)


async def finish_run(
    connection: Connection,
    run_id: str,
    *,
    definition: str = "",
    options: RunOptions | None = None,
    wait: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> FinishedRun:
    """Waits for a run and fetches its results; `options` decide what passes, the run's own when None.

    Raises:
        NotFound: no such run is in the org.
        WaitRanOut: the run goes on after `wait` seconds.
        OrgError: the org cannot be reached.
    """
    await follow(connection, run_id, wait=wait, on_progress=on_progress)
    run = await fetch_results(connection, run_id, definition=definition)
    return FinishedRun(run, summarise(run.cases, options or run.options))


async def look_at_run(connection: Connection, run_id: str) -> FinishedRun:
    """Gives a run with the results it has so far, without waiting.

    Raises:
        NotFound: no such run is in the org.
        OrgError: the org cannot be reached.
    """
    run = await fetch_results(connection, run_id)
    return FinishedRun(run, summarise(run.cases, run.options))
