"""Salesforce's OAuth 2.0: the grants of a login, their replies, and the identity of the user.

A grant is the form that is posted to `/services/oauth2/token`. Sources: Salesforce Help, "OAuth 2.0
JWT Bearer Flow", "Refresh Token Flow" and "Web Server Flow"; RFC 7636 for PKCE; the sf CLI's help of
`org login sfdx-url` for auth URLs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode

import orjson

from evalmeta import limits
from evalmeta.errors import LoginFailed, MessageUnreadable, UsageError
from evalmeta.model.redaction import redacted
from evalmeta.model.registry import ApiVersion, parse_api_version
from evalmeta.protocol.json_fields import host_of, org_url, read_object, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject


GRANT_PATH: Final = "/services/oauth2/token"
AUTHORIZE_PATH: Final = "/services/oauth2/authorize"
_OK: Final = 200
_JWT: Final = re.compile(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+", re.ASCII)
PRODUCTION_URL: Final = "https://login.salesforce.com"
_SANDBOX: Final = "https://test.salesforce.com"
_AUTH_URL: Final = re.compile(
    r"force://(?:(?P<id>[\w.-]+={0,2}):(?P<secret>[\w.-]*={0,2}):)?(?P<refresh>[\w.-]+={0,2})@(?P<instance>[\w.:/\[\]-]+)",
    re.ASCII,
)
# The client of the sf CLI, which auth URLs without a client refer to.
DEFAULT_CLIENT_ID: Final = "PlatformCLI"
_EXTRA: Final = "pip install 'evalmeta[oauth]'"
ENGINE: Final = "evalmeta"
"""The value of `engine` in the API versions of evalmeta's own orgs."""


@dataclass(frozen=True, slots=True)
class TokenReply:
    """A new session."""

    access_token: str = field(repr=False)
    instance_url: str
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class AuthUrl:
    """The parts of an sfdx auth URL: a client, its secret if it has one, a refresh token and the org's address."""

    client_id: str
    client_secret: str = field(repr=False)
    refresh_token: str = field(repr=False)
    instance_url: str


def jwt_grant(assertion: str) -> dict[str, str]:
    """Return the grant for a signed assertion."""
    return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}


def refresh_grant(client_id: str, refresh_token: str, *, client_secret: str = "") -> dict[str, str]:
    """Return the grant for a refresh token."""
    form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh_token}
    return _with_secret(form, client_secret)


def code_grant(
    client_id: str, code: str, *, verifier: str, redirect_uri: str, client_secret: str = ""
) -> dict[str, str]:
    """Return the grant for the code of a browser login, with the verifier of its challenge."""
    form = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": redirect_uri,
    }
    return _with_secret(form, client_secret)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier (RFC 7636, section 4.2)."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def authorize_url(login_url: str, client_id: str, *, redirect_uri: str, state: str, challenge: str) -> str:
    """Return the address to open in the browser."""
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "scope": "refresh_token api web",
        "prompt": "login",
    }
    return f"{login_url}{AUTHORIZE_PATH}?{urlencode(query)}"


def read_callback(query: str, *, state: str) -> str | None:
    """Return the code of a browser login, None if it is of another login; raise LoginFailed for an error."""
    fields = {name: values[0] for name, values in parse_qs(query, max_num_fields=20).items()}
    if not hmac.compare_digest(fields.get("state", "").encode(), state.encode()):
        return None
    if "error" in fields:
        raise _refused(fields["error"], fields.get("error_description", ""))
    return fields.get("code") or None


def read_token_reply(status: int, body: bytes, *, url: str) -> TokenReply:
    """Read the reply to a grant; raise LoginFailed if the org refused it, MessageUnreadable for any other reply."""
    try:
        reply = read_object(body)
    except MessageUnreadable as error:
        raise _not_an_org(url, status, str(error)) from None
    if status != _OK:
        if not text(reply, "error"):
            raise _not_an_org(url, status, "it contains no OAuth error")
        raise _refused(text(reply, "error"), text(reply, "error_description"))
    if not (text(reply, "access_token") and text(reply, "instance_url")):
        raise _not_an_org(url, status, "it contains no session")
    return TokenReply(text(reply, "access_token"), org_url(text(reply, "instance_url")), text(reply, "refresh_token"))


def audience_of(login_url: str) -> str:
    """Return the audience of an assertion: Salesforce's login host for its orgs, else the address itself."""
    host = host_of(login_url)
    if host == host_of(_SANDBOX) or host.endswith(".sandbox.my.salesforce.com"):
        return _SANDBOX
    return PRODUCTION_URL if host.endswith(".salesforce.com") else login_url


