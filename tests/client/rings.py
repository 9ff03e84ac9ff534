"""A keyring for tests: a backend as the keyring library knows them, in memory."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Ring", "installed"]


class Ring(KeyringBackend):
    """A keyring that keeps secrets until the test ends; a broken one stays locked."""

    priority = 9

    def __init__(self, *, broken: bool = False) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self._broken = broken

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError(username)

    def _check(self) -> None:
        if self._broken:
            raise KeyringLocked("locked")


@contextmanager
def installed(*, broken: bool = False) -> Iterator[Ring]:
    """Install a keyring, which evalmeta then uses."""
    before, ring = keyring.get_keyring(), Ring(broken=broken)
    keyring.set_keyring(ring)
    try:
        yield ring
    finally:
        keyring.set_keyring(before)
