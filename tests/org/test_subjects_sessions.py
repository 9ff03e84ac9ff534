from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from client.oauth_server import CLIENT, USERNAME, OAuthServer, running
from evalmeta.client.logins import Logins, user_logins
from evalmeta.engine.subjects.agentforce import AgentforceSubject
from evalmeta.errors import LoginFailed, NotFound, SettingsError
from evalmeta.model.login import ByRefreshToken, Login, Secrets
from evalmeta.org.subjects import bind_subject, sign_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DESK = AgentforceSubject(adapter="agentforce", agent_id="0Xxed00000002Q1CAI", org="dev")


@pytest.fixture
def org() -> Iterator[OAuthServer]:
    with running() as server:
        yield server


@pytest.fixture
def logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logins:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return user_logins()


def test_a_stored_session_is_given_as_it_is(logins: Logins) -> None:
    logins.save(Login(USERNAME, "https://desk.example.com", alias="dev"), Secrets("token"))
    given = asyncio.run(sign_in("dev", instead_of="another token"))
    assert (given.url, given.access_token) == ("https://desk.example.com", "token")
    assert "token" not in repr(given).replace("access_token", "")


def test_a_session_that_has_ended_is_renewed_and_kept(org: OAuthServer, logins: Logins) -> None:
    org.refresh_tokens.add("refresh")
    login = Login(USERNAME, org.url, alias="dev", renewal=ByRefreshToken(CLIENT, org.url))
    logins.save(login, Secrets("old", "refresh"))
    given = asyncio.run(sign_in("dev", instead_of="old"))
    assert given.access_token in org.access_tokens
    assert logins.secrets_of(login).access_token == given.access_token


def test_a_session_that_cannot_be_renewed_says_so(logins: Logins) -> None:
    logins.save(Login(USERNAME, "https://desk.example.com"), Secrets("old"))
    with pytest.raises(LoginFailed, match="has ended"):
        asyncio.run(sign_in(USERNAME, instead_of="old"))


@pytest.mark.usefixtures("logins")
def test_a_missing_login_is_named() -> None:
    with pytest.raises(NotFound, match="the login 'dev' cannot be found"):
        asyncio.run(sign_in("dev"))


def test_agents_in_orgs_are_bound_to_the_users_logins(logins: Logins, tmp_path: Path) -> None:
    logins.save(Login(USERNAME, "https://desk.example.com", alias="dev"), Secrets("token"))
    assert bind_subject({"Desk": DESK}, "Desk", root=tmp_path)


@pytest.mark.usefixtures("logins")
def test_a_missing_login_of_a_subject_is_reported_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match="the subject's org cannot be used: the login 'dev' cannot be found"
    ) as raised:
        bind_subject({"Desk": DESK}, "Desk", root=tmp_path)
    assert "evalmeta org login" in raised.value.actions[0]
