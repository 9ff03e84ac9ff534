from __future__ import annotations

import copy
import json
from inspect import cleandoc
from typing import TYPE_CHECKING

import click
import pytest

from cli.remote import GOING_ON, JOB, remote
from cli.test_conflicts import change_in_org, deployed
from evalmeta.cli.groups import CallOptions, LazyGroup, completed
from evalmeta.cli.main import cli
from evalmeta.cli.runs.options import RenamedOptionsCommand
from evalmeta.client.logins import user_logins
from evalmeta.errors import Suggestion
from evalmeta.model.login import Login, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]
    from collections.abc import Callable
    from pathlib import Path

    from cli.team import Team


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (("depoly",), "No such command 'depoly'. Did you mean 'deploy'?"),
        (("org", "strat"), "Did you mean 'start'?"),
        (("agent", "test", "run"), "'sf agent test run' is 'evalmeta test run'."),
        (("project", "deploy", "start"), "'sf project deploy start' is 'evalmeta deploy start'."),
        (("results",), "Did you mean 'test results'?"),
        (("deploy", "preview"), "Use 'evalmeta status'"),
        (("serve",), "Did you mean 'org start'?"),
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


def commands(command: click.Command, path: str = "evalmeta") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")


COMMANDS = [pytest.param(path, command, id=path) for path, command in commands(cli)]


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_the_help_of_every_command_has_an_example(path: str, command: click.Command) -> None:
    is_group = isinstance(command, click.Group) and not command.invoke_without_command
    assert is_group or f"\n{path}" in cleandoc(command.help or "")


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_no_summary_is_cut_off_at_80_columns(path: str, command: click.Command) -> None:
    text = click.Context(command, info_name=path, terminal_width=80).get_help()
    assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_every_option_for_a_number_refuses_what_is_not_finite(number: str) -> None:
    options = [option for _, command in commands(cli) for option in command.params if _is_float(option.type)]
    assert len(options) > 10
    for option in options:
        with pytest.raises(click.BadParameter, match=f"not {number}"):
            option.type.convert(number, option, None)


def _is_float(kind: click.ParamType) -> bool:
    return kind is click.FLOAT or isinstance(kind, click.FloatRange)


def test_every_command_is_in_one_section_of_the_help() -> None:
    assert isinstance(cli, LazyGroup)
    listed = [name for names in cli.sections.values() for name in names]
    assert sorted(listed) == sorted(cli.rows)


@pytest.mark.parametrize("path", ["evalmeta run", "evalmeta test run"])
def test_options_of_runs_are_in_sections(path: str) -> None:
    command = dict(commands(cli))[path]
    assert isinstance(command, RenamedOptionsCommand)
    text = click.Context(command, info_name=path).get_help()
    for title in ("Which tests", "How to run", "How to score", "Compare", "Output"):
        assert f"\n{title}:\n" in text
    assert all(f"{param.opts[-1]}" in text for param in command.params if isinstance(param, click.Option))
    assert "PATH]..." not in text.partition("Which tests:")[2]


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        (("--wait", "0"), "above 0"),
        (("--min-decided", "80"), "'--min-decided': it must be from 0 to 1, not 80"),
        (("--rate-limit", "0"), "it must be above 0 and at most 10,000, not 0"),
        (("--min-pass-rate", "nan"), "'--min-pass-rate': it must be from 0 to 1, not nan"),
        (("--threshold", "-inf"), "it must be from 0 to 5, not -inf"),
        (("--max-errors", "0"), "it must be at least 1, not 0"),
        (("--iterations", "many"), "'many' is not a valid integer"),
    ],
)
def test_an_invalid_value_is_refused_in_one_line(evalmeta: Program, options: tuple[str, ...], allowed: str) -> None:
    refused = evalmeta("test", "run", *options)
    assert (refused.code, refused.err.count("\n"), allowed in refused.err) == (2, 1, True)


__all__ = ["deployed"]

CALL = CallOptions(("--target-org", "srv"), ("--metadata", "AiEvaluationDefinition:A*"))


@pytest.mark.parametrize(
    ("suggestion", "more"),
    [
        (Suggestion("See how", "diff"), " --target-org srv"),
        (Suggestion("Keep yours", "deploy"), " --target-org srv --metadata 'AiEvaluationDefinition:A*'"),
        (
            Suggestion("Keep yours", "deploy", "--ignore-conflicts"),
            " --target-org srv --metadata 'AiEvaluationDefinition:A*'",
        ),
        (Suggestion("See it", "deploy", "report", "--job-id", "0Af1"), " --target-org srv"),
        (Suggestion("Use it", "test", "run", "--target-org", "other"), ""),
        (Suggestion("Look there", "org", "status"), ""),
        ("Use what `evalmeta deploy` printed.", ""),
    ],
)
def test_commands_that_talk_to_orgs_are_completed(suggestion: str, more: str) -> None:
    with click.Context(click.Command("x"), obj=CALL):
        assert completed(suggestion) == suggestion + more


def test_outside_of_a_call_nothing_is_added() -> None:
    assert completed(Suggestion("Keep yours", "deploy")) == "Keep yours: evalmeta deploy"


def test_a_copy_of_a_suggestion_keeps_its_words() -> None:
    same = copy.copy(Suggestion("Run it", "test", "run", "a b"))
    assert (same, same.command) == ("Run it: evalmeta test run 'a b'", ("test", "run", "a b"))


def test_hints_of_a_conflict_name_the_same_org_and_files(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A")
    deployed.write("A", "mine")
    call = ("-o", "embedded", "-m", "AiEvaluationDefinition:A")
    for command in ("retrieve", "deploy"):
        told = json.loads(evalmeta(command, *call, "--json").out)["actions"]
        assert all("--target-org embedded" in each for each in told)
        assert all("--metadata AiEvaluationDefinition:A" in each for each in told if "diff" not in each)
        assert told[-1] in evalmeta(command, *call).err


def test_suggestions_of_status_name_the_org(team: Team, evalmeta: Program) -> None:
    team.write("A")
    assert "See how: evalmeta diff --target-org embedded\n" in evalmeta("status", "-o", "embedded").err


def test_a_call_is_forgotten_by_the_next(team: Team, evalmeta: Program) -> None:
    team.write("A")
    evalmeta("status", "-o", "embedded")
    assert "See how: evalmeta diff\n" in evalmeta("status").err


@pytest.mark.usefixtures("team")
def test_suggestions_about_a_job_name_the_org(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with remote(monkeypatch, GOING_ON) as org:
        user_logins().save(Login("me@desk.example", org.url, alias="srv"), Secrets("x"))
        left = evalmeta("deploy", "resume", "-o", "srv", "--job-id", JOB, "--wait", "0.001")
    assert f"Cancel it: evalmeta deploy cancel --job-id {JOB} --target-org srv\n" in left.err
