"""Sessions of browsers with the viewer: their users, what ends them, and what is stored of their secrets."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import UsageError
from evalmeta.model.login import User
from evalmeta.package.trust import signature

if TYPE_CHECKING:
    from evalmeta.store.database import Database


_SECRET_BYTES: Final = 32
# Signs sessions where the user's key cannot be kept; they then end with the process.
_PROCESS_KEY: Final = secrets.token_bytes(_SECRET_BYTES)
# An end that is too late is from before the clock was set back, or not from here.
_VALID: Final = """
    FROM view_session JOIN org_user ON org_user.id = view_session.user_id
    LEFT JOIN access_token ON access_token.id = token_id
    WHERE view_session.expires_at > ?1 AND view_session.expires_at <= ?1 + ?2
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
            DELETE FROM view_session WHERE rowid IN (
              SELECT rowid FROM view_session WHERE user_id = ? ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET ?)
        """
        with self._database.transaction():
            self._database.execute("DELETE FROM view_session WHERE expires_at <= ?", (now,))
            self._database.execute("INSERT INTO view_session VALUES (?, ?, ?, ?, ?)", row)
            self._database.execute(beyond, (holder.user_id, limits.MAX_USER_SESSIONS))
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
            signed = signature(self._database.path.parent, b"view session", sha256, create=create)
        return signed or hmac.digest(_PROCESS_KEY, sha256, "sha256")
