"""`evalmeta test create`: create a definition from a test spec, and deploy it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.commands.deploy import start
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.options import PATH, api_version_option, names_options, target_org_option
from evalmeta.cli.output import json_option, note, print_json, print_problems, print_source_notes
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED
from evalmeta.package.files import shown
from evalmeta.package.project import find_project
from evalmeta.report.problems import problem_json

if TYPE_CHECKING:
    from evalmeta.api.specs import DefinitionNames, Draft


@click.command()
@click.option("--spec", type=PATH, required=True, help="The test spec, or a table or a definition.")
@click.option("--api-name", required=True, help="The API name of the definition and of its file.")
@click.option("--preview", is_flag=True, help="Print the definition and its problems, without writing or deploying it.")
@click.option("--force", "--force-overwrite", "force", is_flag=True, help="Overwrite the project's file of that name.")
@names_options
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
    names: DefinitionNames,
    as_json: bool,
    **deploying: object,
) -> int:
    """Create a definition from a test spec or another file, and deploy it.

    If the spec or the definition has errors, nothing is changed.

    \b
    evalmeta test create --spec specs/Orders.yaml --api-name Order_Tests
    evalmeta test create --spec specs/Orders.yaml --api-name Order_Tests --preview
    """
    source = api.specs.read_source(spec, names)
    print_source_notes(source)
    draft = api.specs.draft_test(find_project(Path.cwd()), source.definition, api_name)
    if preview:
        return _preview(draft, as_json=as_json)
    state = api.specs.save_draft(draft, overwrite=force)
    note(f"{state} {shown(draft.path)}")
    result: int = ctx.invoke(start, source_dirs=(draft.path,), as_json=as_json, **deploying)
    return result


def _preview(draft: Draft, *, as_json: bool) -> int:
    status = EXIT_FAILED if any(problem.is_error for problem in draft.problems) else EXIT_PASSED
    if as_json:
        problems = [problem_json(problem) for problem in draft.problems]
        contents = draft.content.decode()
        print_json({"path": str(draft.path), "contents": contents, "problems": problems}, status=status)
        return status
    click.echo(draft.content, nl=False)
    if draft.problems:
        print_problems(draft.problems, err=True)
    return status
