"""Where the runs and definitions of a project are stored: in a folder, or in a database that several machines share."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

STORE_VARIABLE: Final = "EVALMETA_STORE"
_EXAMPLE: Final = "postgresql://USER@HOST/DATABASE"
_HOST: Final = r"(?:\[[0-9a-fA-F:.]*\]|[^\s:/?#@,\[\]]*)(?::\d*)?"
# An @ is only after the user and the password: what looks like a host could be a part of a password otherwise.
_URL: Final = re.compile(
    rf"postgres(?:ql)?://(?:(?P<login>[^/?#@]*)@)?(?P<host>{_HOST}(?:,{_HOST})*)(?:/(?P<path>[^?#@]*))?(?:[?#][^@]*)?",
    re.ASCII,
)
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}(?=:)")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The URL of a shared database; `str` and `repr` show neither its user nor its password."""

    secret: str = field(repr=False)  # what the driver connects to
    name: str  # the host and the database

    def __str__(self) -> str:
        return self.name

    @property
    def has_password(self) -> bool:
        """Return whether the URL has a password."""
        return _has_password(self.secret)


def read_store_url(text: str) -> StoreUrl:
    """Return the URL of a store; the message of the ValueError of another text says nothing that may be secret."""
    match = _URL.fullmatch(text)
    if match is None and text.startswith(("postgresql://", "postgres://")):
        raise ValueError(f"must be {_EXAMPLE}, with / as %2F, @ as %40, : as %3A, ? as %3F and # as %23 in a password")
    if match is None:
        scheme = _SCHEME.match(text)
        kind = f", but begins with '{scheme[0]}:'" if scheme else ""
        raise ValueError(
            f"must be the URL of a store{kind}; write {_EXAMPLE}, or set EVALMETA_HOME for a store in a folder"
        )
    # A host in the query is a folder with a socket, or one of several.
    host = match["host"] or next(iter(re.findall(r"[?&]host=([^&#]*)", text)), "localhost")
    return StoreUrl(text, f"postgresql://{host}/{match['path'] or ''}".rstrip("/"))


def _has_password(text: str) -> bool:
    match = _URL.fullmatch(text)
    return (match is not None and ":" in (match["login"] or "")) or re.search(r"[?&]password=", text) is not None


@dataclass(frozen=True, slots=True)
class Store:
    """A state folder, and the shared database that has what is otherwise in the database of that folder."""

    folder: Path
    url: StoreUrl | None = None

    def project(self, root: Path) -> str:
        """Return how the store names the project in a folder: it stays if that and the state folder are moved.

        In a shared database, the same folder of two machines is not the same project; the name tells nobody the folder.
        """
        if self.url is None:
            return os.path.relpath(root, self.folder)
        import hashlib
        import socket

        return hashlib.sha256(os.fsencode(f"{socket.gethostname()}:{root}")).hexdigest()[:32]

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables that name the store for another process of evalmeta."""
        url = {} if self.url is None else {STORE_VARIABLE: self.url.secret}
        return {"EVALMETA_HOME": str(self.folder), **url}
