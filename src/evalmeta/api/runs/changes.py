"""Whether a run can continue: its definition must not have changed since it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.changes import compare_contents
from evalmeta.client import runs as client
from evalmeta.errors import Suggestion, UsageError
from evalmeta.model.run import ContentKind, Run, RunContent
from evalmeta.model.run_options import Setup
from evalmeta.org.run_files import subjects_of_run
from evalmeta.org.subjects import agent_of

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.model.difference import Difference
    from evalmeta.package.project import Project
    from evalmeta.protocol.runs import RunDefinition


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


class AgentChanged(UsageError):
    """A run, or its suite, cannot continue because another agent than before would answer; `why` names both."""

    def __init__(self, run: str, why: str) -> None:
        super().__init__(
            f"{run} would have answers of two agents: {why}",
            actions=["To mix their answers, add --mixed.", Suggestion("Or start a new run", "test", "run")],
        )


class SuiteChanged(UsageError):
    """Tests of a suite that never started cannot start any more, because their files or definitions have changed."""

    def __init__(self, changed: str, gone: str) -> None:
        parts = [f"changed since the suite began: {changed}"] if changed else []
        parts += [f"cannot be found any more: {gone}"] if gone else []
        now = ["To run changed tests as they are now, add --ignore-changes."] if changed else []
        again = Suggestion("Or give up the tests that never started", "test", "cancel", "--unfinished")
        super().__init__(
            f"tests of the suite never started, and cannot start now: {'; '.join(parts)}",
            actions=[*now, "Restore the files or definitions, and resume again.", again],
        )


def refuse_other_agent(project: Project, run: Run, content: RunContent, *, what: str = "run") -> None:
    """Refuse to ask more questions of a run of the project's own org, or of its suite.

    `content` is what the run stored of its test, and `what` comes before the run's id in the message.
    """
    if run.answers_of is not None or not run.cases:
        return
    subjects = subjects_of_run(project.settings.subjects, run.subject_name, content)
    agent, version = agent_of(subjects, run.subject_name, root=project.root)
    if why := run.options.setup.other_agent(Setup(agent, version)):
        raise AgentChanged(f"{what} {run.id}", why)


async def check_unchanged(connection: Connection, run: Run) -> None:
    """Check that the definition of a run that needs a new worker has not changed."""
    definition = await client.fetch_definition(connection, run.id)
    if definition.is_abandoned:
        refuse_changes(run.id, definition)


def refuse_changes(run_id: str, definition: RunDefinition) -> None:
    """Refuse a run if what is deployed now differs in meaning from what it started with."""
    original = definition.original
    # Only the definition itself can be compared by its meaning; of anything else, a hash or a payload is kept.
    is_file = original.kind is not ContentKind.DEFINITION
    if definition.current is None:
        raise DefinitionChanged(run_id, is_gone=True, is_file=is_file)
    if is_file:
        if original.data != definition.current:
            raise DefinitionChanged(run_id, is_file=True)
        return
    difference = compare_contents(("as the run started", original.data), ("deployed now", definition.current))
    if difference is not None and not difference.is_form_only:
        raise DefinitionChanged(run_id, difference)
