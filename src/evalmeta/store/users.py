"""The users of an org, the hashes of their tokens and sessions, and the agents that they activated or deactivated."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import StoreError, UsageError
from evalmeta.model.login import User
from evalmeta.package.trust import signature
from evalmeta.store.database import Database, next_ids
from evalmeta.store.sql import upsert

if TYPE_CHECKING:
    from evalmeta.store.sql import Row

_USER_PREFIX: Final = "005"
_PUBLIC_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
# The last use of a token is written at most once an hour, so that most requests only read.
_USE_SECONDS: Final = 3600.0
_SELECT_USER: Final = "SELECT id, name, username, is_admin FROM org_user"
_NO_HASH: Final = bytes(hashlib.sha256().digest_size)


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token without its secret; times are seconds since the epoch."""

    id: str  # the public part, by which the token is listed and revoked
    username: str
    created: float
    expires: float
    used: float | None = None  # accurate to the hour
    revoked: float | None = None
    is_void: bool = False  # created for another folder or by another user


@dataclass(frozen=True, slots=True)
class _KnownToken:
    """A token whose secret was given."""

    id: str
    used: float | None
    user: User
    is_void: bool


class Users:
    """The users of an org and their tokens."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, user_id: str) -> User | None:
        """Return the user with a record id of 15 or 18 characters; None if there is none."""
        return self._find("substr(id, 1, 15) = substr(?1, 1, 15) AND length(?1) IN (15, 18)", user_id)

    def find_by_name(self, username: str) -> User | None:
        """Return the user with a username, ignoring case; None if there is none."""
        return self._find("username = ? COLLATE NOCASE", username)

    def all_users(self) -> list[User]:
        """List the users in the order of their creation."""
        rows = self._database.query(f"{_SELECT_USER} ORDER BY id")
        return [_user(row) for row in rows]

    def add(self, username: str, name: str, *, now: float) -> User:
        """Create a user without admin rights; call it inside a transaction."""
        [user_id] = next_ids(self._database, _USER_PREFIX)
        self._database.execute("INSERT INTO org_user VALUES (?, ?, ?, ?, ?)", (user_id, username, name, False, now))
        return User(user_id, name, username)

    def add_token(self, user: User, *, org_id: str, now: float, expires: float) -> str:
        """Create a token for a user, which begins with the org's id, and return it; only its hash is stored."""
        token_id = secrets.token_hex(_PUBLIC_ID_BYTES)
        token = f"{org_id}!{token_id}.{new_secret()}"
        signed = self._signature(token_id, user.id, _sha256(token), create=True)
        sql = """
            INSERT INTO access_token (id, user_id, sha256, created_at, expires_at, signature) VALUES (?, ?, ?, ?, ?, ?)
        """
        self._database.execute(sql, (token_id, user.id, _sha256(token), now, expires, signed))
        return token

    def user_of(self, token: str, *, now: float) -> User | None:
        """Return the user of a token; None if the token is unknown, expired, revoked or void."""
        known = self._known(token, now=now)
        if known is None or known.is_void:
            return None
        if known.used is None or now - known.used > _USE_SECONDS:
            self._record_use(known.id, now)
        return known.user

    def is_void(self, token: str, *, now: float) -> bool:
        """Return whether a token would be valid if it had been created for this folder and by this user."""
        known = self._known(token, now=now)
        return known is not None and known.is_void

    def _known(self, token: str, *, now: float) -> _KnownToken | None:
        """Return a token that is neither expired nor revoked.

        The token is looked up by its public part, and the hashes are compared in constant time.
        """
        sql = """
            SELECT access_token.id, sha256, used_at, expires_at > ? AND revoked_at IS NULL, signature,
                   org_user.id, name, username, is_admin
            FROM access_token JOIN org_user ON org_user.id = user_id WHERE access_token.id = ?
        """
        rows = self._database.query(sql, (now, public_id(token)))
        token_id, sha256, used, is_valid, signed, *user = rows[0] if rows else ("", _NO_HASH, None, False, None)
        if not secrets.compare_digest(sha256, _sha256(token)) or not is_valid:
            return None
        is_void = not self._is_signed(signed, token_id, user[0], sha256)
        return _KnownToken(token_id, used, _user(tuple(user)), is_void=is_void)

    def _is_signed(self, signed: bytes | None, token_id: str, user_id: str, sha256: bytes) -> bool:
        try:
            ours = self._signature(token_id, user_id, sha256)
        except UsageError:
            return False
        return ours is not None and signed is not None and secrets.compare_digest(ours, signed)

    def _signature(self, token_id: str, user_id: str, sha256: bytes, *, create: bool = False) -> bytes | None:
        parts = (b"access token", token_id.encode(), user_id.encode(), sha256)
        return _signature(self._database, *parts, create=create)

    def list_tokens(self) -> list[StoredToken]:
        """List all tokens, the newest first."""
        sql = """
            SELECT access_token.id, username, access_token.created_at, expires_at, used_at, revoked_at,
                   signature, user_id, sha256
            FROM access_token JOIN org_user ON org_user.id = user_id
            ORDER BY access_token.created_at DESC, access_token.id
        """
        return [
            replace(StoredToken(token_id, *about), is_void=not self._is_signed(signed, token_id, user_id, sha256))
            for token_id, *about, signed, user_id, sha256 in self._database.query(sql)
        ]

    def revoke(self, token_id: str, *, now: float) -> bool:
        """Revoke the token with this public part; False if there is none."""
        sql = "UPDATE access_token SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?"
        return self._database.execute(sql, (now, token_id)) == 1

    def _find(self, condition: str, value: str) -> User | None:
        rows = self._database.query(f"{_SELECT_USER} WHERE {condition}", (value,))
        return _user(rows[0]) if rows else None

    def _record_use(self, token_id: str, now: float) -> None:
        # Do not wait for a locked database: the next use is recorded as well.
        with suppress(StoreError), self._database.waiting(0):
            self._database.execute("UPDATE access_token SET used_at = ? WHERE id = ?", (now, token_id))