def read_auth_url(line: str) -> AuthUrl:
    """Read `force://CLIENT:SECRET:REFRESH@INSTANCE`, or the short form `force://REFRESH@INSTANCE`.

    The message of its UsageError contains no part of the line.
    """
    match = _AUTH_URL.fullmatch(line.strip())
    if match is None:
        raise UsageError(
            "this is not a valid sfdx auth URL",
            actions=[
                "It has the form force://CLIENT:SECRET:REFRESH@INSTANCE.",
                "Get one from: sf org auth show-sfdx-auth-url",
            ],
        )
    client_id = match["id"] or DEFAULT_CLIENT_ID
    return AuthUrl(client_id, match["secret"] or "", match["refresh"], org_url(match["instance"]))


def _with_secret(form: Mapping[str, str], client_secret: str) -> dict[str, str]:
    return {**form, "client_secret": client_secret} if client_secret else dict(form)


def _not_an_org(url: str, status: int, reason: str) -> MessageUnreadable:
    return MessageUnreadable(
        f"{url} answered a login with status {status}, but the reply is not from an org: {reason}",
        actions=["Check --instance-url: it must be the address of the org's login page."],
    )


def _refused(code: str, description: str) -> LoginFailed:
    return LoginFailed(redacted(f"the org refused the login: {code}{f' ({description})' if description else ''}"))


def write_assertion(key: bytes, *, client_id: str, username: str, audience: str, now: float) -> str:
    """Return a JWT bearer assertion, signed with RS256 and valid for `limits.ASSERTION_SECONDS` from `now`.

    The key is an RSA private key in PEM format, the audience is the login host. Raise UsageError if the key cannot
    sign, or if the extra `oauth` is not installed.
    """
    try:
        from joserfc import errors, jwk, jwt
    except ImportError:
        raise UsageError("a login with a key requires the extra 'oauth'", actions=[f"Install it: {_EXTRA}"]) from None
    try:
        private_key = jwk.RSAKey.import_key(key)
    except (errors.JoseError, TypeError, ValueError):
        # The library's error may quote the key.
        private_key = None
    if private_key is None or not private_key.is_private:
        raise UsageError(
            "the key file contains no usable RSA private key",
            actions=["Create a PEM file without a passphrase: openssl genrsa -out server.key 2048"],
        )
    claims = {"iss": client_id, "sub": username, "aud": audience, "exp": int(now + limits.ASSERTION_SECONDS)}
    return jwt.encode({"alg": "RS256"}, claims, private_key, algorithms=["RS256"])


def write_named_user_token(token: str, *, user_id: str, issuer: str, now: float) -> str:
    """Return an access token of our own org in the form of a JWT (RFC 7519), which some clients insist on.

    Its last part is the token itself, which `read_named_user_token` returns; there is no signature.
    """
    head = {"typ": "JWT", "alg": "none"}
    scope = "api chatbot_api sfap_api web"
    body = {"sub": user_id, "iss": issuer, "iat": int(now), "exp": int(now) + limits.NAMED_USER_SECONDS}
    parts = (orjson.dumps(head), orjson.dumps({**body, "sfdc_app_id": ENGINE, "scope": scope}), token.encode())
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def read_named_user_token(text: str) -> str:
    """Return the access token in a token of `write_named_user_token`; any other text is returned unchanged."""
    _, _, last = text.rpartition(".")
    if not _JWT.fullmatch(text):
        return text
    try:
        return base64.urlsafe_b64decode(last + "=" * (-len(last) % 4)).decode()
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The user of a session; `username` is empty if the org does not return it here."""

    user_id: str
    org_id: str
    username: str


def read_user_info(body: bytes) -> UserInfo:
    """Read the reply of `/services/oauth2/userinfo`; raise MessageUnreadable if it is not valid."""
    reply = read_object(body)
    user_id, org_id = text(reply, "user_id"), text(reply, "organization_id")
    if not (user_id and org_id):
        raise MessageUnreadable("it has no user or no organization")
    return UserInfo(user_id, org_id, text(reply, "preferred_username"))


def read_newest_version(body: bytes) -> ApiVersion:
    """Return the newest API version in the reply of `/services/data`; raise MessageUnreadable without one."""
    versions = [version for row in _rows(body) if (version := parse_api_version(text(row, "version")))]
    if not versions:
        raise MessageUnreadable("it lists no API versions")
    return max(versions)


def is_evalmeta(body: bytes) -> bool:
    """Return whether the reply of `/services/data` is from one of evalmeta's own orgs."""
    return any(text(row, "engine") == ENGINE for row in _rows(body))


def _rows(body: bytes) -> list[JsonObject]:
    try:
        rows = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise MessageUnreadable("it is not valid JSON") from None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
