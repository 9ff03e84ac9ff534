"""`evalmeta retrieve`: fetch definitions from the org."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.loop import run_async
from evalmeta.cli.output import json_option, note, print_json, print_table, say_target

if TYPE_CHECKING:
    from evalmeta.api.orgs import Retrieval
    from evalmeta.model.manifest import Manifest
    from evalmeta.package.project import Project

__all__ = ["retrieve"]


@click.command()
@click.option(
    "-x", "--manifest", type=click.Path(path_type=Path), help="Retrieve what this package.xml names, not everything."
)
@json_option
def retrieve(manifest: Path | None, *, as_json: bool) -> None:
    """Fetch definitions from the org and write the project's files.

    Without --manifest everything in the org is fetched. Files with the same content
    are not touched.

    \b
    evalmeta retrieve
    evalmeta retrieve --manifest package.xml
    """
    from evalmeta.api import metadata  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    project = find_project(Path.cwd())
    say_target(project)
    wanted = metadata.read_manifest(manifest) if manifest else None
    done = run_async(_retrieve(project, wanted))
    if as_json:
        files = [asdict(component) for component in done.components]
        print_json({"id": done.id, "status": "Succeeded", "files": files}, warnings=done.messages)
        return
    for message in done.messages:
        note(f"Warning: {message}")
    count = len(done.components)
    click.echo(f"Retrieved {count} {'component' if count == 1 else 'components'}.")
    print_table(["State", "Name", "File"], [(each.state, each.full_name, each.file) for each in done.components])


async def _retrieve(project: Project, manifest: Manifest | None) -> Retrieval:
    from evalmeta.api import orgs  # noqa: PLC0415 - not needed for --help

    async with orgs.connect(project) as connection:
        return await orgs.retrieve(connection, project, manifest)
