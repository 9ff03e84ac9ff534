"""The state of a component in a project compared with the same component in an org."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256


class SyncState(StrEnum):
    """What changed in the project and in the org since both were last the same."""

    SAME = "same"
    CHANGED_LOCALLY = "changed locally"
    CHANGED_IN_ORG = "changed in the org"
    CONFLICT = "conflict"
    ONLY_LOCAL = "only local"
    ONLY_IN_ORG = "only in the org"
    DELETED_LOCALLY = "deleted locally"
    DELETED_IN_ORG = "deleted in the org"


def hash_of(content: bytes) -> bytes:
    """Return the SHA-256 of a component's content, by which contents are compared."""
    return sha256(content).digest()


def sync_state(*, local: bytes | None, org: bytes | None, base: bytes | None) -> SyncState:
    """Compare the hashes of a component's content in the project and in the org with the last common one.

    Args:
        local: the hash of the project's file, None if there is none.
        org: the hash of the org's component, None if there is none.
        base: the hash after the last deploy or retrieve, None if there was none: then any difference is a conflict.
    """
    if local == org:
        return SyncState.SAME
    if base is None and org is None:
        return SyncState.ONLY_LOCAL
    if base is None and local is None:
        return SyncState.ONLY_IN_ORG
    if org == base:
        return SyncState.DELETED_LOCALLY if local is None else SyncState.CHANGED_LOCALLY
    if local == base:
        return SyncState.DELETED_IN_ORG if org is None else SyncState.CHANGED_IN_ORG
    return SyncState.CONFLICT
