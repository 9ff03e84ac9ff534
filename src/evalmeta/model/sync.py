"""Where a component of a project and the same component of an org stand to each other."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256


class SyncState(StrEnum):
    """What happened on the two sides since they last were the same."""

    SAME = "same"
    CHANGED_LOCALLY = "changed locally"
    CHANGED_IN_ORG = "changed in the org"
    CONFLICT = "conflict"
    ONLY_LOCAL = "only local"
    ONLY_IN_ORG = "only in the org"
    DELETED_LOCALLY = "deleted locally"
    DELETED_IN_ORG = "deleted in the org"


def hash_of(content: bytes) -> bytes:
    """Gives the SHA-256 by which contents are told apart."""
    return sha256(content).digest()


def sync_state(*, local: bytes | None, org: bytes | None, base: bytes | None) -> SyncState:
    """Compares the hashes of a component's content on both sides with the one both had last.

    Args:
        local: the hash of the project's file, None when there is none.
        org: the hash of what the org has, None when it has none.
        base: the hash that both sides had after the last deploy or retrieve, None when
            there was no such thing: then two sides that differ are a conflict.
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
