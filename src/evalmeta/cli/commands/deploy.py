"""`evalmeta deploy`: send definitions to the org."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.loop import run_async
from evalmeta.cli.output import json_option, note, print_json, print_problems, print_table, say_target

if TYPE_CHECKING:
    from evalmeta.api.orgs import Deployment
    from evalmeta.model.component import ComponentSet
    from evalmeta.package.project import Project

__all__ = ["deploy"]


@click.command()
@click.option(
    "-x", "--manifest", type=click.Path(path_type=Path), help="Deploy what this package.xml names, not everything."
)
@json_option
def deploy(manifest: Path | None, *, as_json: bool) -> None:
    """Check definitions and send them to the org: all of them, or none.

    Without --manifest every definition of the project is sent.

    \b
    evalmeta deploy
    evalmeta deploy --manifest package.xml
    """
    from evalmeta.api import metadata  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    project = find_project(Path.cwd())
    say_target(project)
    components, _ = metadata.resolve(project, manifest)
    if not components.components:
        note("Nothing to deploy: the project has no definitions.")
    done = run_async(_deploy(project, components))
    if as_json:
        warnings = [str(problem) for problem in done.warnings]
        files = [asdict(component) for component in done.components]
        print_json({"id": done.id, "status": "Succeeded", "files": files}, warnings=warnings)
        return
    if done.warnings:
        print_problems(done.warnings, err=True)
    count = len(done.components)
    click.echo(f"Deployed {count} {'component' if count == 1 else 'components'} (deploy id {done.id}).")
    print_table(["State", "Name", "File"], [(each.state, each.full_name, each.file) for each in done.components])


async def _deploy(project: Project, components: ComponentSet) -> Deployment:
    from evalmeta.api import orgs  # noqa: PLC0415 - not needed for --help

    async with orgs.connect(project) as connection:
        return await orgs.deploy(connection, project, components)
