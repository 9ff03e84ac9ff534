from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from client.fake_sf import install
from evalmeta import limits
from evalmeta.client.auth import fetch_sf_session
from evalmeta.errors import LoginFailed, UsageError
from evalmeta.protocol.oauth import TokenReply

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "00D000000000001!AQ.from_sf"  # noqa: S105 - of no org
URL = "https://desk.my.salesforce.com"


def test_sf_is_asked_for_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = install(tmp_path, monkeypatch, {"display": {"accessToken": TOKEN, "instanceUrl": f"{URL}/"}})
    assert asyncio.run(fetch_sf_session("my org")) == TokenReply(TOKEN, URL)
    assert asked() == [["org", "display", "--verbose", "--target-org=my org", "--json"]]


@pytest.mark.parametrize("hidden", ["[REDACTED] Use 'sf org auth show-access-token'", "", None])
def test_a_token_that_sf_hides_is_read_with_its_own_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str | None
) -> None:
    replies = {"display": {"accessToken": hidden, "instanceUrl": URL}, "auth": {"accessToken": TOKEN}}
    asked = install(tmp_path, monkeypatch, replies)
    assert asyncio.run(fetch_sf_session("dev")) == TokenReply(TOKEN, URL)
    assert asked()[1] == ["org", "auth", "show-access-token", "--target-org=dev", "--json"]


def test_sf_that_does_not_know_the_org_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {})
    with pytest.raises(LoginFailed, match="sf failed: No authorization information found for dev"):
        asyncio.run(fetch_sf_session("dev"))


def test_sf_without_a_session_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {"display": {"instanceUrl": URL}, "auth": {"accessToken": "none"}})
    with pytest.raises(LoginFailed, match="sf has no session with dev"):
        asyncio.run(fetch_sf_session("dev"))


def test_a_missing_sf_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="sf is not on the PATH"):
        asyncio.run(fetch_sf_session("dev"))


def test_unknown_output_of_sf_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {}, code="print('canary')")
    with pytest.raises(LoginFailed, match="is not JSON") as raised:
        asyncio.run(fetch_sf_session("dev"))
    assert "canary" not in str(raised.value)


def test_sf_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SF_CLI_SECONDS", 0.2)
    install(tmp_path, monkeypatch, {}, code="import time; time.sleep(600)")
    with pytest.raises(LoginFailed, match=r"does not answer within 0\.2 seconds"):
        asyncio.run(fetch_sf_session("dev"))
