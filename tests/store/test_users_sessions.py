from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.model.login import ADMIN
from evalmeta.store.database import open_database
from evalmeta.store.users import Holder, Sessions, Users, public_id
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.store.database import Database

OF_ADMIN = Holder(ADMIN.id)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(store_in(tmp_path)) as opened:
        yield opened


def test_a_session_has_its_user_until_it_is_ended(database: Database) -> None:
    sessions = Sessions(database)
    secret, other = (sessions.add(OF_ADMIN, now=1) for _ in range(2))
    assert sessions.user_of(secret, now=2) == ADMIN
    assert sessions.valid(now=2) == {sessions.hash_of(secret), sessions.hash_of(other)}
    sessions.end(secret)
    assert [sessions.user_of(known, now=2) for known in (secret, other, "", "x")] == [None, ADMIN, None, None]
    assert sessions.valid(now=2) == {sessions.hash_of(other)}


@pytest.mark.parametrize(
    ("seconds", "is_valid"), [(0, True), (limits.VIEW_SESSION_SECONDS - 1, True), (limits.VIEW_SESSION_SECONDS, False)]
)
def test_a_session_has_an_end(database: Database, seconds: float, *, is_valid: bool) -> None:
    sessions = Sessions(database)
    secret = sessions.add(OF_ADMIN, now=1_000)
    assert (sessions.user_of(secret, now=1_000 + seconds) == ADMIN) is is_valid
    assert bool(sessions.valid(now=1_000 + seconds)) is is_valid


def test_a_session_that_ends_later_than_any_is_not_valid(database: Database) -> None:
    secret = Sessions(database).add(OF_ADMIN, now=1_000)
    database.execute("UPDATE view_session SET expires_at = 1e12")
    assert Sessions(database).user_of(secret, now=1_001) is None


@pytest.mark.parametrize("end", ["revoked", "expired"])
def test_a_session_ends_with_the_token_that_opened_it(database: Database, end: str) -> None:
    users, sessions = Users(database), Sessions(database)
    token = users.add_token(ADMIN, org_id="00D", now=1, expires=100)
    secret, other = sessions.add(Holder(ADMIN.id, public_id(token)), now=1), sessions.add(OF_ADMIN, now=1)
    assert sessions.user_of(secret, now=2) == ADMIN
    if end == "revoked":
        users.revoke(public_id(token), now=2)
    now = 3 if end == "revoked" else 100
    assert sessions.user_of(secret, now=now) is None
    assert sessions.valid(now=now) == {sessions.hash_of(other)}


def test_the_oldest_session_of_a_user_ends_and_none_of_another(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_USER_SESSIONS", 2)
    ann, sessions = Users(database).add("ann@example.com", "Ann", now=1), Sessions(database)
    of_ann = sessions.add(Holder(ann.id), now=1)
    of_admin = [sessions.add(OF_ADMIN, now=2 + number / 10) for number in range(3)]
    assert [sessions.user_of(secret, now=3) for secret in (of_ann, *of_admin)] == [ann, None, ADMIN, ADMIN]


def test_sessions_that_have_ended_are_deleted(database: Database) -> None:
    sessions = Sessions(database)
    sessions.add(OF_ADMIN, now=1)
    sessions.add(OF_ADMIN, now=2 + limits.VIEW_SESSION_SECONDS)
    assert database.query("SELECT count(*) FROM view_session") == [(1,)]


@pytest.mark.sqlite
def test_a_session_is_not_valid_in_a_copy_of_the_store_and_for_another_user(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = Sessions(database).add(OF_ADMIN, now=1)
    (tmp_path / "copy").mkdir()
    with (
        closing(sqlite3.connect(tmp_path / "copy" / "org.sqlite3")) as copy,
        closing(sqlite3.connect(database.path)) as original,
    ):
        original.backup(copy)
    with open_database(store_in(tmp_path / "copy")) as copied:
        assert Sessions(copied).user_of(secret, now=2) is None
    assert Sessions(database).user_of(secret, now=2) == ADMIN
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    assert Sessions(database).user_of(secret, now=2) is None


@pytest.mark.sqlite
def test_where_no_key_can_be_kept_a_session_ends_with_the_process(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    secret = Sessions(database).add(OF_ADMIN, now=1)
    assert Sessions(database).user_of(secret, now=2) == ADMIN
    monkeypatch.setattr("evalmeta.store.users._PROCESS_KEY", b"of another process")
    assert Sessions(database).user_of(secret, now=2) is None
