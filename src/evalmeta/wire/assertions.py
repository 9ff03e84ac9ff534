"""The signed assertion of a JWT bearer login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from joserfc.jwk import RSAKey

__all__ = ["write_assertion"]

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
