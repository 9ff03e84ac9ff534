"""Going on from earlier runs: more iterations, answers judged again, and no mixing of two definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.changes import compare_contents
from evalmeta.client import reruns
from evalmeta.errors import NotFound, UsageError

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.client.reruns import DefinitionOfRun
    from evalmeta.model.change import Difference
    from evalmeta.model.run import Run, RunOptions

__all__ = ["DefinitionChanged", "check_unchanged", "extend", "rescore"]


class DefinitionChanged(UsageError):
    """A run cannot go on: what it asks is not what is deployed now. `difference` says how they differ."""

    def __init__(
        self, run_id: str, difference: Difference | None = None, *, is_gone: bool = False, is_file: bool = False
    ) -> None:
        what = "file" if is_file else "definition"
        gone = "is not there any more" if is_file else "is not deployed any more"
        actions = ["Go on by the definition as it was: --ignore-changes.", "Or begin a new run: evalmeta test run"]
        super().__init__(
            f"the {what} of run {run_id} {gone if is_gone else 'has changed since the run began'}",
            actions=["Begin a new run: evalmeta test run FILE"] if is_file else actions,
        )
        self.difference = difference


async def check_unchanged(connection: Connection, run: Run) -> None:
    """Makes sure that a run which needs a new worker is gone on with by the definition that it began with.

    An org of an earlier evalmeta does not tell, and goes on.

    Raises:
        DefinitionChanged: another one is deployed now, or none.
        OrgError: the org cannot be reached or refuses the call.
    """
    try:
        found = await reruns.fetch_definition(connection, run.id)
    except NotFound:
        return
    if found.is_abandoned:
        _refuse_changes(run.id, found)


async def extend(connection: Connection, run_id: str, *, iterations: int, ignore_changes: bool) -> None:
    """Gives a run that is over more iterations, `iterations` in all; only the new ones are asked.

    Raises:
        DefinitionChanged: another definition is deployed now, or none, and changes are not ignored.
        UsageError: the run is not over, or has as many iterations already.
        NotFound: no such run is in the org.
        OrgError: the org cannot be reached or refuses a call.
    """
    if not ignore_changes:
        _refuse_changes(run_id, await reruns.fetch_definition(connection, run_id))
    await reruns.extend_run(connection, run_id, iterations=iterations)


async def rescore(connection: Connection, run_id: str, options: RunOptions, *, as_deployed: bool) -> str:
    """Starts a run that judges the answers of one that is over again, and gives its id; raises like `rescore_run`."""
    return await reruns.rescore_run(connection, run_id, options, as_deployed=as_deployed)


def _refuse_changes(run_id: str, found: DefinitionOfRun) -> None:
    # Of a file that is not deployed only a hash is kept.
    is_file = found.then.startswith(b"{")
    if found.now is None:
        raise DefinitionChanged(run_id, is_gone=True, is_file=is_file)
    if is_file:
        if found.then != found.now:
            raise DefinitionChanged(run_id, is_file=True)
        return
    difference = compare_contents(("as the run began", found.then), ("deployed now", found.now))
    if difference is not None and not difference.is_form_only:
        raise DefinitionChanged(run_id, difference)
