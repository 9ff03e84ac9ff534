"""`evalmeta diff`: how definitions differ, by test case and expectation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.jobs import run_async
from evalmeta.cli.options import choose_target, connected, target_org_option
from evalmeta.cli.output import json_option, print_json, print_problems, wants_colour
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.org_targets import Target
    from evalmeta.model.difference import Difference
    from evalmeta.package.project import Project


_FILES: Final = 2
_COLOURS: Final = {"old": "red", "new": "green"}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]... | FILE FILE")
@target_org_option
@json_option
def diff(names: tuple[str, ...], *, target_org: str | None, as_json: bool) -> int:
    """Show how the project's definitions differ from the org's, by test case and expectation.

    NAME is a definition's full name; without one all that differ are shown. What the org
    has is marked -, what the project has +. With two files, those are compared.

    \b
    evalmeta diff
    evalmeta diff Order_Desk
    evalmeta diff old/Order_Desk.aiEvaluationDefinition Order_Desk.aiEvaluationDefinition
    """
    files = [Path(name) for name in names]
    if len(files) == _FILES and all(file.is_file() for file in files):
        found = _diff_files(*files)
    else:
        found = _diff_with_org(names, target_org)
    return _report(found, as_json=as_json)


def _diff_files(before: Path, after: Path) -> list[Difference]:
    from evalmeta.api import changes  # noqa: PLC0415 - not needed for --help

    found = changes.diff_files(before, after)
    return [found] if found else []


def _diff_with_org(names: Sequence[str], target_org: str | None) -> list[Difference]:
    from evalmeta.package.project import find_project  # noqa: PLC0415 - not needed for --help

    project = find_project(Path.cwd())
    target = choose_target(project, target_org)
    return run_async(_diff(project, target, names))


async def _diff(project: Project, target: Target | None, names: Sequence[str]) -> list[Difference]:
    from evalmeta.api import changes  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        return await changes.diff(connection, project, names)


def _report(found: Sequence[Difference], *, as_json: bool) -> int:
    from evalmeta.report.comparison import difference_json, difference_lines  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.problems import problem_json  # noqa: PLC0415 - likewise

    problems = [problem for each in found for problem in each.problems]
    status = EXIT_FAILED if problems else EXIT_PASSED
    if as_json:
        comparable = [difference_json(each) for each in found if not each.problems]
        print_json({"differences": comparable, "problems": [problem_json(each) for each in problems]}, status=status)
        return status
    for each in found:
        for style, text in () if each.problems else difference_lines(each):
            click.echo(click.style(text, fg=_COLOURS.get(style), bold=style == "title" or None), color=wants_colour())
    if problems:
        print_problems(problems, err=True)
    if not found:
        click.echo("No differences.")
    return status
