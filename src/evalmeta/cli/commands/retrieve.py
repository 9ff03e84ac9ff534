"""`evalmeta retrieve`: fetch definitions from the org."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.loop import run_async
from evalmeta.cli.options import selection_options
from evalmeta.cli.output import json_option, note, print_json, print_table, say_target

if TYPE_CHECKING:
    from evalmeta.api.orgs import Retrieval
    from evalmeta.package.project import Project
    from evalmeta.package.selection import Selection

__all__ = ["retrieve"]


@click.command()
@selection_options()
@click.option("-c", "--ignore-conflicts", is_flag=True, help="Overwrite files that were changed here.")
@json_option
def retrieve(selection: Selection, *, ignore_conflicts: bool, as_json: bool) -> None:
    """Fetch definitions from the org and write the project's files.

    Without a selection everything in the org is fetched; --source-dir stands for the
    definitions that are there now. Files with the same content are not touched. Files
    that were changed here are not overwritten, and then nothing is written.

    \b
    evalmeta retrieve
    evalmeta retrieve --manifest package.xml
    evalmeta retrieve --metadata 'AiEvaluationDefinition:Order_*'
    """
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    project = find_project(Path.cwd())
    say_target(project)
    done = run_async(_retrieve(project, selection, ignore_conflicts=ignore_conflicts))
    if as_json:
        files = [asdict(component) for component in done.components]
        print_json({"id": done.id, "status": "Succeeded", "files": files}, warnings=done.messages)
        return
    for message in done.messages:
        note(f"Warning: {message}")
    count = len(done.components)
    click.echo(f"Retrieved {count} {'component' if count == 1 else 'components'}.")
    print_table(["State", "Name", "File"], [(each.state, each.full_name, each.file) for each in done.components])


async def _retrieve(project: Project, selection: Selection, *, ignore_conflicts: bool) -> Retrieval:
    from evalmeta.api import manifests, orgs  # noqa: PLC0415 - not needed for --help

    async with orgs.connect(project) as connection:
        manifest = await manifests.manifest_to_retrieve(connection, project, selection)
        return await orgs.retrieve(connection, project, manifest, ignore_conflicts=ignore_conflicts)
