from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from client.oauth_server import CLIENT, OAuthServer, running
from evalmeta.api.org_targets import (
    EMBEDDED,
    Target,
    choose_target,
    connect,
    default_of,
    find_target,
    login_again,
    renew,
    set_default,
)
from evalmeta.client.logins import Logins, user_logins
from evalmeta.client.metadata import list_components
from evalmeta.errors import LoginFailed, NotFound, OrgFault, SettingsError, UsageError
from evalmeta.model.login import ByRefreshToken, Login, Secrets
from evalmeta.model.registry import NEWEST_API_VERSION, ApiVersion
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.package.project import Project

DESK = Login("me@desk.example", "https://desk.example", alias="desk")
SHOP = Login("me@shop.example", "https://shop.example", alias="shop")


@pytest.fixture
def org() -> Iterator[OAuthServer]:
    with running() as server:
        yield server


@pytest.fixture
def logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logins:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    kept = user_logins()
    for login in (DESK, SHOP):
        kept.save(login, Secrets(f"canary-{login.alias}"))
    return kept


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_with(tmp_path, "")


def project_with(folder: Path, settings: str) -> Project:
    (folder / "evalmeta.toml").write_text(settings)
    return find_project(folder)


def chosen(project: Project, name: str | None = None) -> str:
    target = choose_target(project, name)
    return target.login.name if target else EMBEDDED


