"""Sessions with other orgs, for subjects that live in one: from the user's stored logins."""

from __future__ import annotations

from evalmeta.errors import NotFound, SettingsError
from evalmeta.model.login import SignedIn

__all__ = ["check_login", "sign_in"]


def check_login(org: str) -> None:
    """Sees to it that the user has a login with an alias or username; nothing is sent.

    Raises:
        SettingsError: there is none.
        UsageError: several orgs have the username, or stored logins are open to others.
    """
    from evalmeta.client.logins import user_logins  # noqa: PLC0415 - as in sign_in

    try:
        user_logins().find(org)
    except NotFound as error:
        actions = (*error.actions, "Or correct the subject's org in evalmeta.toml.")
        raise SettingsError(f"the subject's org cannot be asked: {error}", actions=actions) from None


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
