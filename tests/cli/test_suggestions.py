from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

import click
import pytest

from cli.remote import GOING_ON, JOB, remote
from cli.test_conflicts import change_in_org, deployed
from evalmeta.cli.suggestions import CallOptions, completed
from evalmeta.client.logins import user_logins
from evalmeta.errors import Suggestion
from evalmeta.model.login import Login, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome
    from cli.team import Team

    Program = Callable[..., Outcome]

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
