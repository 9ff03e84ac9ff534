"""Agent tests: listing them, running them, following runs, fetching results."""

from __future__ import annotations

import time
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.results import FinishedRun
from evalmeta.api.tracking import receipts_of
from evalmeta.client.agent_tests import Progress, cancel_run, fetch_results, follow, start_run
from evalmeta.client.remote_runs import look, watch
from evalmeta.client.reruns import fetch_definition
from evalmeta.client.retrieve import list_components
from evalmeta.engine.policy import summarise
from evalmeta.errors import AmbiguousTestDefinition, NotFound, OrgFault, WaitRanOut
from evalmeta.model.registry import TYPES, metadata_type, types_at
from evalmeta.org.bindings import bind_subject
from evalmeta.org.files import bound_subjects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.api.documents import FileTest
    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import Run, RunOptions
    from evalmeta.package.project import Project
    from evalmeta.wire.messages import FileProperties

__all__ = [
    "AgentTest",
    "FinishedRun",
    "Progress",
    "cancel_run",
    "check_subject",
    "finish_run",
    "leave_run",
    "list_tests",
    "look_at_run",
    "remember_run",
    "select_tests",
    "start_run",
]


class AgentTest(NamedTuple):
    """A test in an org, or in a file that is not deployed."""

    type: MetadataType
    full_name: str
    file: FileTest | None = None

    @property
    def key(self) -> str:
        """Gives `Type:FullName`, unique in an org."""
        return f"{self.type.name}:{self.full_name}"


async def list_tests(connection: Connection) -> list[FileProperties]:
    """Lists the definitions in the org by type and name."""
    return [each for kind in types_at(connection.api_version) for each in await _list(connection, kind)]


async def select_tests(connection: Connection, names: Sequence[str] = ()) -> list[AgentTest]:
    """Gives the tests to run: those asked for, or all in the org.

    Args:
        connection: the org.
        names: full names, or `Type:FullName` where a name stands for tests of several types.

    Raises:
        NotFound: a name is not in the org, or nothing is.
        AmbiguousTestDefinition: a name stands for tests of several types.
    """
    listed = await list_tests(connection)
    there = [AgentTest(kind, each.full_name) for each in listed if (kind := metadata_type(each.type))]
    if not there:
        raise NotFound("the org has no agent tests", actions=["Deploy some first: evalmeta deploy"])
    return list(dict.fromkeys(_named(name, there) for name in names)) or there


async def _list(connection: Connection, kind: MetadataType) -> list[FileProperties]:
    try:
        return await list_components(connection, kind.name)
    except OrgFault as fault:
        # Orgs in which a way of testing is not switched on say that there is no such type.
        if fault.code == "INVALID_TYPE" and kind != TYPES[0]:
            return []
        raise


def _named(name: str, there: Sequence[AgentTest]) -> AgentTest:
    found = [each for each in there if name in (each.full_name, each.key)]
    if len(found) == 1:
        return found[0]
    if found:
        actions = [f"Say which: --api-name {each.key}" for each in found]
        types = " and ".join(each.type.name for each in found)
        raise AmbiguousTestDefinition(f"{name!r} is the name of an {types}", actions=actions)
    known = [each.key if ":" in name else each.full_name for each in there]
    close = get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"In the org: {', '.join(known)}."
    raise NotFound(f"no agent test {name!r} is in the org", actions=[hint, "Deploy it first: evalmeta deploy"])


async def check_subject(connection: Connection, project: Project, run: Run) -> None:
    """Makes sure that a run can go on in the project's own org: its agent is bound and loads.

    Raises:
        SubjectNotBound: the agent has no adapter.
        SettingsError: its adapter cannot be used.
        OrgError: the org cannot be reached or refuses the call.
    """
    asked = await fetch_definition(connection, run.id)
    subjects = bound_subjects(project.settings.subjects, run.subject_name, asked.then)
    bind_subject(subjects, run.subject_name, root=project.root)


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

    A run in an org that keeps to what Salesforce documents has the default options as its own.

    Raises:
        NotFound: no such run is in the org.
        WaitRanOut: the run goes on after `wait` seconds.
        OrgError: the org cannot be reached.
    """
    if connection.is_ours:
        await follow(connection, run_id, wait=wait, on_progress=on_progress)
        run = await fetch_results(connection, run_id, definition=definition)
    else:
        run = await watch(connection, run_id, definition=definition, wait=wait, on_progress=on_progress)
    return FinishedRun(run, summarise(run.cases, options or run.options))


async def look_at_run(connection: Connection, run_id: str) -> FinishedRun:
    """Gives a run with the results it has so far, without waiting.

    Raises:
        NotFound: no such run is in the org.
        OrgError: the org cannot be reached.
    """
    run = await (fetch_results(connection, run_id) if connection.is_ours else look(connection, run_id))
    return FinishedRun(run, summarise(run.cases, run.options))


async def leave_run(connection: Connection, run_id: str) -> None:
    """Sees to it that a run goes on after this process, over a connection that lets runs do so."""
    # Asking about a run that lost its worker gives it a new one.
    with suppress(WaitRanOut):
        await follow(connection, run_id, wait=0, on_progress=lambda _: None)


def remember_run(connection: Connection, project: Project, run_id: str) -> None:
    """Notes a run as the project's most recent one in an org."""
    with receipts_of(project, connection) as receipts:
        receipts.keep("test", run_id, now=time.time())
