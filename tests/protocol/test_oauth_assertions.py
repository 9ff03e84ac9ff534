from __future__ import annotations

import sys

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from client.oauth_server import key_pair
from evalmeta.errors import UsageError
from evalmeta.protocol.oauth import write_assertion


def signed(key: bytes) -> str:
    return write_assertion(key, client_id="id", username="me@example.com", audience="https://login", now=1_000.5)


def test_an_assertion_is_signed_and_holds_for_three_minutes() -> None:
    token = jwt.decode(signed(key_pair().as_pem(private=True)), key_pair(), algorithms=["RS256"])
    assert token.header["alg"] == "RS256"
    assert token.claims == {"iss": "id", "sub": "me@example.com", "aud": "https://login", "exp": 1_180}


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"canary",
        b"-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n",
        key_pair().as_pem(private=False),
        key_pair().as_pem(private=True, password="canary"),  # noqa: S106 - of no key
        ECKey.generate_key("P-256").as_pem(private=True),
    ],
)
def test_a_key_that_cannot_sign_is_refused_and_not_shown(key: bytes) -> None:
    with pytest.raises(UsageError, match="no usable RSA private key") as raised:
        signed(key)
    assert "canary" not in str(raised.value)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(UsageError, match="requires the extra 'oauth'") as raised:
        signed(b"")
    assert raised.value.actions == ("Install it: pip install 'evalmeta[oauth]'",)
