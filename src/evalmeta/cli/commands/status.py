"""`evalmeta status`: what changed here, in the org, or in both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.jobs import run_async
from evalmeta.cli.options import choose_target, connected, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_table

if TYPE_CHECKING:
    from evalmeta.api.changes import Status
    from evalmeta.api.org_targets import Target
    from evalmeta.model.json_value import JsonValue
    from evalmeta.package.project import Project


@click.command()
@target_org_option
@json_option
def status(*, target_org: str | None, as_json: bool) -> None:
    """List what changed here, in the org, or in both since the last deploy or retrieve.

    A conflict was changed on both sides, or differs and was never deployed or retrieved
    from here.

    \b
    evalmeta status
    """
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.text import count  # noqa: PLC0415 - likewise

    project = find_project(Path.cwd())
    target = choose_target(project, target_org)
    found = run_async(_status(project, target))
    if as_json:
        components: list[JsonValue] = [
            {"state": each.state.value, "type": each.type, "fullName": each.full_name, "file": each.file or None}
            for each in found.components
        ]
        print_json({"components": components, "total": found.total})
        return
    rows = [(each.state.value, each.full_name, each.file) for each in found.components]
    print_table(["State", "Name", "File"], rows)
    if found.components:
        note(f"{len(found.components):,} of {count(found.total, 'component')} differ. See how: evalmeta diff")
    else:
        click.echo(f"Project and org are the same ({count(found.total, 'component')}).")


async def _status(project: Project, target: Target | None) -> Status:
    from evalmeta.api import changes  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        return await changes.status(connection, project)
