"""`evalmeta status`: what changed in the project, in the org, or in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.orgs import run_in_org, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_table
from evalmeta.errors import Suggestion
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


@click.command()
@target_org_option
@json_option
def status(*, target_org: str | None, as_json: bool) -> None:
    """List what changed in the project or in the org since the last deploy or retrieve.

    A conflict changed in both, or differs and was never deployed from or retrieved into
    this project.

    \b
    evalmeta status
    """
    found = run_in_org(target_org, api.changes.status)
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
        differing = f"{len(found.components):,} of {count(found.total, 'component')} differ"
        note(Suggestion(f"{differing}. See how", "diff"))
    else:
        click.echo(f"Project and org are the same ({count(found.total, 'component')}).")
