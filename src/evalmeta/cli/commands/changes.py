"""`evalmeta status` and `evalmeta diff`: what changed in the project or in the org, and how definitions differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.orgs import run_in_org, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_problems, print_styled, print_table
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, Suggestion
from evalmeta.report.comparison import difference_json, difference_lines
from evalmeta.report.problems import problem_json
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.difference import Difference
    from evalmeta.model.json_value import JsonValue


@click.command()
@target_org_option
@json_option
def status(*, target_org: str | None, as_json: bool) -> None:
    """List what changed in the project or in the org since the last deploy or retrieve.

    In a conflict, both sides changed, or they differ and this project never deployed or
    retrieved the definition.

    \b
    evalmeta status
    """
    found = run_in_org(target_org, api.changes.status)
    if as_json:
        components: list[JsonValue] = [
            {
                "state": component.state.value,
                "type": component.type,
                "fullName": component.full_name,
                "file": component.file or None,
            }
            for component in found.components
        ]
        print_json({"components": components, "total": found.total})
        return
    rows = [(component.state.value, component.full_name, component.file) for component in found.components]
    print_table(["State", "Name", "File"], rows)
    if found.components:
        verb = "differs" if found.total == 1 else "differ"
        differing = f"{len(found.components):,} of {count(found.total, 'component')} {verb}"
        note(Suggestion(f"{differing}. See how", "diff"))
    else:
        click.echo(f"Project and org are the same ({count(found.total, 'component')}).")


_COLOURS: Final = {"old": "red", "new": "green"}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]... | FILE FILE")
@target_org_option
@json_option
def diff(names: tuple[str, ...], *, target_org: str | None, as_json: bool) -> int:
    """Show how definitions differ between the project and the org.

    NAME is a definition's full name; without one, all that differ are shown, by test case
    and expectation. Lines of the org are marked -, lines of the project +. Two files are
    compared with each other.

    \b
    evalmeta diff
    evalmeta diff Order_Desk
    evalmeta diff old/Order_Desk.aiEvaluationDefinition Order_Desk.aiEvaluationDefinition
    """
    files = [Path(name) for name in names]
    if len(files) == 2 and all(file.is_file() for file in files):  # noqa: PLR2004 - FILE FILE
        difference = api.changes.diff_files(*files)
        found = [difference] if difference else []
    else:
        found = run_in_org(target_org, lambda connection, project: api.changes.diff(connection, project, names))
    return _report(found, as_json=as_json)


def _report(found: Sequence[Difference], *, as_json: bool) -> int:
    problems = [problem for difference in found for problem in difference.problems]
    status = EXIT_FAILED if problems else EXIT_PASSED
    if as_json:
        comparable = [difference_json(difference) for difference in found if not difference.problems]
        print_json(
            {"differences": comparable, "problems": [problem_json(problem) for problem in problems]}, status=status
        )
        return status
    for difference in found:
        if not difference.problems:
            print_styled(difference_lines(difference), _COLOURS)
    if problems:
        print_problems(problems, err=True)
    if not found:
        click.echo("No differences.")
    return status
