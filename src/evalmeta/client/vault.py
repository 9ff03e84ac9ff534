"""The operating system's keyring, where the extra `keyring` is installed and one works."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

__all__ = ["drop", "fetch", "keep"]

_SERVICE: Final = "evalmeta"


def keep(name: str, secret: str) -> bool:
    """Keeps a secret; False when there is no keyring that takes it."""
    ring = _keyring()
    if ring is None:
        return False
    from keyring.errors import KeyringError  # noqa: PLC0415 - an extra

    try:
        ring.set_password(_SERVICE, name, secret)
        return ring.get_password(_SERVICE, name) == secret
    except (KeyringError, OSError, RuntimeError):
        return False


def fetch(name: str) -> str | None:
    """Gives a secret; None when the keyring does not have it, or cannot be opened."""
    ring = _keyring()
    if ring is None:
        return None
    from keyring.errors import KeyringError  # noqa: PLC0415 - an extra

    try:
        return ring.get_password(_SERVICE, name)
    except (KeyringError, OSError, RuntimeError):
        return None


def drop(name: str) -> None:
    """Forgets a secret, if the keyring has it."""
    ring = _keyring()
    if ring is None:
        return
    from keyring.errors import KeyringError  # noqa: PLC0415 - an extra

    try:
        ring.delete_password(_SERVICE, name)
    except (KeyringError, OSError, RuntimeError):
        return


def _keyring() -> KeyringBackend | None:
    # The sf CLI's own switch for machines whose keyring asks nobody who is there.
    if os.environ.get("SF_USE_GENERIC_UNIX_KEYCHAIN", "").lower() == "true":
        return None
    try:
        import keyring  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    ring = keyring.get_keyring()
    # Backends that refuse or forget everything have the priority 0 or less.
    return ring if ring.priority > 0 else None
