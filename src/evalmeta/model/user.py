"""Users of an org: as whom calls are made, and whose jobs are whose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ADMIN", "User"]


@dataclass(frozen=True, slots=True)
class User:
    """A user.

    Attributes:
        id: the record id, 18 characters beginning with 005.
        name: what people are shown.
        username: what the user logs in as, in the form of a mail address.
        is_admin: may ask about everybody's jobs.
    """

    id: str
    name: str
    username: str
    is_admin: bool = False


ADMIN: Final = User("005000000000001AAA", "Local Admin", "admin@evalmeta.local", is_admin=True)
