"""`evalmeta init`, `doctor` and `completion`: set up a project and a shell, and check all that tests need."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import get_completion_class

from evalmeta import api, limits
from evalmeta.cli.groups import completed
from evalmeta.cli.options import PATH, Decorator, FloatRange, option_group, target_org_option
from evalmeta.cli.output import json_option, note, print_check, print_json
from evalmeta.errors import EXIT_FAILED, EXIT_PASSED, NotFound, UsageError
from evalmeta.package.files import shown
from evalmeta.report.text import attributes_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.init.agents import AgentChoice
    from evalmeta.api.init.project import CiSystem, NewProject
    from evalmeta.model.json_value import JsonObject


_AGENT: Sequence[Decorator] = (
    click.option(
        "--agent",
        "target",
        default="",
        metavar="AGENT",
        help="A Python agent, module:function, or a2a:URL, mcp:URL or mcp:COMMAND; in a folder without Python code, a "
        "sample is written as the module.",
    ),
    click.option("--url", default="", help="An endpoint for chat completions, or another JSON endpoint."),
    click.option(
        "--model",
        default="",
        help="With --url: the model to ask. Alone: the URL of a model for agents in Agent Script.",
    ),
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
@click.option(
    "--example",
    type=click.Choice(("python-tools", "endpoint", "adk", "mlflow", "salesforce", "pytest")),
    help="Write an example that runs as it is; no other option goes with it.",
)
@json_option
def init(
    *, folder: Path, choice: AgentChoice, is_dx: bool, ci: CiSystem | None, example: str | None, as_json: bool
) -> None:
    """Write evalmeta.toml and the first tests of your agent.

    FOLDER is the project, by default the current folder. Existing files are never overwritten: a Salesforce DX project,
    an ADK agent and a folder of pytest tests are recognised, and get only what they lack.

    \b
    evalmeta init
    evalmeta init --agent my_agent:answer
    evalmeta init --url http://127.0.0.1:8000/v1 --model my-model
    evalmeta init --command "node bot.js" --ci github
    evalmeta init my-dx-project --dx
    evalmeta init --model http://127.0.0.1:8000/v1
    evalmeta init my-example --example python-tools
    """
    if example and (any(choice) or is_dx or ci):
        raise UsageError("no other option goes with --example", actions=["Leave out --example, or the others."])
    if example:
        project = api.init.examples.write_example(folder, example)
    else:
        project = api.init.project.init_project(folder, choice, is_dx=is_dx, ci=ci)
    if as_json:
        files = [{"path": str(file.path), **attributes_json(file, "state", "missing")} for file in project.files]
        result: JsonObject = {"root": str(project.root), "subject": project.subject_name, "files": files}
        print_json({**result, "notes": project.notes, "next": _next(project)})
        return
    _print(project)


def _print(project: NewProject) -> None:
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
    if project.commands:
        return [*folder, *project.commands]
    first = [] if project.tests or _has_tests(project.root) else [_FIRST_TEST.format(shlex.quote(project.subject_name))]
    return [*folder, *first, f"evalmeta run {shlex.join(project.tests)}".strip()]


def _has_tests(root: Path) -> bool:
    try:
        return bool(api.discovery.find_tests([root]).paths)
    except NotFound:
        return False


@click.command()
@click.option(
    "--question",
    default="",
    metavar="TEXT",
    help='Question to each agent of evalmeta.toml; with a remote org, it implies --smoke.  [default: "Hello!"]',
)
@click.option("--no-questions", is_flag=True, help="Load agents and raters without asking them.")
@click.option(
    "--smoke",
    is_flag=True,
    help="Also start the smallest deployed test in the org, and cancel it after its first answer.",
)
@click.option(
    "--timeout",
    type=FloatRange(0, limits.MAX_CASE_TIMEOUT_SECONDS, min_open=True),
    default=limits.DOCTOR_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of each check.",
)
@target_org_option
@json_option
def doctor(
    *, question: str, no_questions: bool, smoke: bool, timeout: float, target_org: str | None, as_json: bool
) -> int:
    """Check Python, settings, tests, agents, raters, the store and the org.

    Each line says ok, warning or error, and what to do. Each agent answers one question, and each LLM rater rates a
    right and a wrong answer, which can cost money; agents in Salesforce orgs are only asked with --question or --smoke,
    because their actions are real. A remote org is asked the first case of a deployed test, not the question. Its
    login, API version, Testing Center, agents and definitions are checked. The exit code is 1 if there is an error.
    Secrets are not printed.

    \b
    evalmeta doctor
    evalmeta doctor --question "Where is my order?"
    evalmeta doctor --no-questions --json
    evalmeta doctor --target-org dev --smoke
    """
    if question and no_questions:
        raise UsageError("--question and --no-questions contradict each other", actions=["Leave out one of them."])
    checks = []
    for examined in api.doctor.examination.examine(
        Path.cwd(), question=None if no_questions else question, target_org=target_org, is_smoke=smoke, timeout=timeout
    ):
        checks.append(examined)
        if not as_json:
            print_check(examined.subject, *examined.finding)
    failed = any(check.finding.status == "error" for check in checks)
    status = EXIT_FAILED if failed else EXIT_PASSED
    if as_json:
        rows = [
            {"name": check.subject, **check.finding._asdict(), "action": completed(check.finding.action)}
            for check in checks
        ]
        print_json({"checks": rows}, status=status)
    else:
        counts = [(word, sum(check.finding.status == word for check in checks)) for word in ("error", "warning")]
        found = " and ".join(f"{number} {word}{'s' if number > 1 else ''}" for word, number in counts if number)
        click.echo(f"\n{found} found" if found else "\nEverything works.")
    return status


_SHELLS: Final = ("bash", "zsh", "fish", "powershell")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes evalmeta's commands in your shell.

    \b
    evalmeta completion bash >> ~/.bashrc
    evalmeta completion zsh >> ~/.zshrc
    evalmeta completion fish > ~/.config/fish/completions/evalmeta.fish
    evalmeta completion powershell >> $PROFILE
    """
    import evalmeta.cli.completions  # noqa: F401 - registers the shells before click looks for one

    program = context.find_root()
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click has no completion for {shell}.")
    click.echo(kind(program.command, {}, "evalmeta", "_EVALMETA_COMPLETE").source())
