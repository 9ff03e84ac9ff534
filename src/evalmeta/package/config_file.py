"""Reading of `evalmeta.toml` and `sfdx-project.json`, and names for their keys in messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.errors import UsageError


_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def read_text(path: Path, *, raises: type[UsageError], max_bytes: int = limits.MAX_SETTINGS_BYTES) -> str:
    """Return the text of a UTF-8 file of at most `max_bytes`; errors are of the class `raises`."""
    try:
        if not path.is_file():
            raise raises(f"{path}: the file does not exist.")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise raises(f"{path}: cannot be read: {error.strerror}.") from error
    if len(data) > max_bytes:
        raise raises(f"{path}: is larger than {max_bytes:,} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise raises(f"{path}:{line}: is not UTF-8.", actions=("Save the file as UTF-8.",)) from error


def key_name(keys: Sequence[str | int]) -> str:
    """Return a dotted key: `run.concurrency`, `subjects."My Agent".adapter`, `packageDirectories[0].path`."""
    return "".join(_step(key) for key in keys).removeprefix(".")


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _BARE_KEY.fullmatch(key) else f'."{key}"'
