"""`evalmeta agent`: the agents of a project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.groups import LazyGroup
from evalmeta.cli.options import FILE
from evalmeta.cli.output import note
from evalmeta.package.files import shown
from evalmeta.package.project import find_project
from evalmeta.report.steps import steps_text
from evalmeta.report.text import LINE_CHARS, clean, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.generated_data import GeneratedData

_PROMPT: Final = "> "
_COMMANDS: Final = {
    "chat": ("agent:chat", "Talk to an agent in the terminal, and save the conversation as a test case.")
}


@click.group(
    cls=LazyGroup,
    module="evalmeta.cli.commands",
    rows=_COMMANDS,
    hints={"test": "Leave it out: 'sf agent test run' is 'evalmeta test run'."},
)
def agent() -> None:
    """Talk to the agents of a project."""


def _read_context(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> Mapping[str, str]:
    context: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        context[name] = value
    return context


@click.command
@click.argument("name")
@click.option(
    "--context",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_read_context,
    help="A context variable, such as a linked variable of an Agent Script; repeatable.",
)
@click.option("--to", "test", type=FILE, help="Write the conversation to a test spec (YAML), marked for review.")
@click.option("--force", is_flag=True, help="Overwrite the test spec if it has different content.")
def chat(name: str, context: Mapping[str, str], test: Path | None, *, force: bool) -> None:
    """Talk to an agent in the terminal, and save the conversation as a test case.

    NAME is an agent that evalmeta.toml binds, or that the project has as Agent Script. Each line
    is a turn; an empty line or Ctrl-D ends the conversation. After each turn, the steps of the
    agent are printed.

    \b
    evalmeta agent chat Library_Desk --context card_number=1001
    evalmeta agent chat Library_Desk --to specs/renewal.yaml
    """
    if test is None and force:
        raise click.UsageError("--force needs --to")
    if test is not None:
        api.trace_tests.check_target(test, overwrite=force)
    with api.agent_chats.AgentChat(find_project(Path.cwd(), or_folder=True), name, context=context) as conversation:
        try:
            for utterance in _utterances():
                _print_turn(conversation.ask(utterance))
        finally:
            if test is not None and conversation.turns:
                note(f"{shown(test)}: 1 test case with {count(conversation.save(test, overwrite=force), 'turn')}")


def _utterances() -> Iterator[str]:
    lines = sys.stdin
    while True:
        if lines.isatty():
            click.echo(_PROMPT, nl=False)
        line = lines.readline().strip()
        if not line:
            return
        yield line


def _print_turn(generated: GeneratedData) -> None:
    if steps := steps_text(generated, chars=LINE_CHARS):
        click.echo(click.style(steps, dim=True))
    click.echo(clean(generated.outcome))
