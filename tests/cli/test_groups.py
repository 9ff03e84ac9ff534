from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from evalmeta.cli.groups import LazyGroup
from evalmeta.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (("depoly",), "No such command 'depoly'. Did you mean 'deploy'?"),
        (("org", "strat"), "Did you mean 'start'?"),
        (("xyzzy",), "No such command 'xyzzy'.\n"),
        (("deploy", "package.xml"), "Files are named with --manifest or --source-dir"),
        (("test", "run", "Orders", "--wait"), "To run a test in the org, use -n Orders"),
    ],
)
def test_an_unknown_word_is_refused_with_a_suggestion(evalmeta: Program, call: tuple[str, ...], hint: str) -> None:
    refused = evalmeta(*call)
    assert (refused.code, hint in refused.err) == (2, True)


def groups(group: click.Group, path: str = "evalmeta") -> Iterator[tuple[str, LazyGroup]]:
    context = click.Context(group)
    if isinstance(group, LazyGroup):
        yield path, group
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from groups(command, f"{path} {name}")


@pytest.mark.parametrize(("path", "group"), list(groups(cli)))
def test_summaries_are_the_first_sentences_of_the_help(path: str, group: LazyGroup) -> None:
    context = click.Context(group)
    for name, (_, summary) in group.rows.items():
        command = group.get_command(context, name)
        assert command is not None
        assert (command.help or "").partition("\n\n")[0].replace("\n", " ") == summary, f"{path} {name}"
