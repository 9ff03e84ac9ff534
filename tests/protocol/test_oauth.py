from __future__ import annotations

from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import LoginFailed, OrgError, UsageError
from evalmeta.protocol.oauth import (
    AuthUrl,
    TokenReply,
    audience_of,
    authorize_url,
    challenge_of,
    code_grant,
    jwt_grant,
    read_auth_url,
    read_callback,
    read_token_reply,
    refresh_grant,
)

URL = "https://desk.example"
TOKENS = st.from_regex(r"[A-Za-z0-9._-]{1,40}={0,2}", fullmatch=True)
HOSTS = st.from_regex(r"[a-z][a-z0-9-]{0,20}\.my\.salesforce\.com", fullmatch=True)


@given(st.builds(AuthUrl, TOKENS, TOKENS | st.just(""), TOKENS, HOSTS.map("https://{}".format)))
def test_an_auth_url_is_read_as_it_was_written(parts: AuthUrl) -> None:
    host = parts.instance_url.partition("://")[2]
    written = f"force://{parts.client_id}:{parts.client_secret}:{parts.refresh_token}@{host}"
    assert read_auth_url(written) == parts


def test_an_auth_url_without_a_client_means_the_one_of_sf() -> None:
    parts = read_auth_url("force://5Aep861_token@desk.my.salesforce.com\n")
    assert (parts.client_id, parts.client_secret, parts.refresh_token) == ("PlatformCLI", "", "5Aep861_token")
    assert parts.instance_url == "https://desk.my.salesforce.com"


def test_an_auth_url_of_this_machine_is_http() -> None:
    assert read_auth_url("force://id::token@127.0.0.1:8160").instance_url == "http://127.0.0.1:8160"


@pytest.mark.parametrize(
    "line", ["", "force://", "https://a:b:canary@desk", "force://a:b:canary", "force://a:canary@b"]
)
def test_an_invalid_auth_url_is_refused_and_not_shown(line: str) -> None:
    with pytest.raises(UsageError, match="this is not a valid sfdx auth URL") as raised:
        read_auth_url(line)
    assert "canary" not in "".join((str(raised.value), *raised.value.actions))


def test_no_secret_is_in_a_repr() -> None:
    assert "canary" not in repr(AuthUrl("id", "canary", "canary", URL))
    assert "canary" not in repr(TokenReply("canary", URL, "canary"))


def test_a_challenge_matches_the_example_in_the_standard() -> None:
    # RFC 7636, appendix B.
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_a_browser_is_sent_the_challenge_and_never_the_verifier() -> None:
    url = authorize_url(URL, "id", redirect_uri="http://localhost:1717/x", state="s", challenge="c")
    query = parse_qs(urlsplit(url).query)
    assert (query["code_challenge"], query["code_challenge_method"], query["state"]) == (["c"], ["S256"], ["s"])
    assert query["redirect_uri"] == ["http://localhost:1717/x"]


def test_a_client_secret_is_sent_only_if_there_is_one() -> None:
    assert "client_secret" not in refresh_grant("id", "token")
    assert "client_secret" in refresh_grant("id", "token", client_secret="s")  # noqa: S106 - of no app
    assert "client_secret" not in code_grant("id", "code", verifier="v", redirect_uri="r")
    assert jwt_grant("signed")["assertion"] == "signed"


def test_a_callback_of_another_login_has_no_code() -> None:
    assert read_callback("code=c&state=s", state="s") == "c"
    assert read_callback("code=c&state=other", state="s") is None
    assert read_callback("error=access_denied", state="s") is None
    assert read_callback("state=s", state="s") is None


def test_a_callback_with_an_error_says_it() -> None:
    with pytest.raises(LoginFailed, match=r"refused the login: access_denied \(end-user denied\)"):
        read_callback("error=access_denied&error_description=end-user+denied&state=s", state="s")


def test_a_session_is_read() -> None:
    body = orjson.dumps({"access_token": "a", "instance_url": URL + "/", "id": "x"})
    assert read_token_reply(200, body, url=URL) == TokenReply("a", URL)


def test_a_refusal_says_what_the_org_says() -> None:
    body = orjson.dumps({"error": "invalid_grant", "error_description": "expired access/refresh token"})
    with pytest.raises(LoginFailed, match=r"invalid_grant \(expired access/refresh token\)"):
        read_token_reply(400, body, url=URL)


def test_a_session_at_an_unencrypted_address_is_refused() -> None:
    body = orjson.dumps({"access_token": "canary", "instance_url": "http://desk.example"})
    with pytest.raises(UsageError, match="is not allowed") as raised:
        read_token_reply(200, body, url=URL)
    assert "canary" not in str(raised.value)


@given(st.integers(200, 599), st.binary() | st.dictionaries(st.text(), st.text()).map(orjson.dumps))
def test_any_other_answer_is_an_error_of_the_org(status: int, body: bytes) -> None:
    with suppress(OrgError):
        read_token_reply(status, body, url=URL)


@pytest.mark.parametrize(
    ("url", "audience"),
    [
        ("https://login.salesforce.com", "https://login.salesforce.com"),
        ("https://desk.my.salesforce.com", "https://login.salesforce.com"),
        ("https://test.salesforce.com", "https://test.salesforce.com"),
        ("https://desk--qa.sandbox.my.salesforce.com", "https://test.salesforce.com"),
        ("http://127.0.0.1:8160", "http://127.0.0.1:8160"),
        ("https://salesforce.com.example", "https://salesforce.com.example"),
    ],
)
def test_an_assertion_is_for_salesforces_login_host_or_the_orgs_own(url: str, audience: str) -> None:
    assert audience_of(url) == audience
