from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import keyring
import keyring.backends.null

from client.rings import installed
from evalmeta.client import logins

if TYPE_CHECKING:
    import pytest


def test_what_is_kept_is_given_back_until_it_is_dropped() -> None:
    with installed():
        assert logins.store_secret("me", "canary")
        assert logins.read_secret("me") == "canary"
        logins.delete_secret("me")
        logins.delete_secret("me")
        assert logins.read_secret("me") is None


def test_a_locked_keyring_stores_and_returns_nothing() -> None:
    with installed(broken=True):
        assert not logins.store_secret("me", "canary")
        assert logins.read_secret("me") is None
        logins.delete_secret("me")


def test_a_keyring_that_stores_nothing_is_not_used() -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.null.Keyring())
    try:
        assert not logins.store_secret("me", "canary")
    finally:
        keyring.set_keyring(before)


def test_without_the_extra_no_keyring_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert not logins.store_secret("me", "canary")
    assert logins.read_secret("me") is None
    logins.delete_secret("me")


def test_the_switch_of_the_sf_cli_turns_the_ring_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SF_USE_GENERIC_UNIX_KEYCHAIN", "true")
    with installed():
        assert not logins.store_secret("me", "canary")
