"""What evalmeta believes of a folder that others may have filled, such as a checkout or a copy.

Links in the state folder are refused, because evalmeta would write to what they point to. Settings of other users are
refused, because they name programs to run. Tokens are signed with a key of the user that is in no project.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from evalmeta.errors import ProjectError, StoreError, UsageError

SAFE_FOLDERS: Final = "EVALMETA_SAFE_FOLDERS"
STATE_FOLDER: Final = ".evalmeta"
_OTHERS: Final = 0o077
_KEY_BYTES: Final = 32
_KEY_SECONDS: Final = 1.0


def state_file(folder: Path, *names: str) -> Path:
    """Return the path of a file in a state folder, to read or to write it.

    Raise StoreError if the file or a folder on the way to it is a link, or it is a pipe or a device. A folder that
    EVALMETA_HOME names may be a link itself, but `.evalmeta` may be part of a checkout.
    """
    path = folder.joinpath(*names)
    steps = [folder.joinpath(*names[:count]) for count in range(1, len(names) + 1)]
    if folder.name == STATE_FOLDER:
        steps.insert(0, folder)
    for step in steps:
        try:
            mode = step.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            break
        except OSError as error:
            raise StoreError(f"{step} cannot be read: {error.strerror}") from None
        if stat.S_ISLNK(mode):
            way_out = "Remove the link. To keep the state elsewhere, set EVALMETA_HOME to that folder."
            raise StoreError(f"{step} is a link, which evalmeta does not follow in its state folder", actions=[way_out])
        # To open a pipe would wait for another program; a folder is the caller's error.
        if step == path and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise StoreError(f"{step} is not a file", actions=["Move it away."])
    return path


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open`; only its owner can read it if it is new, such as a log of what an agent prints."""
    return os.open(path, flags, 0o600)


def refuse_foreign(file: Path) -> None:
    """Raise ProjectError if a file that decides what runs belongs to another user and its folder is not declared safe.

    Files of the system's administrator are believed, who can do anything anyway. Windows has other owners.
    """
    if os.name != "posix":
        return
    owners = {file.lstat().st_uid, file.stat().st_uid} - _believed()
    if not owners or _is_safe(file.parent):
        return
    import shlex

    line = f"export {SAFE_FOLDERS}={shlex.quote(str(file.parent))}"
    raise ProjectError(
        f"{file} belongs to another user ({_name(owners.pop())}), and it names what evalmeta imports and starts",
        actions=[f"If you trust everything in this folder, run this and then the command again:\n{line}"],
    )


def _believed() -> set[int]:
    own = os.geteuid()
    sudo = os.environ.get("SUDO_UID", "") if own == 0 else ""
    return {0, own, *([int(sudo)] if sudo.isdecimal() else [])}


def _is_safe(folder: Path) -> bool:
    """Return whether the variable names a folder or one above it; `*` names all."""
    real = Path(os.path.realpath(folder))
    named = [name for name in os.environ.get(SAFE_FOLDERS, "").split(os.pathsep) if name]
    safe = [os.path.realpath(name) for name in named if Path(name).is_absolute()]
    return "*" in named or any(real.is_relative_to(name) for name in safe)


def _name(uid: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name}, user id {uid}"
    except KeyError:
        return f"user id {uid}"


def signature(folder: Path, *parts: bytes, create: bool = False) -> bytes | None:
    """Return the signature of values that only this user can make, and only for this folder.

    Whoever puts a file into a project, moves or restores one cannot make it. The key is made with `create`; without a
    key, there is no signature. Raise UsageError if the key cannot be used.
    """
    key = _key(create=create)
    if key is None:
        return None
    owner = str(os.getuid()) if os.name == "posix" else ""
    place = os.path.realpath(folder)
    # The lengths separate the values.
    values = [os.fsencode(place), owner.encode(), *parts]
    message = b"".join(len(value).to_bytes(8, "big") + value for value in values)
    import hmac

    return hmac.digest(key, message, "sha256")


def _key(*, create: bool) -> bytes | None:
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
    path = home / "evalmeta" / "token.key"
    try:
        return _read_key(path)
    except (FileNotFoundError, NotADirectoryError):
        if not create:
            return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        import secrets

        # Another process may have created it meanwhile.
        with (
            suppress(FileExistsError),
            os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        ):
            file.write(secrets.token_bytes(_KEY_BYTES))
        return _read_key(path)
    except OSError as error:
        raise UsageError(
            f"{path}: the key that signs tokens cannot be kept: {error.strerror}",
            actions=["Set XDG_STATE_HOME to one of your own folders."],
        ) from None


def _read_key(path: Path) -> bytes:
    deadline = time.monotonic() + _KEY_SECONDS
    while True:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & _OTHERS:
                raise UsageError(
                    f"{path}: other users can read it (mode {mode & 0o777:o}), and it signs tokens",
                    actions=[f"rm {path} && evalmeta org token"],
                )
            key = file.read(_KEY_BYTES + 1)
        if len(key) == _KEY_BYTES:
            return key
        # The process that creates it has not written it yet.
        if time.monotonic() > deadline:
            raise UsageError(f"{path}: is not a key", actions=[f"Remove it: rm {path}"])
        time.sleep(_KEY_SECONDS / 100)
