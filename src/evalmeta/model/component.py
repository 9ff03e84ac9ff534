"""Components, manifests of what to deploy, retrieve or delete, and the sync state of a component."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from evalmeta.model.registry import metadata_type

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion, MetadataType


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a project: its type, its full name and its file."""

    type: MetadataType
    full_name: str
    path: Path

    @property
    def key(self) -> str:
        """Return `Type:FullName`, which is unique in an org."""
        return f"{self.type.name}:{self.full_name}"


@dataclass(frozen=True, slots=True)
class ComponentSet:
    """The components of a deployment in order of type and name, and the API version to use.

    Attributes:
        warnings: about what was selected and is skipped.
    """

    components: tuple[Component, ...]
    api_version: ApiVersion
    warnings: tuple[Problem, ...] = ()


WILDCARD: Final = "*"
PACKAGE_FILE: Final = "package.xml"
PRE_DESTRUCTIVE_FILE: Final = "destructiveChangesPre.xml"
POST_DESTRUCTIVE_FILE: Final = "destructiveChangesPost.xml"
DESTRUCTIVE_FILES: Final = ("destructiveChanges.xml", PRE_DESTRUCTIVE_FILE, POST_DESTRUCTIVE_FILE)
MANIFEST_FILES: Final = (PACKAGE_FILE, *DESTRUCTIVE_FILES)


@dataclass(frozen=True, slots=True)
class ManifestTypes:
    """One `<types>` block: a metadata type's name and its members, `*` for all."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A package.xml or destructive changes; blocks and API version are kept as they were written."""

    types: tuple[ManifestTypes, ...]
    version: str | None = None
    full_name: str | None = None
    api_access_level: str | None = None
    description: str | None = None
    namespace_prefix: str | None = None


def supported_part(manifest: Manifest) -> Manifest:
    """Return the manifest without the types that evalmeta does not support."""
    types = tuple(block for block in manifest.types if metadata_type(block.name))
    return manifest if len(types) == len(manifest.types) else replace(manifest, types=types)


def merge_types(types: tuple[ManifestTypes, ...]) -> tuple[ManifestTypes, ...]:
    """Return one block per type, with types and members sorted and without duplicates.

    The names of supported types are normalised; `*` is kept beside members.
    """
    merged: dict[str, set[str]] = {}
    for block in types:
        row = metadata_type(block.name)
        merged.setdefault(row.name if row else block.name, set()).update(block.members)
    return tuple(ManifestTypes(name, tuple(sorted(members))) for name, members in sorted(merged.items()))


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
    """Compare a component's hashes in the project, in the org, and after the last deploy or retrieve; None if missing.

    Without a last deploy or retrieve, any difference is a conflict.
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
