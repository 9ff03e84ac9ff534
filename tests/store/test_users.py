from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.model.login import ADMIN
from evalmeta.store.database import open_database
from evalmeta.store.users import Users
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.store.database import Database

ORG = "00D000000000001"
DAY = 24 * 3600


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(store_in(tmp_path)) as opened:
        yield opened


@pytest.fixture
def users(database: Database) -> Users:
    return Users(database)


def test_a_new_org_has_an_admin(users: Users) -> None:
    assert users.all_users() == [ADMIN]
    assert users.find_by_name(ADMIN.username.upper()) == ADMIN


@pytest.mark.parametrize(("user_id", "found"), [(ADMIN.id, True), (ADMIN.id[:15], True), ("005", False), ("", False)])
def test_a_user_has_an_id_of_15_or_18_characters(users: Users, user_id: str, *, found: bool) -> None:
    assert (users.get(user_id) == ADMIN) is found


def test_a_new_user_is_not_an_admin_and_has_its_own_id(users: Users) -> None:
    ci = users.add("ci@evalmeta.local", "ci", now=1.0)
    assert (ci.id, ci.is_admin) == ("005000000000002AAA", False)
    assert users.get(ci.id) == users.find_by_name("CI@evalmeta.local") == ci


def test_a_token_identifies_its_user_and_has_the_form_that_the_sf_cli_accepts(users: Users) -> None:
    ci = users.add("ci@evalmeta.local", "ci", now=0)
    token = users.add_token(ci, org_id=ORG, now=0, expires=DAY)
    assert re.fullmatch(r"00D\w{12,15}![.\w]*", token)
    assert users.user_of(token, now=1) == ci


@pytest.mark.sqlite
def test_only_the_hash_of_a_token_is_stored(users: Users, database: Database) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    secret = token.rpartition("!")[2].partition(".")[2]
    files = [path.read_bytes() for path in database.folder.iterdir()]
    assert not any(secret.encode() in content for content in files)


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: f"{t}x", lambda t: t.swapcase(), lambda _: "", str.title]
)
def test_similar_tokens_are_rejected(users: Users, change: object) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    assert users.user_of(change(token), now=1) is None


def test_a_token_ends_when_it_expires(users: Users) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    assert users.user_of(token, now=DAY - 1) == ADMIN
    assert users.user_of(token, now=DAY) is None


def test_a_token_ends_when_it_is_revoked(users: Users) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    [listed] = users.list_tokens()
    assert users.revoke(listed.id, now=5)
    assert users.revoke(listed.id, now=9)
    assert users.user_of(token, now=6) is None
    assert users.list_tokens()[0].revoked == 5


def test_an_unknown_token_cannot_be_revoked(users: Users) -> None:
    assert not users.revoke("none", now=0)


def test_the_use_of_a_token_is_recorded_once_an_hour(users: Users) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    noted = []
    for now in (10, 20, 3_600, 3_620):
        users.user_of(token, now=now)
        noted.append(users.list_tokens()[0].used)
    assert noted == [10, 10, 10, 3_620]


@pytest.mark.sqlite
def test_users_can_log_in_while_another_program_locks_the_database(users: Users, database: Database) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    database.execute("PRAGMA busy_timeout = 10")
    with open_database(database.store) as other, other.transaction():
        assert users.user_of(token, now=1) == ADMIN


@pytest.mark.sqlite
def test_recording_the_use_of_a_token_does_not_wait_for_a_lock(users: Users, database: Database) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    held, asked = Event(), Event()

    def hold() -> None:
        with open_database(database.store) as other, other.transaction():
            held.set()
            asked.wait(60)

    with ThreadPoolExecutor() as pool:
        pool.submit(hold)
        held.wait()
        assert users.user_of(token, now=1) == ADMIN
        asked.set()
    assert users.list_tokens()[0].used is None
    assert database.query("PRAGMA busy_timeout") == [(1000 * limits.STORE_BUSY_SECONDS,)]


def copied(database: Database, folder: Path) -> Path:
    """Copy a store, as a backup or a cache does it."""
    folder.mkdir()
    database.execute("VACUUM INTO ?", (str(folder / "org.sqlite3"),))
    return folder


@pytest.mark.sqlite
@pytest.mark.parametrize("change", ["folder", "user", "key", "nothing"])
def test_a_token_is_valid_only_in_its_folder_and_for_its_user(
    users: Users, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    folder = tmp_path
    if change == "folder":
        folder = copied(database, tmp_path / "elsewhere")
    elif change == "user":
        monkeypatch.setattr(os, "getuid", lambda: 54_321)
    elif change == "key":
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    with open_database(store_in(folder)) as opened:
        restored = Users(opened)
        is_void = change != "nothing"
        assert restored.user_of(token, now=1) == (None if is_void else ADMIN)
        assert [stored.is_void for stored in restored.list_tokens()] == [is_void]
        assert restored.is_void(token, now=1) is is_void
        assert restored.user_of(restored.add_token(ADMIN, org_id=ORG, now=0, expires=DAY), now=1) == ADMIN


@pytest.mark.sqlite
def test_a_token_that_others_put_into_the_store_is_void(users: Users, database: Database) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    users.add("ci@evalmeta.local", "ci", now=0)
    for change in (
        "UPDATE access_token SET user_id = (SELECT max(id) FROM org_user)",
        "UPDATE access_token SET signature = NULL",
        "UPDATE access_token SET signature = zeroblob(32)",
        "UPDATE access_token SET signature = sha256",
    ):
        database.execute("SAVEPOINT planted")
        database.execute(change)
        assert users.user_of(token, now=1) is None
        database.execute("ROLLBACK TO planted")
        database.execute("RELEASE planted")
    assert users.user_of(token, now=1) == ADMIN


def test_only_who_has_the_secret_of_a_void_token_learns_that_it_is_void(users: Users, database: Database) -> None:
    token = users.add_token(ADMIN, org_id=ORG, now=0, expires=DAY)
    database.execute("UPDATE access_token SET signature = NULL")
    asked = [token, f"{token}x", token.partition(".")[0], "", f"{ORG}!none.secret"]
    assert [users.is_void(text, now=1) for text in asked] == [True, False, False, False, False]
    assert not users.is_void(token, now=DAY)
