"""`evalmeta init`: write the settings and the first tests of a project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.options import PATH, option_group
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.errors import NotFound
from evalmeta.package.files import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.init.agents import AgentChoice
    from evalmeta.api.init.project import CiSystem, NewProject
    from evalmeta.cli.options import Decorator
    from evalmeta.model.json_value import JsonObject, JsonValue


_AGENT: Sequence[Decorator] = (
    click.option(
        "--agent",
        "target",
        default="",
        metavar="MODULE:FUNCTION",
        help="A Python agent; in a folder without Python code, a sample is written as its module.",
    ),
    click.option("--url", default="", help="An endpoint for chat completions, or another JSON endpoint."),
    click.option("--model", default="", help="With --url: the model to ask."),
    click.option(
        "--api-key-env", default="", metavar="NAME", help="With --url: the environment variable with the API key."
    ),
    click.option("--command", default="", help="A program that reads and writes JSON lines, with its arguments."),
    click.option("--sample", "is_sample", is_flag=True, help="Write a sample agent even if the folder has an agent."),
)


@click.command()
@click.argument("folder", type=PATH, default=Path())
@option_group("choice", lambda **values: api.init.agents.AgentChoice(**values), _AGENT)  # noqa: PLW0108 - loads it later
@click.option("--dx", "is_dx", is_flag=True, help="Make it a Salesforce DX project with definitions.")
@click.option("--ci", type=click.Choice(("github", "gitlab", "azure")), help="Also write a workflow for a CI system.")
@json_option
def init(*, folder: Path, choice: AgentChoice, is_dx: bool, ci: CiSystem | None, as_json: bool) -> None:
    """Write evalmeta.toml and the first tests of your agent.

    FOLDER is the project, by default the current folder. Existing files are never overwritten: a Salesforce DX project,
    an ADK agent and a folder of pytest tests are recognised, and get only what they lack.

    \b
    evalmeta init
    evalmeta init --agent my_agent:answer
    evalmeta init --url http://127.0.0.1:8000/v1 --model my-model
    evalmeta init --command "node bot.js" --ci github
    evalmeta init my-dx-project --dx
    """
    project = api.init.project.init_project(folder, choice, is_dx=is_dx, ci=ci)
    if as_json:
        print_json(_json(project))
        return
    for line in api.init.project.describe(project):
        click.echo(line)
    for text in project.notes:
        note(f"Note: {text}.")
    for file in project.files:
        if file.missing:
            lines = "".join(f"  {line}".rstrip() + "\n" for line in file.missing.splitlines())
            note(f"\n{shown(file.path)} exists and was kept. Add these lines to it:\n\n{lines}".rstrip("\n"))
    click.echo("\nNext:")
    for command in _next(project):
        click.echo(f"  {command}")
    if project.is_dx:
        click.echo(f"\nOr, in a Salesforce org that has the agent {project.subject_name}:")
        for command in ("deploy -o ORG", "test run -o ORG --wait"):
            click.echo(f"  evalmeta {command}")


_FIRST_TEST: Final = (
    "evalmeta generate spec --name First --subject-name {} --utterance Hello --outcome 'A greeting' -o specs/First.yaml"
)


def _next(project: NewProject) -> list[str]:
    folder = [] if project.root == Path.cwd().resolve() else [f"cd {shlex.quote(str(shown(project.root)))}"]
    first = [] if project.tests or _has_tests(project.root) else [_FIRST_TEST.format(shlex.quote(project.subject_name))]
    return [*folder, *first, f"evalmeta run {shlex.join(project.tests)}".strip()]


def _has_tests(root: Path) -> bool:
    try:
        return bool(api.discovery.find_tests([root]).paths)
    except NotFound:
        return False


def _json(project: NewProject) -> JsonObject:
    files: list[JsonValue] = [
        {"path": str(file.path), "state": file.state, "missing": file.missing} for file in project.files
    ]
    return {
        "root": str(project.root),
        "subject": project.subject_name,
        "files": files,
        "notes": [*project.notes],
        "next": [*_next(project)],
    }
