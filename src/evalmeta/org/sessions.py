"""Sessions with other orgs, for subjects that live in one: from the user's stored logins."""

from __future__ import annotations

from evalmeta.model.login import SignedIn

__all__ = ["sign_in"]


async def sign_in(org: str, *, instead_of: str = "") -> SignedIn:
    """Gives the session of the user's login with an alias or username, a new one in place of a token that has ended.

    Raises:
        NotFound: no login has that name.
        LoginFailed: the keyring does not give the secrets, or the session has ended and is not renewed.
        UsageError: stored logins are open to others.
    """
    # Only agents in other orgs need them, and httpx takes 117 ms.
    from evalmeta.client.auth import renew_secrets  # noqa: PLC0415
    from evalmeta.client.logins import user_logins  # noqa: PLC0415

    logins = user_logins()
    login = logins.find(org)
    secrets = logins.secrets_of(login)
    if instead_of and secrets.access_token == instead_of:
        secrets = await renew_secrets(login, logins, instead_of=instead_of)
    return SignedIn(login.url, secrets.access_token)
