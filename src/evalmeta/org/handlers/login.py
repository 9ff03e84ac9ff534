"""Requests of a login: the caller's identity, the API versions, and addresses and tokens for other programs."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, ApiVersion
from evalmeta.org.handlers.rest import authenticated, json_reply, no_resource
from evalmeta.org.organization import ORG_ID
from evalmeta.protocol.oauth import ENGINE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization


_SEASONS: Final = ("Spring", "Summer", "Winter")


class Frontdoor:
    """The codes with which a browser takes over a client's session once, as with Salesforce's frontdoor.jsp.

    A code stands for the client's token, so that the session ends with the token. Codes are kept in memory: they end
    with the server, and the API does not accept them as tokens.
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


async def get_versions(_: Request) -> Response:
    """List the API versions, without authentication."""
    versions = [ApiVersion(major) for major in range(OLDEST_API_VERSION.major, NEWEST_API_VERSION.major + 1)]
    return json_reply(
        [
            {"label": _label(version), "url": f"/services/data/v{version}", "version": str(version), "engine": ENGINE}
            for version in versions
        ]
    )


@authenticated()
async def get_identity(request: Request, _: Organization, user: User) -> Response:
    """Return the caller's identity, with the keys of OpenID Connect's userinfo and of Salesforce's identity."""
    if request.path_params.get("user_id", user.id) != user.id:
        raise no_resource()
    return json_reply(
        {
            "id": identity_url(request, user),
            "sub": identity_url(request, user),
            "asserted_user": True,
            "user_id": user.id,
            "organization_id": ORG_ID,
            "username": user.username,
            "preferred_username": user.username,
            "display_name": user.name,
            "name": user.name,
            "email": user.username,
            "user_type": "STANDARD",
            "active": True,
        }
    )


def _label(version: ApiVersion) -> str:
    """Return the name of a release: there are three a year, and 63.0 is Spring '25."""
    past = version.major - OLDEST_API_VERSION.major
    return f"{_SEASONS[past % 3]} '{25 + (past + 1) // 3}"


def identity_url(request: Request, user: User) -> str:
    """Return the address of a user's identity."""
    return f"{request.base_url}id/{ORG_ID}/{user.id}"
