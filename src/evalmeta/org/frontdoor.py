"""Addresses with which a browser takes over the session of a client once, as Salesforce's frontdoor.jsp does."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict

from evalmeta import limits


class Frontdoor:
    """The codes in such addresses; each stands for the client's token, so that the token's end is that of the session.

    Codes are kept in memory: they end with the server, and are no tokens of its API.
    """

    __slots__ = ("_codes",)

    def __init__(self) -> None:
        self._codes: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def issue(self, token: str) -> str:
        """Return a code that is valid for `limits.FRONTDOOR_SECONDS`."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = token, time.monotonic() + limits.FRONTDOOR_SECONDS
        while len(self._codes) > limits.MAX_VIEW_SESSIONS:
            self._codes.popitem(last=False)
        return code

    def redeem(self, code: str) -> str | None:
        """Return the token of a code, which is not valid any more then; None if it was not valid."""
        token, expires = self._codes.pop(code, ("", 0.0))
        return token if time.monotonic() < expires else None
