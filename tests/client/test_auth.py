from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from client.oauth_server import CLIENT, SECRET, USERNAME, OAuthServer, key_pair, running
from evalmeta.client.auth import fetch_identity, fetch_session
from evalmeta.errors import LoginFailed, MessageUnreadable, OrgUnreachable, UsageError
from evalmeta.model.login import ByKey, ByRefreshToken, Login, Secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def org() -> Iterator[OAuthServer]:
    with running() as server:
        yield server


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "server.key"
    path.write_bytes(key_pair().as_pem(private=True))
    return path


def test_a_key_gets_a_session(org: OAuthServer, key_file: Path) -> None:
    renewal = ByKey(CLIENT, org.url, org.url, str(key_file))
    reply = asyncio.run(fetch_session(renewal, username=USERNAME))
    assert reply.access_token in org.access_tokens
    assert reply.instance_url == org.url


def test_a_key_for_another_user_gets_no_session(org: OAuthServer, key_file: Path) -> None:
    renewal = ByKey(CLIENT, org.url, org.url, str(key_file))
    with pytest.raises(LoginFailed, match="invalid_grant"):
        asyncio.run(fetch_session(renewal, username="other@example.com"))


def test_a_key_that_is_missing_is_named(org: OAuthServer, tmp_path: Path) -> None:
    renewal = ByKey(CLIENT, org.url, org.url, str(tmp_path / "gone.key"))
    with pytest.raises(UsageError, match=r"gone\.key: the key cannot be read: No such file"):
        asyncio.run(fetch_session(renewal, username=USERNAME))


def test_a_refresh_token_gets_a_session(org: OAuthServer) -> None:
    secrets = Secrets("", org.new_refresh_token(), SECRET)
    reply = asyncio.run(fetch_session(ByRefreshToken(CLIENT, org.url), secrets=secrets))
    assert reply.access_token in org.access_tokens
    assert reply.refresh_token == ""


def test_a_refresh_token_that_was_revoked_gets_none_and_is_not_shown(org: OAuthServer) -> None:
    with pytest.raises(LoginFailed) as raised:
        asyncio.run(fetch_session(ByRefreshToken(CLIENT, org.url), secrets=Secrets("", "canary")))
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("tells_username", [True, False])
def test_an_org_identifies_the_user_of_a_token(org: OAuthServer, *, tells_username: bool) -> None:
    if not tells_username:
        del org.user_info["preferred_username"]
    met = asyncio.run(fetch_identity(org.url, org.new_session()))
    assert met == Login(USERNAME, org.url, org_id="00D000000000001", api_version="66.0")


def test_a_token_of_another_org_is_refused_unseen(org: OAuthServer) -> None:
    with pytest.raises(LoginFailed, match=r"refuses this access token \(status 401\)") as raised:
        asyncio.run(fetch_identity(org.url, "00D!canary"))
    assert "canary" not in str(raised.value)


def test_a_server_that_is_not_an_org_is_reported(org: OAuthServer) -> None:
    with pytest.raises(MessageUnreadable, match="status 500, but the reply is not from an org"):
        asyncio.run(fetch_session(ByRefreshToken("", org.url + "/nowhere"), secrets=Secrets("", "x")))


def test_an_org_without_user_info_is_reported(org: OAuthServer) -> None:
    del org.user_info["preferred_username"]
    org.username = ""
    with pytest.raises(MessageUnreadable, match="does not return the name of its user"):
        asyncio.run(fetch_identity(org.url, org.new_session()))
    org.user_info = {}
    with pytest.raises(MessageUnreadable, match=r"answered /services/oauth2/userinfo .* it has no user"):
        asyncio.run(fetch_identity(org.url, org.new_session()))


def test_an_org_that_is_down_is_unreachable() -> None:
    with running() as server:
        url = server.url
    with pytest.raises(OrgUnreachable, match="does not answer"):
        asyncio.run(fetch_identity(url, "00D!x"))
