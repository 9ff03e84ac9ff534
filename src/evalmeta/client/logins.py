"""Stored logins: one file for each in a folder of the user, with the secrets in the keyring if one works."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import astuple, replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

import orjson

from evalmeta import limits
from evalmeta.errors import LoginFailed, MessageUnreadable, NotFound, ProjectError, UsageError
from evalmeta.model.login import ByKey, ByRefreshToken, BySf, Login, Renewal, Secrets
from evalmeta.package.files import write_below
from evalmeta.protocol.json_fields import object_at, read_object, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keyring.backend import KeyringBackend

    from evalmeta.model.json_value import JsonObject


_T = TypeVar("_T")
_OTHERS: Final = 0o077
_SERVICE: Final = "evalmeta"
_SHOWN: Final = 5
# The kinds of renewals by their names in files, with the keys of their fields.
_RENEWALS: Final[Mapping[str, tuple[type[Renewal], tuple[str, ...]]]] = {
    "sf": (BySf, ("org",)),
    "refreshToken": (ByRefreshToken, ("clientId", "loginUrl")),
    "key": (ByKey, ("clientId", "loginUrl", "audience", "keyFile")),
}


def user_logins() -> Logins:
    """Return the user's logins, in XDG_CONFIG_HOME or ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
    return Logins(config / "evalmeta" / "logins")


class Logins:
    """The logins in a folder that only its owner can read."""

    __slots__ = ("folder",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list_logins(self) -> list[Login]:
        """Return all logins, by name; raise UsageError if others can read them or one is not valid."""
        if not self.folder.is_dir():
            return []
        _check_mode(self.folder, self.folder.stat().st_mode, fix="700")
        logins: list[Login] = []
        for path in [path for path in self.folder.iterdir() if path.suffix == ".json"]:
            # Another program may have removed the file in the meantime.
            with suppress(LoginFailed):
                logins.append(_login_of(path, _read(path)))
        return sorted(logins, key=lambda login: login.name.casefold())

    def find(self, name: str) -> Login:
        """Return the login with an alias or username; raise NotFound, or UsageError if several orgs have it."""
        logins = self.list_logins()
        matches = [login for login in logins if name == login.alias] or [
            login for login in logins if name.casefold() == login.username.casefold()
        ]
        if len(matches) > 1:
            places = ", ".join(login.url for login in matches)
            raise UsageError(f"{name} is a user of {places}", actions=["Log in with --alias, and use the alias."])
        if matches:
            return matches[0]
        known = [word for login in logins for word in (login.alias, login.username) if word]
        close = get_close_matches(name, known, n=1)
        names = ", ".join([login.name for login in logins][:_SHOWN])
        actions = [f"Did you mean {close[0]}?"] if close else [f"Name one of your logins: {names}"] if logins else []
        raise NotFound(f"the login {name!r} cannot be found", actions=[*actions, "Log in: evalmeta org login --help"])

    def secrets_of(self, login: Login) -> Secrets:
        """Return the secrets of a login; raise LoginFailed if the keyring does not return them."""
        stored = object_at(_read(self._path(login)), "secrets")
        if not stored:
            kept = read_secret(_key(login))
            if kept is None:
                raise LoginFailed(
                    f"the keyring does not return the secrets of {login.name}", actions=_keyring_actions()
                )
            stored = read_object(kept.encode())
        return Secrets(text(stored, "accessToken"), text(stored, "refreshToken"), text(stored, "clientSecret"))

    def save(self, login: Login, secrets: Secrets) -> Login:
        """Save a login and return it; replace the same user's login at the same org.

        If another login has the alias, that login loses it. Without an alias, the login keeps its old one. Raise
        UsageError if the folder cannot be written, or other users can read it.
        """
        self._make_folder()
        for other in self.list_logins():
            if _key(other) == _key(login):
                login = replace(login, alias=login.alias or other.alias)
            elif login.alias and other.alias == login.alias:
                self._put(replace(other, alias=""), object_at(_read(self._path(other)), "secrets"))
        plain: JsonObject = {
            "accessToken": secrets.access_token,
            "refreshToken": secrets.refresh_token,
            "clientSecret": secrets.client_secret,
        }
        kept = store_secret(_key(login), orjson.dumps(plain).decode())
        self._put(login, {} if kept else plain)
        return login

    def delete(self, login: Login) -> None:
        """Delete a login and its secrets."""
        delete_secret(_key(login))
        with suppress(FileNotFoundError):
            self._path(login).unlink()

    def _path(self, login: Login) -> Path:
        return self.folder / f"{quote(_key(login), safe='@+')}.json"

    def _put(self, login: Login, secrets: JsonObject) -> None:
        document: JsonObject = {
            "username": login.username,
            "alias": login.alias,
            "instanceUrl": login.url,
            "orgId": login.org_id,
            "apiVersion": login.api_version,
            "renewal": _renewal_json(login.renewal),
            "secrets": secrets,
        }
        content = orjson.dumps(document, option=orjson.OPT_INDENT_2)
        try:
            write_below(Path(os.path.realpath(self.folder)), self._path(login), content, mode=0o600)
        except ProjectError as error:
            raise UsageError(str(error), actions=["Set XDG_CONFIG_HOME to one of your own folders."]) from None

    def _make_folder(self) -> None:
        try:
            for folder in (self.folder.parent, self.folder):
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{self.folder}: cannot be created: {error.strerror}",
                actions=["Set XDG_CONFIG_HOME to one of your own folders."],
            ) from None


