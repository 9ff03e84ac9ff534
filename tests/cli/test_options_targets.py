from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from client.oauth_server import running
from evalmeta.cli.main import cli
from evalmeta.client.logins import user_logins
from evalmeta.model.login import Login, Secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome
    from cli.team import Team

    Program = Callable[..., Outcome]

MANIFEST = """<?xml version="1.0" encoding="UTF-8"?>
<Package xmlns="http://soap.sforce.com/2006/04/metadata">
    <types>
        <members>*</members>
        <name>AiEvaluationDefinition</name>
    </types>
    <version>99.0</version>
</Package>
"""


def test_a_manifest_with_a_newer_api_version_is_lowered_and_reported(evalmeta: Program, team: Team) -> None:
    team.write("Orders")
    Path("package.xml").write_text(MANIFEST)
    for command in ("deploy", "retrieve"):
        done = evalmeta(command, "--manifest", "package.xml")
        assert done.code == 0
        assert "Warning: API version 68.0 is used instead of 99.0: the org has no newer one\n" in done.err


@pytest.mark.usefixtures("team")
def test_an_org_of_the_environment_is_printed_without_its_token(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as org:
        monkeypatch.setenv("SF_ORG_INSTANCE_URL", org.url)
        monkeypatch.setenv("SF_ACCESS_TOKEN", org.new_session())
        monkeypatch.setenv("SF_ORG_API_VERSION", "99.0")
        done = evalmeta("test", "list")
    assert done.err == (
        f"Target: {org.url}, with SF_ACCESS_TOKEN\n"
        "Warning: API version 66.0 is used instead of 99.0: the org has no newer one\n"
    )


@pytest.mark.usefixtures("team")
def test_an_unencrypted_url_is_refused_before_anything_is_sent(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_ORG_INSTANCE_URL", "http://desk.example")
    monkeypatch.setenv("SF_ACCESS_TOKEN", "canary")
    done = evalmeta("status")
    assert done.code == 2
    assert "http://desk.example is not allowed" in done.err
    assert "canary" not in done.err


def test_names_of_logins_are_completed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    user_logins().save(Login("me@desk.example", "https://desk.example", alias="desk"), Secrets("x"))
    command = cli.get_command(click.Context(cli), "status")
    assert command is not None
    [option] = [param for param in command.params if param.name == "target_org"]
    found = option.shell_complete(click.Context(command), "")
    assert [each.value for each in found] == ["desk", "embedded"]
