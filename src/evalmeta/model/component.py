"""Components: typed, named pieces of metadata and the files they stand in.

Manifests as values: what to deploy or to retrieve (package.xml), and what to delete (destructive changes).
"""

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
    """One component of a project: its type, its full name and the file that holds it."""

    type: MetadataType
    full_name: str
    path: Path

    @property
    def key(self) -> str:
        """Gives `Type:FullName`, unique in an org."""
        return f"{self.type.name}:{self.full_name}"


@dataclass(frozen=True, slots=True)
class ComponentSet:
    """What a deployment takes: components in order of type and name, and the API version in force.

    Attributes:
        warnings: about what was asked for and is left out.
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
    """A package.xml or destructive changes: blocks as they were written, and the API version, kept as text."""

    types: tuple[ManifestTypes, ...]
    version: str | None = None
    full_name: str | None = None
    api_access_level: str | None = None
    description: str | None = None
    namespace_prefix: str | None = None


def own_part(manifest: Manifest) -> Manifest:
    """Leaves out the types that evalmeta does not handle; the same manifest when there are none."""
    types = tuple(block for block in manifest.types if metadata_type(block.name))
    return manifest if len(types) == len(manifest.types) else replace(manifest, types=types)


def unite(types: tuple[ManifestTypes, ...]) -> tuple[ManifestTypes, ...]:
    """Puts blocks into the one form that means the same: a block per type, types and members sorted, each once.

    Names of types that evalmeta handles get their own spelling; `*` stays beside members.
    """
    united: dict[str, set[str]] = {}
    for block in types:
        row = metadata_type(block.name)
        united.setdefault(row.name if row else block.name, set()).update(block.members)
    return tuple(ManifestTypes(name, tuple(sorted(members))) for name, members in sorted(united.items()))
