"""OAuth 2.0 as Salesforce speaks it: what is sent for a session, and what comes back.

Grants are the fields of a form that is posted to `/services/oauth2/token`. Sources:
Salesforce Help, "OAuth 2.0 JWT Bearer Flow", "Refresh Token Flow" and "Web Server
Flow"; RFC 7636 for PKCE; the sf CLI's help of `org login sfdx-url` for auth URLs.

The signed assertion of a JWT bearer login.

Who one is in an org, and which API versions it has: what is asked right after a login.
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

    from joserfc.jwk import RSAKey

    from evalmeta.model.json_value import JsonObject


TOKEN_PATH: Final = "/services/oauth2/token"  # noqa: S105 - a path
AUTHORIZE_PATH: Final = "/services/oauth2/authorize"
_OK: Final = 200
PRODUCTION_URL: Final = "https://login.salesforce.com"
_SANDBOX: Final = "https://test.salesforce.com"
_AUTH_URL: Final = re.compile(
    r"force://(?:(?P<id>[\w.-]+={0,2}):(?P<secret>[\w.-]*={0,2}):)?(?P<refresh>[\w.-]+={0,2})@(?P<instance>[\w.:/\[\]-]+)",
    re.ASCII,
)
# The client that the sf CLI logs in with; an auth URL without a client means it.
DEFAULT_CLIENT_ID: Final = "PlatformCLI"


@dataclass(frozen=True, slots=True)
class TokenReply:
    """A session as an org gives it out."""

    access_token: str = field(repr=False)
    instance_url: str
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class AuthUrl:
    """What an sfdx auth URL says: a client, its secret if it has one, a refresh token and the org's address."""

    client_id: str
    client_secret: str = field(repr=False)
    refresh_token: str = field(repr=False)
    instance_url: str


def jwt_grant(assertion: str) -> dict[str, str]:
    """Asks for a session with a signed assertion."""
    return {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}


def refresh_grant(client_id: str, refresh_token: str, *, client_secret: str = "") -> dict[str, str]:
    """Asks for a session with a refresh token."""
    form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh_token}
    return _with_secret(form, client_secret)


def code_grant(
    client_id: str, code: str, *, verifier: str, redirect_uri: str, client_secret: str = ""
) -> dict[str, str]:
    """Asks for a session with the code that a browser brought, and the verifier behind its challenge."""
    form = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": redirect_uri,
    }
    return _with_secret(form, client_secret)


def challenge_of(verifier: str) -> str:
    """Gives the S256 challenge of a PKCE verifier (RFC 7636, section 4.2)."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def authorize_url(login_url: str, client_id: str, *, redirect_uri: str, state: str, challenge: str) -> str:
    """Gives the address at which a person logs in with a browser."""
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
    """Gives the code that a browser brought; None when it was not sent by this login.

    Raises:
        LoginFailed: the org sent the browser back with an error.
    """
    fields = {name: values[0] for name, values in parse_qs(query, max_num_fields=20).items()}
    if not hmac.compare_digest(fields.get("state", "").encode(), state.encode()):
        return None
    if "error" in fields:
        raise _refused(fields["error"], fields.get("error_description", ""))
    return fields.get("code") or None


def read_token_reply(status: int, body: bytes, *, url: str) -> TokenReply:
    """Reads the answer to a grant that was sent to `url`.

    Raises:
        LoginFailed: the org refused it; its error and description are in the message.
        MessageUnreadable: it is neither a session nor an error.
    """
    reply = _object(status, body, url)
    if status != _OK:
        if not text(reply, "error"):
            raise _strange(url, status, "it holds no OAuth error")
        raise _refused(text(reply, "error"), text(reply, "error_description"))
    if not (text(reply, "access_token") and text(reply, "instance_url")):
        raise _strange(url, status, "it holds no session")
    return TokenReply(text(reply, "access_token"), org_url(text(reply, "instance_url")), text(reply, "refresh_token"))


def audience_of(login_url: str) -> str:
    """Gives the audience of an assertion: Salesforce's own login host for its orgs, else the address itself."""
    host = host_of(login_url)
    if host == host_of(_SANDBOX) or host.endswith(".sandbox.my.salesforce.com"):
        return _SANDBOX
    return PRODUCTION_URL if host.endswith(".salesforce.com") else login_url


def read_auth_url(line: str) -> AuthUrl:
    """Reads `force://CLIENT:SECRET:REFRESH@INSTANCE`, or the short `force://REFRESH@INSTANCE`.

    Raises:
        UsageError: it is none; nothing of it is repeated.
    """
    found = _AUTH_URL.fullmatch(line.strip())
    if found is None:
        raise UsageError(
            "this is no sfdx auth URL",
            actions=[
                "It has the form force://CLIENT:SECRET:REFRESH@INSTANCE.",
                "Get one from: sf org auth show-sfdx-auth-url",
            ],
        )
    client_id = found["id"] or DEFAULT_CLIENT_ID
    return AuthUrl(client_id, found["secret"] or "", found["refresh"], org_url(found["instance"]))


def write_auth_url(parts: AuthUrl) -> str:
    """Writes an sfdx auth URL as the sf CLI reads it; whoever has it has the org."""
    host = parts.instance_url.partition("://")[2]
    return f"force://{parts.client_id}:{parts.client_secret}:{parts.refresh_token}@{host}"


def _with_secret(form: Mapping[str, str], client_secret: str) -> dict[str, str]:
    return {**form, "client_secret": client_secret} if client_secret else dict(form)


def _object(status: int, body: bytes, url: str) -> JsonObject:
    try:
        return read_object(body)
    except MessageUnreadable as error:
        raise _strange(url, status, str(error)) from None


def _strange(url: str, status: int, reason: str) -> MessageUnreadable:
    return MessageUnreadable(
        f"{url} answered a login with status {status}, and not as an org does: {reason}",
        actions=["Check the address: --instance-url is where people log in to the org."],
    )


def _refused(code: str, description: str) -> LoginFailed:
    return LoginFailed(redacted(f"the org refused the login: {code}{f' ({description})' if description else ''}"))


_EXTRA: Final = "pip install 'evalmeta[oauth]'"


def write_assertion(key: bytes, *, client_id: str, username: str, audience: str, now: float) -> str:
    """Signs with RS256 that the client acts for the user.

    Args:
        key: an RSA private key as PEM.
        client_id: the connected app's consumer key.
        username: as whom to log in.
        audience: for whom the assertion is meant, the login host.
        now: seconds since 1970; the assertion holds for `limits.ASSERTION_SECONDS` from then.

    Raises:
        UsageError: the key is none that can sign, or the extra `oauth` is not installed.
    """
    try:
        from joserfc import jwt  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError("a login with a key needs the extra 'oauth'", actions=[f"Install it: {_EXTRA}"]) from None
    claims = {"iss": client_id, "sub": username, "aud": audience, "exp": int(now + limits.ASSERTION_SECONDS)}
    return jwt.encode({"alg": "RS256"}, claims, _private_key(key), algorithms=["RS256"])


def _private_key(pem: bytes) -> RSAKey:
    from joserfc.errors import JoseError  # noqa: PLC0415 - an extra
    from joserfc.jwk import RSAKey  # noqa: PLC0415 - likewise

    try:
        key = RSAKey.import_key(pem)
    except (JoseError, TypeError, ValueError):
        # The library's text may show what it could not read.
        key = None
    if key is None or not key.is_private:
        raise UsageError(
            "the key file holds no RSA private key that can be used",
            actions=["It is a PEM file without a passphrase, such as `openssl genrsa -out server.key 2048` makes."],
        )
    return key


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
