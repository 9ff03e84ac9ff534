"""What other programs ask for after a login: resources and limits of the org, and addresses and tokens to pass on."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from evalmeta.org.handlers.login import identity_url
from evalmeta.org.handlers.rest import authenticated, fault_reply, json_reply, token_of
from evalmeta.protocol.oauth import read_named_user_token, write_named_user_token

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalmeta.model.login import User
    from evalmeta.org.handlers.login import Frontdoor
    from evalmeta.org.organization import Organization


@authenticated()
async def get_resources(request: Request, _: Organization, user: User) -> Response:
    """List the resources of an API version."""
    root = f"/services/data/v{request.path_params['version']}"
    names = ("tooling", "metadata", "query", "queryAll", "sobjects", "limits")
    return json_reply({**{name: f"{root}/{name}" for name in names}, "identity": identity_url(request, user)})


@authenticated()
async def get_limits(_: Request, __: Organization, ___: User) -> Response:
    """List the daily limits of the org, which has none."""
    return json_reply({})


async def get_named_user(request: Request) -> Response:
    """Return an access token for the user of a session, in the form of a JWT, as @salesforce/agents requests it."""
    org: Organization = request.app.state.org
    token = request.cookies.get("sid", "")
    user = org.user_of(token)
    if user is None:
        return fault_reply("", "INVALID_SESSION_ID", "Session expired or invalid", status=HTTPStatus.UNAUTHORIZED)
    issued = write_named_user_token(token, user_id=user.id, issuer=str(request.base_url), now=time.time())
    return json_reply({"access_token": issued})


@authenticated()
async def get_frontdoor(request: Request, _: Organization, __: User) -> Response:
    """Return an address that logs a browser in once, to the pages of the org (OAuth 2.0 UI Bridge API)."""
    frontdoor: Frontdoor = request.app.state.frontdoor
    query = {"otp": frontdoor.issue(read_named_user_token(token_of(request)))}
    if target := request.query_params.get("redirect_uri", ""):
        query["startURL"] = target
    return json_reply({"frontdoor_uri": f"{request.base_url}secur/frontdoor.jsp?{urlencode(query)}"})