def test_an_access_token_in_the_orgs_variable_is_taken_with_its_address(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_TARGET_ORG", "00D000000000001!secret")
    with pytest.raises(UsageError, match="SF_TARGET_ORG contains an access token"):
        choose_target(project)
    monkeypatch.setenv("SF_ORG_INSTANCE_URL", "http://127.0.0.1:8160/")
    found = choose_target(project)
    assert (found.login.url, found.secrets.access_token) == ("http://127.0.0.1:8160", "00D000000000001!secret")
    assert "SF_TARGET_ORG" in login_again(found.login)


@pytest.mark.usefixtures("logins")
def test_arguments_override_the_environment_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(project_with(tmp_path, "")) == EMBEDDED
    project = project_with(tmp_path, '[org]\ndefault = "desk"')
    assert chosen(project) == "desk"
    set_default(project, "shop")
    assert chosen(project) == "shop"
    monkeypatch.setenv("SF_ACCESS_TOKEN", "00D!env")
    monkeypatch.setenv("SF_ORG_INSTANCE_URL", "https://env.example/")
    assert chosen(project) == "https://env.example"
    monkeypatch.setenv("SF_TARGET_ORG", "desk")
    assert chosen(project) == "desk"
    assert chosen(project, EMBEDDED) == EMBEDDED


@pytest.mark.usefixtures("logins")
def test_a_choice_is_taken_back(tmp_path: Path) -> None:
    project = project_with(tmp_path, '[org]\ndefault = "desk"')
    set_default(project, EMBEDDED)
    assert default_of(project) == EMBEDDED
    set_default(project, "")
    assert default_of(project) == "desk"


def test_a_default_that_is_gone_says_how_to_choose_another(project: Project, logins: Logins) -> None:
    set_default(project, "desk")
    logins.delete(DESK)
    with pytest.raises(NotFound, match="the login 'desk' cannot be found") as raised:
        choose_target(project)
    assert "evalmeta org default" in raised.value.actions[-1]


def test_a_broken_choice_is_named(project: Project) -> None:
    project.state_dir.mkdir()
    (project.state_dir / "config.json").write_text("{")
    with pytest.raises(SettingsError, match=r"config\.json: cannot be read"):
        choose_target(project)


@pytest.mark.parametrize("token", ["00D000000000001!canary.canary", "eyJcanary.eyJcanary.canary"])
def test_a_token_in_the_place_of_a_name_is_refused_unseen(project: Project, token: str) -> None:
    for use in (choose_target, set_default):
        with pytest.raises(UsageError, match="an access token was given as the name of an org") as raised:
            use(project, token)
        assert "canary" not in str(raised.value)


def test_a_target_hides_its_secrets(project: Project, logins: Logins) -> None:
    target = choose_target(project, "desk")
    assert target == Target(DESK, Secrets("canary-desk"), target.logins)
    assert "canary" not in repr(target)
    assert logins.find("desk") == DESK


def renewable(org: OAuthServer, logins: Logins, *, refresh_token: str = "") -> Target:
    login = Login("ci@example.com", org.url, alias="ci", renewal=ByRefreshToken(CLIENT, org.url))
    secrets = Secrets("00D!ended", refresh_token or org.new_refresh_token())
    return Target(logins.save(login, secrets), secrets, logins)


@pytest.mark.parametrize("rotates", [False, True])
def test_a_renewed_session_is_kept_and_so_is_a_new_refresh_token(
    org: OAuthServer, logins: Logins, *, rotates: bool
) -> None:
    org.rotates = rotates
    target = renewable(org, logins)
    fresh = asyncio.run(renew(target))
    assert logins.secrets_of(fresh.login) == fresh.secrets
    assert fresh.secrets.access_token in org.access_tokens
    assert fresh.secrets.refresh_token in org.refresh_tokens
    assert (fresh.secrets.refresh_token == target.secrets.refresh_token) == (not rotates)


def test_a_session_that_another_program_has_renewed_is_taken(org: OAuthServer, logins: Logins) -> None:
    target = renewable(org, logins)
    other = replace(target.secrets, access_token=org.new_session())
    logins.save(target.login, other)
    assert asyncio.run(renew(target)).secrets == other
    assert org.requests == []


def test_a_session_that_cannot_be_renewed_says_how_to_log_in_again(org: OAuthServer, logins: Logins) -> None:
    target = renewable(org, logins, refresh_token="canary")  # noqa: S106 - of no org
    with pytest.raises(LoginFailed, match=r"with ci has ended and could not be renewed: .*invalid_grant") as raised:
        asyncio.run(renew(target))
    assert raised.value.actions[-1] == f"Log in again: evalmeta org login --instance-url {org.url} --alias ci"
    assert "canary" not in str(raised.value)


def names(project: Project, target: Target, remarks: list[str], asked: ApiVersion | None = None) -> tuple[str, str]:
    async def go() -> tuple[str, str]:
        async with connect(project, target, api_version=asked, remark=remarks.append) as connection:
            [listed] = await list_components(connection, "AiEvaluationDefinition")
            return listed.full_name, str(connection.api_version)

    return asyncio.run(go())


def test_an_ended_session_is_renewed_on_the_way(project: Project, org: OAuthServer, logins: Logins) -> None:
    remarks: list[str] = []
    target = renewable(org, logins)
    assert names(project, target, remarks) == ("Orders", "66.0")
    assert remarks == []
    assert logins.secrets_of(target.login).access_token in org.access_tokens


def test_an_ended_session_without_renewal_says_how_to_log_in_again(project: Project, org: OAuthServer) -> None:
    for login, way_out in (
        (Login("", org.url), "Set SF_ACCESS_TOKEN to a new token."),
        (Login("me", org.url), f"Log in again: evalmeta org login --instance-url {org.url}"),
    ):
        with pytest.raises(OrgFault) as raised:
            names(project, Target(login, Secrets("00D!ended")), [])
        assert (raised.value.code, raised.value.actions) == ("INVALID_SESSION_ID", (way_out,))


def test_the_lower_version_is_used_and_reported(
    project: Project, org: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, remarks = Target(Login("", org.url), Secrets(org.new_session())), list[str]()
    assert names(project, target, remarks, ApiVersion(64))[1] == "64.0"
    assert remarks == []
    assert names(project, target, remarks, ApiVersion(67))[1] == "66.0"
    monkeypatch.setenv("SF_ORG_API_VERSION", "99.0")
    assert names(project, target, remarks)[1] == "66.0"
    assert remarks == [
        f"API version 66.0 is used instead of {asked}: the org has no newer one" for asked in ("67.0", "99.0")
    ]


def test_a_version_that_is_newer_than_evalmetas_is_used_if_the_org_has_it(project: Project, org: OAuthServer) -> None:
    target, remarks, org.newest = Target(Login("", org.url), Secrets(org.new_session())), list[str](), "99.0"
    assert names(project, target, remarks, ApiVersion(98))[1] == "98.0"
    assert (names(project, target, remarks)[1], remarks) == (str(NEWEST_API_VERSION), [])


def test_an_org_that_is_too_old_is_refused(project: Project, org: OAuthServer, monkeypatch: pytest.MonkeyPatch) -> None:
    target, org.newest = Target(Login("", org.url), Secrets(org.new_session())), "62.0"
    with pytest.raises(UsageError, match=r"the org has API version 62\.0; agent tests require"):
        names(project, target, [])
    monkeypatch.setenv("SF_ORG_API_VERSION", "newest")
    with pytest.raises(UsageError, match="SF_ORG_API_VERSION is 'newest'"):
        names(project, target, [])


def test_an_orgs_login_is_found_by_its_address_and_best_by_its_name(logins: Logins) -> None:
    logins.save(Login("ci@desk.example", DESK.url, alias="ci"), Secrets("canary-ci"))
    assert find_target(DESK.url, "ci").login.alias == "ci"
    assert find_target(SHOP.url, "an alias of yore").login == SHOP
    with pytest.raises(NotFound, match=r"the login at https://gone\.example cannot be found any more"):
        find_target("https://gone.example", "gone")


def test_the_environments_org_is_found_by_its_address(monkeypatch: pytest.MonkeyPatch, logins: Logins) -> None:
    monkeypatch.setenv("SF_ACCESS_TOKEN", "canary")
    monkeypatch.setenv("SF_ORG_INSTANCE_URL", DESK.url)
    assert find_target(DESK.url, "desk").logins is None
    assert find_target(SHOP.url, "shop").login == logins.find("shop")
