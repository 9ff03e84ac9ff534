"""Who one is in an org, and which API versions it has: what is asked right after a login."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.errors import MessageUnreadable
from evalmeta.model.registry import ApiVersion, parse_api_version
from evalmeta.wire.jsonfields import read_object, text

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonObject

__all__ = ["ENGINE", "UserInfo", "is_evalmeta", "read_newest_version", "read_user_info"]

ENGINE: Final = "evalmeta"
"""What evalmeta's own orgs say under `engine` beside each of their API versions."""


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The user of a session; `username` is empty when the org does not tell it here."""

    user_id: str
    org_id: str
    username: str


def read_user_info(body: bytes) -> UserInfo:
    """Reads the answer of `/services/oauth2/userinfo`.

    Raises:
        MessageUnreadable: it is none.
    """
    reply = read_object(body)
    user_id, org_id = text(reply, "user_id"), text(reply, "organization_id")
    if not (user_id and org_id):
        raise MessageUnreadable("it names no user and no organization")
    return UserInfo(user_id, org_id, text(reply, "preferred_username"))


def read_newest_version(body: bytes) -> ApiVersion:
    """Reads the newest API version from the answer of `/services/data`.

    Raises:
        MessageUnreadable: it lists none.
    """
    versions = [version for row in _rows(body) if (version := parse_api_version(text(row, "version")))]
    if not versions:
        raise MessageUnreadable("it lists no API versions")
    return max(versions)


def is_evalmeta(body: bytes) -> bool:
    """Tells by the answer of `/services/data` whether an org is one of evalmeta's own.

    Raises:
        MessageUnreadable: it is no JSON.
    """
    return any(text(row, "engine") == ENGINE for row in _rows(body))


def _rows(body: bytes) -> list[JsonObject]:
    try:
        rows = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise MessageUnreadable("it is no JSON") from None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
