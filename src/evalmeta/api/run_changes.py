"""Whether a run can continue: its definition must not have changed since it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.changes import compare_contents
from evalmeta.client import runs as client
from evalmeta.errors import NotFound, Suggestion, UsageError

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.model.difference import Difference
    from evalmeta.model.run import Run
    from evalmeta.protocol.run_options import RunDefinition


class DefinitionChanged(UsageError):
    """A run cannot continue because its definition has changed since it started; `difference` says how."""

    def __init__(
        self, run_id: str, difference: Difference | None = None, *, is_gone: bool = False, is_file: bool = False
    ) -> None:
        what = "file" if is_file else "definition"
        gone = "cannot be found any more" if is_file else "is not deployed any more"
        again = Suggestion("Or start a new run", "test", "run")
        super().__init__(
            f"the {what} of run {run_id} {gone if is_gone else 'has changed since the run started'}",
            actions=[Suggestion("Start a new run", "test", "run", "FILE")]
            if is_file
            else ["To use the definition as it was, add --ignore-changes.", again],
        )
        self.difference = difference


async def check_unchanged(connection: Connection, run: Run) -> None:
    """Check that the definition of a run that needs a new worker has not changed.

    Orgs of an earlier evalmeta do not say, and their runs continue.

    Raises:
        DefinitionChanged: another definition is deployed now, or none.
        OrgError: the org cannot be reached or refuses the call.
    """
    try:
        found = await client.fetch_definition(connection, run.id)
    except NotFound:
        return
    if found.is_abandoned:
        refuse_changes(run.id, found)


def refuse_changes(run_id: str, found: RunDefinition) -> None:
    """Refuse a run if what is deployed now differs in meaning from what it started with.

    Raises:
        DefinitionChanged: it does, or nothing is deployed.
    """
    # Of a file that is not deployed, only a hash is kept, as JSON.
    is_file = found.original.startswith(b"{")
    if found.current is None:
        raise DefinitionChanged(run_id, is_gone=True, is_file=is_file)
    if is_file:
        if found.original != found.current:
            raise DefinitionChanged(run_id, is_file=True)
        return
    difference = compare_contents(("as the run started", found.original), ("deployed now", found.current))
    if difference is not None and not difference.is_form_only:
        raise DefinitionChanged(run_id, difference)
