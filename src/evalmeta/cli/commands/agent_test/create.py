"""`evalmeta test create`: a spec becomes a definition of the project and of the org."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta.cli.commands.deploy import start
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.options import answers_options, api_version_option, show_source, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_problems
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED

if TYPE_CHECKING:
    from evalmeta.api.specs import Answers, Draft


_FILE = click.Path(path_type=Path)


@click.command()
@click.option("--spec", type=_FILE, required=True, help="The test spec; a table or a definition will do too.")
@click.option("--api-name", required=True, help="The definition's API name, which its file gets.")
@click.option("--preview", is_flag=True, help="Print the definition and what the check finds; write and send nothing.")
@click.option("--force", "--force-overwrite", "force", is_flag=True, help="Overwrite the project's file of that name.")
@answers_options
@wait_option("33")
@api_version_option
@target_org_option
@json_option
@click.pass_context
def create(
    ctx: click.Context,
    /,
    spec: Path,
    *,
    api_name: str,
    preview: bool,
    force: bool,
    answers: Answers,
    as_json: bool,
    **deploying: object,
) -> int:
    """Write a test spec, or a file of another format, into the project as a definition, and deploy that.

    A spec with errors, or a definition that the check refuses, changes nothing.

    \b
    evalmeta test create --spec specs/Orders.yaml --api-name Order_Tests
    evalmeta test create --spec specs/Orders.yaml --api-name Order_Tests --preview
    """
    from evalmeta.api import specs  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    source = specs.read_source(spec, answers)
    show_source(source)
    draft = specs.draft_test(find_project(Path.cwd()), source.definition, api_name)
    if preview:
        return _preview(draft, as_json=as_json)
    state = specs.save_draft(draft, overwrite=force)
    note(f"{state} {draft.path}")
    result: int = ctx.invoke(start, source_dirs=(draft.path,), as_json=as_json, **deploying)
    return result


def _preview(draft: Draft, *, as_json: bool) -> int:
    from evalmeta.report.problems import problem_json  # noqa: PLC0415 - not needed for --help

    status = EXIT_FAILED if any(each.is_error for each in draft.problems) else EXIT_PASSED
    if as_json:
        problems = [problem_json(each) for each in draft.problems]
        contents = draft.content.decode()
        print_json({"path": str(draft.path), "contents": contents, "problems": problems}, status=status)
        return status
    click.echo(draft.content, nl=False)
    if draft.problems:
        print_problems(draft.problems, err=True)
    return status
