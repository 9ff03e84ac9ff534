"""Codes that log a browser in once, for a short time, so that no token is in an address or on a command line."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.store.users import Holder


# People may have to type a code: no letter looks like a digit. 20 characters have 98 random bits.
_ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUPS: Final = 4
_GROUP_CHARS: Final = 5


@dataclass(frozen=True, slots=True)
class _Issued:
    holder: Holder
    expires: float  # on the monotonic clock
    is_private: bool
    on_use: Callable[[], None]


class LoginCodes:
    """The codes that have not been used. They end with the server, and the API does not accept them as tokens."""

    __slots__ = ("_issued", "_lock")

    def __init__(self) -> None:
        self._issued: dict[bytes, _Issued] = {}
        self._lock = threading.Lock()

    def issue(
        self, holder: Holder, *, seconds: float, is_private: bool = False, on_use: Callable[[], None] = lambda: None
    ) -> str:
        """Return a code; beyond `limits.MAX_USER_CODES`, the user's oldest one is not valid any more.

        A private code is known only to the user who started the server. `on_use` is called when the code is used.
        """
        code = "-".join("".join(secrets.choice(_ALPHABET) for _ in range(_GROUP_CHARS)) for _ in range(_GROUPS))
        with self._lock:
            now = time.monotonic()
            self._issued = {key: issued for key, issued in self._issued.items() if issued.expires > now}
            self._issued[_key(code)] = _Issued(holder, now + seconds, is_private, on_use)
            of_user = [key for key, issued in self._issued.items() if issued.holder.user_id == holder.user_id]
            for key in of_user[: -limits.MAX_USER_CODES]:
                del self._issued[key]
        return code

    def holder_of(self, code: str) -> Holder | None:
        """Return who holds a code, without using it; None if it is not valid."""
        issued = self._issued.get(_key(code))
        return issued.holder if issued and time.monotonic() < issued.expires else None

    def is_private(self, code: str) -> bool:
        """Return whether a code is private; any other one could have been sent to the browser by its holder."""
        issued = self._issued.get(_key(code))
        return issued is not None and issued.is_private

    def redeem(self, code: str) -> Holder | None:
        """Return who holds a code, which is not valid any more then; None if it was not valid."""
        with self._lock:
            issued = self._issued.pop(_key(code), None)
        if issued is None or issued.expires <= time.monotonic():
            return None
        issued.on_use()
        return issued.holder


def _key(code: str) -> bytes:
    """Return what a code is found by: no comparison of its characters takes a time that depends on them."""
    return hashlib.sha256("".join(code.split()).replace("-", "").upper().encode()).digest()