def _key(login: Login) -> str:
    """Return the key of a login. Usernames are unique among Salesforce's orgs, but not among orgs of evalmeta."""
    return f"{login.username.casefold()} {login.url.partition('://')[2]}"


def _read(path: Path) -> JsonObject:
    try:
        with path.open("rb") as file:
            _check_mode(path, os.fstat(file.fileno()).st_mode, fix="600")
            return read_object(file.read(limits.MAX_LOGIN_BYTES))
    except FileNotFoundError:
        raise LoginFailed(f"{path}: this login was removed in the meantime") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except MessageUnreadable:
        raise _invalid_login(path) from None


def _check_mode(path: Path, mode: int, *, fix: str) -> None:
    if os.name == "posix" and mode & _OTHERS:
        raise UsageError(
            f"{path}: other users can read it (mode {mode & 0o777:o}), and it contains logins",
            actions=[f"chmod {fix} {path}"],
        )


def _login_of(path: Path, stored: JsonObject) -> Login:
    username, url = text(stored, "username"), text(stored, "instanceUrl")
    if not (username and url):
        raise _invalid_login(path)
    return Login(
        username,
        url,
        org_id=text(stored, "orgId"),
        api_version=text(stored, "apiVersion"),
        alias=text(stored, "alias"),
        renewal=_renewal_of(object_at(stored, "renewal")),
    )


def _renewal_json(renewal: Renewal | None) -> JsonObject:
    if renewal is None:
        return {}
    by, keys = next((by, keys) for by, (kind, keys) in _RENEWALS.items() if isinstance(renewal, kind))
    return {"by": by, **dict(zip(keys, astuple(renewal), strict=True))}


def _renewal_of(stored: JsonObject) -> Renewal | None:
    known = _RENEWALS.get(text(stored, "by"))
    return known[0](*(text(stored, key) for key in known[1])) if known else None


def _invalid_login(path: Path) -> UsageError:
    return UsageError(f"{path}: is not a valid login", actions=[f"Remove it and log in again: rm {path}"])


def store_secret(name: str, secret: str) -> bool:
    """Store a secret in the keyring; return False if no keyring works."""

    def store(ring: KeyringBackend) -> bool:
        ring.set_password(_SERVICE, name, secret)
        return ring.get_password(_SERVICE, name) == secret

    return bool(_with_keyring(store))


def read_secret(name: str) -> str | None:
    """Return a secret; None if the keyring does not have it or cannot be opened."""
    return _with_keyring(lambda ring: ring.get_password(_SERVICE, name))


def _keyring_actions() -> tuple[str, ...]:
    again = "Log in again: evalmeta org login --help"
    return (again,) if find_spec("keyring") else ("Install it: pip install 'evalmeta[keyring]'", again)


def delete_secret(name: str) -> None:
    """Delete a secret, if the keyring has it."""
    _with_keyring(lambda ring: ring.delete_password(_SERVICE, name))


def _with_keyring(use: Callable[[KeyringBackend], _T]) -> _T | None:
    # The sf CLI's own switch for machines whose keyring would wait for someone to unlock it.
    if os.environ.get("SF_USE_GENERIC_UNIX_KEYCHAIN", "").lower() == "true":
        return None
    try:
        from keyring import errors, get_keyring
    except ImportError:
        return None
    ring = get_keyring()
    # Backends that refuse or forget all secrets have the priority 0 or less.
    if ring.priority <= 0:
        return None
    try:
        return use(ring)
    except (errors.KeyringError, OSError, RuntimeError):
        return None
