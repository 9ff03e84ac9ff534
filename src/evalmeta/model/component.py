"""Components, and manifests of what to deploy, retrieve (package.xml) or delete (destructive changes)."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
