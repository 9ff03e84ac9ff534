"""`evalmeta deploy`: send definitions to the org."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.loop import run_async
from evalmeta.cli.options import selection_options
from evalmeta.cli.output import json_option, note, print_json, print_problems, print_table, say_target

if TYPE_CHECKING:
    from evalmeta.api.orgs import Deployment
    from evalmeta.model.component import ComponentSet
    from evalmeta.package.project import Project
    from evalmeta.package.selection import Selection

__all__ = ["deploy"]


@click.command()
@selection_options()
@click.option("-c", "--ignore-conflicts", is_flag=True, help="Overwrite what was changed in the org.")
@json_option
def deploy(selection: Selection, *, ignore_conflicts: bool, as_json: bool) -> None:
    """Check definitions and send them to the org: all of them, or none.

    Without a selection every definition of the project is sent. What was changed in the
    org since the last deploy or retrieve is not overwritten, and then nothing is sent.

    \b
    evalmeta deploy
    evalmeta deploy --manifest package.xml
    evalmeta deploy --source-dir force-app/orders --source-dir force-app/returns
    evalmeta deploy --metadata 'AiEvaluationDefinition:Order_*'
    """
    from evalmeta.api import selections  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    project = find_project(Path.cwd())
    say_target(project)
    components = selections.resolve(project, selection)
    _warn_of_destructive(selection)
    if not components.components:
        note("Nothing to deploy: the project has no definitions.")
        if as_json:
            print_json({"id": None, "status": "Succeeded", "files": []})
        return
    done = run_async(_deploy(project, components, ignore_conflicts=ignore_conflicts))
    if as_json:
        warnings = [*map(str, done.warnings), *done.messages]
        files = [asdict(component) for component in done.components]
        print_json({"id": done.id, "status": "Succeeded", "files": files}, warnings=warnings)
        return
    if done.warnings:
        print_problems(done.warnings, err=True)
    for message in done.messages:
        note(f"Warning: {message}")
    count = len(done.components)
    click.echo(f"Deployed {count} {'component' if count == 1 else 'components'} (deploy id {done.id}).")
    print_table(["State", "Name", "File"], [(each.state, each.full_name, each.file) for each in done.components])


def _warn_of_destructive(selection: Selection) -> None:
    from evalmeta.model.manifest import DESTRUCTIVE_FILES  # noqa: PLC0415 - not needed for --help

    beside = selection.manifest.parent if selection.manifest else None
    for name in DESTRUCTIVE_FILES if beside else ():
        if beside and (beside / name).is_file():
            note(f"Warning: {beside / name} is not sent: deploy does not delete components yet")


async def _deploy(project: Project, components: ComponentSet, *, ignore_conflicts: bool) -> Deployment:
    from evalmeta.api import orgs  # noqa: PLC0415 - not needed for --help

    async with orgs.connect(project) as connection:
        return await orgs.deploy(connection, project, components, ignore_conflicts=ignore_conflicts)