def new_secret() -> str:
    """Return 256 random bits in characters that the sf CLI accepts in a token."""
    return secrets.token_urlsafe(_SECRET_BYTES).replace("-", ".")


def public_id(token: str) -> str:
    """Return the public part of a token, by which it is found, listed and revoked."""
    return token.partition("!")[2].partition(".")[0]


def _signature(database: Database, *parts: bytes, create: bool = False) -> bytes | None:
    """Return the signature of what is stored of a token or a session.

    In a shared store it is no secret: all machines of a team accept its tokens, and the server's roles decide who may
    write one.
    """
    if database.store.url is None:
        return signature(database.folder, *parts, create=create)
    return hashlib.sha256(b"\0".join((b"shared", *parts))).digest()


def _sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _user(row: Row) -> User:
    user_id, name, username, is_admin = row
    return User(user_id, name, username, is_admin=bool(is_admin))


@dataclass(frozen=True, slots=True)
class AgentState:
    """Whether an agent is active, since when (seconds since the epoch), and the id of the user who changed it."""

    is_active: bool
    modified: float
    modified_by: str


class Agents:
    """The agents whose state was changed; names ignore case."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def states(self) -> dict[str, AgentState]:
        """Return the states by the agents' names in lower case."""
        rows = self._database.query("SELECT name, is_active, modified_at, modified_by FROM agent")
        return {name.casefold(): AgentState(bool(active), modified, by) for name, active, modified, by in rows}

    def save(self, name: str, state: AgentState) -> None:
        """Save the state of an agent."""
        sql = upsert("agent", "name COLLATE NOCASE", "name, is_active, modified_at, modified_by")
        self._database.execute(sql, (name, state.is_active, state.modified, state.modified_by))


# Signs sessions where the user's key cannot be kept; they then end with the process.
_PROCESS_KEY: Final = secrets.token_bytes(_SECRET_BYTES)
# An end that is more than a day too late is from before the clock was set back, or not from here.
_VALID: Final = """
    FROM view_session JOIN org_user ON org_user.id = view_session.user_id
    LEFT JOIN access_token ON access_token.id = token_id
    WHERE view_session.expires_at > ?1 AND view_session.expires_at <= ?1 + ?2 + 86400
      AND (token_id IS NULL OR access_token.expires_at > ?1 AND revoked_at IS NULL)
"""


class Holder(NamedTuple):
    """The user of a session, and the public id of the access token that opened it; None if a code of the viewer did."""

    user_id: str
    token_id: str | None = None


class Sessions:
    """The sessions of all users; they outlive the server."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, holder: Holder, *, now: float) -> str:
        """Start a session and return its secret; beyond `limits.MAX_USER_SESSIONS`, the user's oldest session ends."""
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        row = (self.hash_of(secret, create=True), *holder, now, now + limits.VIEW_SESSION_SECONDS)
        beyond = """
            DELETE FROM view_session WHERE signature IN (
              SELECT signature FROM view_session WHERE user_id = ? AND signature <> ?
              ORDER BY created_at DESC, signature LIMIT 1000000 OFFSET ?)
        """
        with self._database.transaction():
            self._database.execute("DELETE FROM view_session WHERE expires_at <= ?", (now,))
            self._database.execute("INSERT INTO view_session VALUES (?, ?, ?, ?, ?)", row)
            self._database.execute(beyond, (holder.user_id, row[0], limits.MAX_USER_SESSIONS - 1))
        return secret

    def user_of(self, secret: str, *, now: float) -> User | None:
        """Return the user of a session; None if it is unknown or has ended, or the token that opened it has."""
        sql = f"SELECT org_user.id, name, username, is_admin {_VALID} AND view_session.signature = ?3"
        rows = self._database.query(sql, (now, limits.VIEW_SESSION_SECONDS, self.hash_of(secret)))
        return next((User(user_id, name, login, bool(is_admin)) for user_id, name, login, is_admin in rows), None)

    def valid(self, *, now: float) -> frozenset[bytes]:
        """Return the hashes of the sessions that have not ended."""
        rows = self._database.query(f"SELECT view_session.signature {_VALID}", (now, limits.VIEW_SESSION_SECONDS))
        return frozenset(signed for (signed,) in rows)

    def end(self, secret: str) -> None:
        """End a session."""
        self._database.execute("DELETE FROM view_session WHERE signature = ?", (self.hash_of(secret),))

    def hash_of(self, secret: str, *, create: bool = False) -> bytes:
        """Return what is stored of a secret: only this user can make it, and only for this folder."""
        sha256 = hashlib.sha256(secret.encode()).digest()
        signed = None
        with suppress(UsageError):
            signed = _signature(self._database, b"view session", sha256, create=create)
        return signed or hmac.digest(_PROCESS_KEY, sha256, "sha256")
