from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.rings import installed
from evalmeta.client.logins import Logins, user_logins
from evalmeta.errors import LoginFailed, NotFound, UsageError
from evalmeta.model.login import ByKey, ByRefreshToken, BySf, Login, Secrets

if TYPE_CHECKING:
    from pathlib import Path

DESK = Login("Me@Desk.example", "https://desk.example", org_id="00D1", api_version="66.0", alias="dev")
SHOP = Login("me@shop.example", "https://shop.example")
SECRETS = Secrets("canary-access", "canary-refresh", "canary-client")
WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
RENEWALS = st.none() | st.builds(ByRefreshToken, WORDS, WORDS) | st.builds(BySf, WORDS)


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    return Logins(tmp_path / "evalmeta" / "logins")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@given(st.builds(Login, WORDS, WORDS, WORDS, WORDS, WORDS, RENEWALS), st.builds(Secrets, WORDS, WORDS, WORDS))
def test_a_login_is_read_as_it_was_kept(
    tmp_path_factory: pytest.TempPathFactory, login: Login, secrets: Secrets
) -> None:
    logins = Logins(tmp_path_factory.mktemp("logins") / "kept")
    logins.save(login, secrets)
    assert logins.find(login.alias) == login
    assert logins.secrets_of(login) == secrets


def test_a_login_with_a_key_stores_the_path_of_the_key(logins: Logins) -> None:
    login = replace(DESK, renewal=ByKey("id", "https://login", "https://aud", "/keys/server.key"))
    logins.save(login, SECRETS)
    assert logins.list_logins() == [login]


def test_a_login_is_found_by_alias_and_by_username_in_any_case(logins: Logins) -> None:
    logins.save(DESK, SECRETS)
    assert logins.find("dev") == logins.find("me@DESK.example") == DESK
    with pytest.raises(NotFound) as raised:
        logins.find("dve")
    assert raised.value.actions[0] == "Did you mean dev?"


def test_a_second_login_of_a_user_replaces_the_first_and_keeps_its_alias(logins: Logins) -> None:
    logins.save(DESK, SECRETS)
    kept = logins.save(replace(DESK, username="me@desk.example", alias=""), Secrets("new"))
    assert logins.list_logins() == [kept]
    assert (kept.alias, logins.secrets_of(kept)) == ("dev", Secrets("new"))


def test_an_alias_moves_to_the_last_login_that_has_it(logins: Logins) -> None:
    logins.save(DESK, SECRETS)
    logins.save(replace(SHOP, alias="dev"), Secrets("other"))
    assert logins.find("dev").username == SHOP.username
    assert logins.secrets_of(logins.find(DESK.username)) == SECRETS


def test_a_username_of_two_orgs_needs_an_alias(logins: Logins) -> None:
    for login in (DESK, replace(DESK, url="http://127.0.0.1:1", alias="local")):
        logins.save(login, SECRETS)
    with pytest.raises(UsageError, match=r"is a user of https://desk\.example, http://127\.0\.0\.1:1"):
        logins.find(DESK.username)
    assert logins.find("local").url == "http://127.0.0.1:1"


def test_only_the_owner_may_open_what_is_kept(logins: Logins) -> None:
    previous = os.umask(0)
    try:
        logins.save(DESK, SECRETS)
    finally:
        os.umask(previous)
    [file] = logins.folder.iterdir()
    assert [mode_of(path) for path in (file, logins.folder, logins.folder.parent)] == [0o600, 0o700, 0o700]


def test_a_file_that_others_may_read_is_refused_with_the_fix(logins: Logins) -> None:
    logins.save(DESK, SECRETS)
    [file] = logins.folder.iterdir()
    file.chmod(0o640)
    with pytest.raises(UsageError, match=r"other users can read it \(mode 640\)") as raised:
        logins.find("dev")
    assert raised.value.actions == (f"chmod 600 {file}",)


def test_a_folder_that_others_may_list_is_refused_with_the_fix(logins: Logins) -> None:
    logins.save(DESK, SECRETS)
    logins.folder.chmod(0o755)
    with pytest.raises(UsageError, match="mode 755") as raised:
        logins.save(SHOP, SECRETS)
    assert raised.value.actions == (f"chmod 700 {logins.folder}",)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"username": "canary"}', "canary"])
def test_an_invalid_login_file_is_named_and_not_shown(logins: Logins, content: str) -> None:
    logins.save(DESK, SECRETS)
    [file] = logins.folder.iterdir()
    file.write_text(content)
    with pytest.raises(UsageError, match=r"\.json: is not a valid login$"):
        logins.list_logins()


def test_a_forgotten_login_is_gone(logins: Logins) -> None:
    logins.save(DESK, SECRETS)
    logins.delete(DESK)
    logins.delete(DESK)
    assert logins.list_logins() == []
    assert list(logins.folder.iterdir()) == []


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be created"):
        Logins(tmp_path / "file" / "logins").save(DESK, SECRETS)


def test_a_login_that_was_removed_in_the_meantime_is_reported(logins: Logins) -> None:
    with pytest.raises(LoginFailed, match="was removed in the meantime"):
        logins.secrets_of(DESK)


def test_a_login_that_cannot_be_read_or_written_is_reported(logins: Logins) -> None:
    logins.save(DESK, SECRETS)
    [file] = logins.folder.iterdir()
    file.unlink()
    file.mkdir(mode=0o700)
    with pytest.raises(UsageError, match=r"cannot be read: Is a directory"):
        logins.find("dev")
    file.rmdir()
    file.symlink_to("/elsewhere.json")
    with pytest.raises(UsageError, match="a link leads out"):
        logins.save(DESK, SECRETS)


def test_the_keyring_stores_the_secrets_if_it_works(logins: Logins) -> None:
    with installed() as ring:
        logins.save(DESK, SECRETS)
        assert logins.secrets_of(DESK) == SECRETS
        assert "canary" not in "".join(file.read_text() for file in logins.folder.iterdir())
        logins.delete(DESK)
        assert ring.kept == {}


def test_a_keyring_that_lost_a_secret_is_reported(logins: Logins) -> None:
    with installed() as ring:
        logins.save(DESK, SECRETS)
        ring.kept.clear()
        with pytest.raises(LoginFailed, match="the keyring does not return the secrets of dev"):
            logins.secrets_of(DESK)


def test_secrets_in_a_keyring_need_the_extra(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    with installed():
        logins.save(DESK, SECRETS)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(LoginFailed) as raised:
        logins.secrets_of(DESK)
    assert raised.value.actions[0] == "Install it: pip install 'evalmeta[keyring]'"


def test_a_keyring_that_breaks_leaves_the_secrets_to_the_file(logins: Logins) -> None:
    with installed(broken=True):
        logins.save(DESK, SECRETS)
    [file] = logins.folder.iterdir()
    assert json.loads(file.read_text())["secrets"]["accessToken"] == "canary-access"
    assert logins.secrets_of(DESK) == SECRETS


def test_no_secret_is_in_a_repr() -> None:
    assert "canary" not in repr(SECRETS)


def test_logins_are_kept_below_the_users_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_logins().folder == tmp_path / ".config/evalmeta/logins"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert user_logins().folder == tmp_path / ".config/evalmeta/logins"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert user_logins().folder == tmp_path / "xdg/evalmeta/logins"
