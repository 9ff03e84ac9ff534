"""Stored logins: one file for each in a folder of the user's, with the secrets in the keyring where one works.

The operating system's keyring, where the extra `keyring` is installed and one works.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import orjson

from evalmeta import limits
from evalmeta.errors import LoginFailed, MessageUnreadable, NotFound, ProjectError, UsageError
from evalmeta.model.login import ByKey, ByRefreshToken, BySf, Login, Secrets
from evalmeta.package.files import write_below
from evalmeta.protocol.json_fields import object_at, read_object, text

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import Renewal


_OTHERS: Final = 0o077


def user_logins() -> Logins:
    """Gives the user's logins: below XDG_CONFIG_HOME, or ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
    return Logins(config / "evalmeta" / "logins")


class Logins:
    """The logins in a folder, which only its owner may open."""

    __slots__ = ("folder",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list_logins(self) -> list[Login]:
        """Gives all logins, by name.

        Raises:
            UsageError: others may read the folder or a file, or a file is no login.
        """
        if not self.folder.is_dir():
            return []
        found: list[Login] = []
        for path in self._files():
            # Another program may have removed it just now.
            with suppress(LoginFailed):
                found.append(_login_of(path, _read(path)))
        return sorted(found, key=lambda login: login.name.casefold())

    def find(self, name: str) -> Login:
        """Gives the login with an alias or username.

        Raises:
            NotFound: there is none.
            UsageError: orgs share the username; or as in `list_logins`.
        """
        logins = self.list_logins()
        found = [each for each in logins if name == each.alias] or [
            each for each in logins if name.casefold() == each.username.casefold()
        ]
        if len(found) > 1:
            places = ", ".join(each.url for each in found)
            raise UsageError(f"{name} is a user of {places}", actions=["Log in with --alias, and name the alias."])
        if found:
            return found[0]
        known = [each for login in logins for each in (login.alias, login.username) if each]
        close = get_close_matches(name, known, n=1)
        actions = [f"Did you mean {close[0]}?"] if close else []
        raise NotFound(f"no login {name!r} is known here", actions=[*actions, "Log in: evalmeta org login --help"])

    def secrets_of(self, login: Login) -> Secrets:
        """Gives a login's secrets.

        Raises:
            LoginFailed: the keyring that had them does not give them.
            UsageError: as in `list_logins`.
        """
        stored = object_at(_read(self._path(login)), "secrets")
        if not stored:
            kept = fetch(_key(login))
            if kept is None:
                raise LoginFailed(f"the keyring does not give the secrets of {login.name}")
            stored = read_object(kept.encode())
        return Secrets(text(stored, "accessToken"), text(stored, "refreshToken"), text(stored, "clientSecret"))

    def save(self, login: Login, secrets: Secrets) -> Login:
        """Keeps a login in place of the same user's at the same org; its alias is taken from any other.

        Without an alias it keeps the one it had.

        Raises:
            UsageError: the folder cannot be written, or others may read it.
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
        kept = keep(_key(login), orjson.dumps(plain).decode())
        self._put(login, {} if kept else plain)
        return login

    def delete(self, login: Login) -> None:
        """Forgets a login and its secrets."""
        drop(_key(login))
        with suppress(FileNotFoundError):
            self._path(login).unlink()

    def _files(self) -> list[Path]:
        _refuse_open(self.folder, self.folder.stat().st_mode, fix="700")
        return [path for path in self.folder.iterdir() if path.suffix == ".json"]

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
            raise UsageError(str(error), actions=["Set XDG_CONFIG_HOME to a folder of your own."]) from None

    def _make_folder(self) -> None:
        try:
            for folder in (self.folder.parent, self.folder):
                if not folder.is_dir():
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{self.folder}: cannot be made: {error.strerror}",
                actions=["Set XDG_CONFIG_HOME to a folder of your own."],
            ) from None


def _key(login: Login) -> str:
    """Names a login. Salesforce's usernames are unique among all orgs, those of orgs of one's own are not."""
    return f"{login.username.casefold()} {login.url.partition('://')[2]}"


def _read(path: Path) -> JsonObject:
    try:
        with path.open("rb") as file:
            _refuse_open(path, os.fstat(file.fileno()).st_mode, fix="600")
            return read_object(file.read(limits.MAX_LOGIN_BYTES))
    except FileNotFoundError:
        raise LoginFailed(f"{path}: this login was removed meanwhile") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except MessageUnreadable:
        raise _no_login(path) from None


def _refuse_open(path: Path, mode: int, *, fix: str) -> None:
    if os.name == "posix" and mode & _OTHERS:
        raise UsageError(
            f"{path}: others may open it (mode {mode & 0o777:o}), and it holds logins", actions=[f"chmod {fix} {path}"]
        )


def _login_of(path: Path, stored: JsonObject) -> Login:
    username, url = text(stored, "username"), text(stored, "instanceUrl")
    if not (username and url):
        raise _no_login(path)
    return Login(
        username,
        url,
        org_id=text(stored, "orgId"),
        api_version=text(stored, "apiVersion"),
        alias=text(stored, "alias"),
        renewal=_renewal_of(object_at(stored, "renewal")),
    )


def _renewal_json(renewal: Renewal | None) -> JsonObject:
    match renewal:
        case None:
            return {}
        case BySf():
            return {"by": "sf", "org": renewal.org}
        case ByRefreshToken():
            return {"by": "refreshToken", "clientId": renewal.client_id, "loginUrl": renewal.login_url}
    return {
        "by": "key",
        "clientId": renewal.client_id,
        "loginUrl": renewal.login_url,
        "audience": renewal.audience,
        "keyFile": renewal.key_file,
    }


def _renewal_of(stored: JsonObject) -> Renewal | None:
    client_id, login_url = text(stored, "clientId"), text(stored, "loginUrl")
    match text(stored, "by"):
        case "sf":
            return BySf(text(stored, "org"))
        case "refreshToken":
            return ByRefreshToken(client_id, login_url)
        case "key":
            return ByKey(client_id, login_url, text(stored, "audience"), text(stored, "keyFile"))
        case _:
            return None


def _no_login(path: Path) -> UsageError:
    return UsageError(f"{path}: is no login", actions=[f"Remove it and log in again: rm {path}"])


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
