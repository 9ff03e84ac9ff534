"""Which names the entries of a zip may have: one place below the root, the same on every system, once."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from evalmeta.package.zipdirectory import refused

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_names"]

_FAULTS: Final = (
    (re.compile(r"\A\Z"), "has no name"),
    (re.compile(r"(?s)\A.{1001}"), "has a name of more than 1,000 characters"),
    (re.compile(r"[\x00-\x1f\x7f-\x9f]"), "has a control character in its name"),
    (re.compile(r"[\ud800-\udfff]"), "has a name that UTF-8 cannot hold"),
    (re.compile(r"\\"), "has a backslash in its name"),
    (re.compile(r"\A/"), "has an absolute name"),
    (re.compile(r"\A.:"), "names a drive"),
    (re.compile(r"(?:\A|/)\.\.?(?:/|\Z)"), "has a step `.` or `..` in its name"),
    (re.compile(r"//"), "has an empty step in its name"),
)
_PLAIN: Final = re.compile(r"(?:\w[\w-]*/)*\w[\w-]*(?:\.\w+)?", re.ASCII)
_PLAIN_CHARS: Final = 255


def check_names(names: Iterable[str]) -> None:
    """Refuses names that are unsafe, or the same on a system that ignores case or accents' spelling.

    A name that ends in `/` is a folder's; a folder may be named again, a file may not.

    Raises:
        ArchiveError: it names the first bad entry and says why.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for name in names:
        _check_name(name)
        key = _same_on_disk(name.removesuffix("/"))
        if key in files or (key in folders and not name.endswith("/")):
            raise refused(name, "is there twice, at least where case does not count")
        (folders if name.endswith("/") else files).add(key)


def _check_name(name: str) -> None:
    if len(name) <= _PLAIN_CHARS and _PLAIN.fullmatch(name):
        return
    for pattern, why in _FAULTS:
        if pattern.search(name):
            raise refused(name, why)


def _same_on_disk(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()
