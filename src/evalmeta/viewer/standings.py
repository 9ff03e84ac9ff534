"""Where definitions stand: in the project, in its own org, or different in both."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from evalmeta.errors import EvalmetaError
from evalmeta.model.component import hash_of
from evalmeta.package.files import read_file
from evalmeta.package.resolver import list_files
from evalmeta.store.components import Components

if TYPE_CHECKING:
    from evalmeta.viewer.pages import Source


class SyncWord(StrEnum):
    """Where a definition is; `CHANGED` is in the project and in the org, with different content."""

    SAME = "deployed"
    LOCAL = "only in the project"
    ORG = "only in the org"
    CHANGED = "changed"


def standings_of(source: Source) -> dict[str, SyncWord]:
    """Return where each definition is, by `Type:FullName`; only admins see the files of the project."""
    org = Components(source.database).hashes()
    if not source.user.is_admin:
        return dict.fromkeys(org, SyncWord.ORG)
    try:
        files = {each.key: hash_of(read_file(each.path)) for each in list_files(source.project)}
    except (EvalmetaError, OSError):
        files = {}
    names = {key.casefold(): key for key in (*org, *files)}
    there = {key.casefold(): found for key, found in org.items()}
    here = {key.casefold(): found for key, found in files.items()}
    return {name: _word(here.get(key), there.get(key)) for key, name in sorted(names.items())}


def _word(here: bytes | None, there: bytes | None) -> SyncWord:
    if here is None:
        return SyncWord.ORG
    if there is None:
        return SyncWord.LOCAL
    return SyncWord.SAME if here == there else SyncWord.CHANGED
