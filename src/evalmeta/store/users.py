"""Users of an org, and the tokens they call with, of which only hashes are kept."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.errors import StoreError
from evalmeta.model.login import User
from evalmeta.store.database import next_ids

if TYPE_CHECKING:
    from evalmeta.store.database import Database, Row


_USER_PREFIX: Final = "005"
_PUBLIC_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
# The use of a token is noted once an hour, so that reading does not become writing.
_USE_SECONDS: Final = 3600.0
_NOBODYS: Final = bytes(hashlib.sha256().digest_size)


@dataclass(frozen=True, slots=True)
class StoredToken:
    """What is known of a token; times are seconds since the epoch.

    Attributes:
        id: its public part, by which it is listed and revoked.
        used: when it was used last, to the hour; None before the first time.
    """

    id: str
    username: str
    created: float
    expires: float
    used: float | None = None
    revoked: float | None = None


class Users:
    """Finds and makes users, and hands out, checks and revokes their tokens."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, user_id: str) -> User | None:
        """Gives the user with a record id of 15 or 18 characters."""
        return self._find("substr(id, 1, 15) = substr(?1, 1, 15) AND length(?1) IN (15, 18)", user_id)

    def named(self, username: str) -> User | None:
        """Gives the user with a username, in any case."""
        return self._find("username = ?", username)

    def everybody(self) -> list[User]:
        """Lists the users in the order in which they were made."""
        rows = self._database.query("SELECT id, name, username, is_admin FROM org_user ORDER BY id")
        return [_user(row) for row in rows]

    def add(self, username: str, name: str, *, now: float) -> User:
        """Makes a user, who is no admin; call it inside a transaction."""
        [user_id] = next_ids(self._database, _USER_PREFIX)
        self._database.execute("INSERT INTO org_user VALUES (?, ?, ?, 0, ?)", (user_id, username, name, now))
        return User(user_id, name, username)

    def add_token(self, user: User, *, org_id: str, now: float, expires: float) -> str:
        """Makes a token for a user and gives it; nothing can give it again.

        Args:
            user: whom it stands for.
            org_id: what it begins with, 15 characters.
            now: when it is made.
            expires: when it ends.
        """
        public_id = secrets.token_hex(_PUBLIC_ID_BYTES)
        token = f"{org_id}!{public_id}.{new_secret()}"
        sql = "INSERT INTO access_token (id, user_id, sha256, created_at, expires_at) VALUES (?, ?, ?, ?, ?)"
        self._database.execute(sql, (public_id, user.id, _sha256(token), now, expires))
        return token

    def user_of(self, token: str, *, now: float) -> User | None:
        """Gives the user whom a token stands for; None when it is nobody's, has expired or was revoked.

        It is looked up by its public part, and the hash is compared in constant time.
        """
        sql = """
            SELECT access_token.id, sha256, used_at, expires_at > ? AND revoked_at IS NULL,
                   org_user.id, name, username, is_admin
            FROM access_token JOIN org_user ON org_user.id = user_id WHERE access_token.id = ?
        """
        rows = self._database.query(sql, (now, _public_id(token)))
        token_id, sha256, used, is_valid, *user = rows[0] if rows else ("", _NOBODYS, None, False)
        if not secrets.compare_digest(sha256, _sha256(token)) or not is_valid:
            return None
        if used is None or now - used > _USE_SECONDS:
            self._note_use(token_id, now)
        return _user(tuple(user))

    def list_tokens(self) -> list[StoredToken]:
        """Lists all tokens, the newest first."""
        sql = """
            SELECT access_token.id, username, access_token.created_at, expires_at, used_at, revoked_at
            FROM access_token JOIN org_user ON org_user.id = user_id
            ORDER BY access_token.created_at DESC, access_token.id
        """
        return [StoredToken(*row) for row in self._database.query(sql)]

    def revoke(self, token_id: str, *, now: float) -> bool:
        """Ends a token; False when there is none with this public part."""
        sql = "UPDATE access_token SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?"
        return self._database.execute(sql, (now, token_id)) == 1

    def _find(self, condition: str, value: str) -> User | None:
        sql = f"SELECT id, name, username, is_admin FROM org_user WHERE {condition}"  # noqa: S608 - a constant
        rows = self._database.query(sql, (value,))
        return _user(rows[0]) if rows else None

    def _note_use(self, token_id: str, now: float) -> None:
        # Whoever holds the database does not keep callers out, nor waiting: the next use is noted as well.
        [(patience,)] = self._database.query("PRAGMA busy_timeout")
        self._database.execute("PRAGMA busy_timeout = 0")
        try:
            with suppress(StoreError):
                self._database.execute("UPDATE access_token SET used_at = ? WHERE id = ?", (now, token_id))
        finally:
            self._database.execute(f"PRAGMA busy_timeout = {patience}")


def new_secret() -> str:
    """Makes 256 random bits of the characters that the sf CLI takes in a token."""
    return secrets.token_urlsafe(_SECRET_BYTES).replace("-", ".")


def _public_id(token: str) -> str:
    return token.partition("!")[2].partition(".")[0]


def _sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _user(row: Row) -> User:
    user_id, name, username, is_admin = row
    return User(user_id, name, username, is_admin=bool(is_admin))
