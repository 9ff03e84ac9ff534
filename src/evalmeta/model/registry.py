"""The metadata types that evalmeta supports, one row per type, and their components, manifests and sync states.

A component of most types is one XML file. A bundle is a folder with its name, in which are its metadata file and its
content: `Desk/Desk.bundle-meta.xml` and `Desk/Desk.agent`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import nearest_word

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evalmeta.model.problem import Problem


class ApiVersion(NamedTuple):
    """A Metadata API version such as 64.0; versions are compared as numbers."""

    major: int
    minor: int = 0

    def __str__(self) -> str:
        """Return the version as manifests and URLs write it."""
        return f"{self.major}.{self.minor}"


OLDEST_API_VERSION: Final = ApiVersion(63)
PARAMETER_API_VERSION: Final = ApiVersion(64)
NEWEST_API_VERSION: Final = ApiVersion(68)
META_XML_SUFFIX: Final = "-meta.xml"


class MetadataType(NamedTuple):
    """A metadata type."""

    name: str  # the type's name in manifests and the API, and of its root element
    directory: str  # the folder of its files in metadata format
    suffix: str  # the file suffix without the dot; source format adds `-meta.xml`, the metadata file of a bundle has it
    since: ApiVersion  # the first API version with the type
    xsd: str  # the schema's file name in `xsd/`
    id_prefix: str  # the first three characters of its record ids
    expectation: str = ""  # the name of the element of an expectation
    subject_types: tuple[str, ...] = ()  # the types of subjects that can be tested; empty for a type that is not a test
    run_prefix: str = ""  # the first three characters of the ids of its runs
    run_path: str = ""  # the path of its runs in the Connect API, below `/einstein`
    run_key: str = ""  # the key of its name in the Connect API, to start a run
    content_suffix: str = ""  # the suffix of the content of a bundle; empty for a type whose components are one file

    @property
    def is_test(self) -> bool:
        """Return whether components of the type are tests, which can run."""
        return bool(self.subject_types)

    @property
    def is_bundle(self) -> bool:
        """Return whether components of the type are folders."""
        return bool(self.content_suffix)

    def bundle_files(self, full_name: str) -> tuple[str, str]:
        """Return the names of the content and of the metadata file in the folder of a bundle."""
        return f"{full_name}.{self.content_suffix}", f"{full_name}.{self.suffix}{META_XML_SUFFIX}"


EVALUATION_DEFINITION: Final = MetadataType(
    name="AiEvaluationDefinition",
    directory="aiEvaluationDefinitions",
    suffix="aiEvaluationDefinition",
    since=OLDEST_API_VERSION,
    xsd="AiEvaluationDefinition.xsd",
    id_prefix="4KA",
    expectation="expectation",
    subject_types=("AGENT",),
    run_prefix="4KB",
    run_path="ai-evaluations",
    run_key="aiEvaluationDefinitionName",
)
"""The type of Testing Center."""

TESTING_DEFINITION: Final = MetadataType(
    name="AiTestingDefinition",
    directory="aiTestingDefinitions",
    suffix="aiTestingDefinition",
    since=ApiVersion(66),
    xsd="AiTestingDefinition.xsd",
    id_prefix="3A1",
    expectation="scorer",
    subject_types=("AGENT", "PROMPT"),
    run_prefix="3A2",
    run_path="ai-testing",
    run_key="testDefinitionName",
)
"""The type of Agentforce Studio."""

SCORER_DEFINITION: Final = MetadataType(
    name="AiAgentScorerDefinition",
    directory="aiAgentScorerDefinitions",
    suffix="aiAgentScorerDefinition",
    since=ApiVersion(66),
    xsd="AiAgentScorerDefinition.xsd",
    id_prefix="3A3",
)
"""The type of custom scorers, which tests of Agentforce Studio name."""

AUTHORING_BUNDLE: Final = MetadataType(
    name="AiAuthoringBundle",
    directory="aiAuthoringBundles",
    suffix="bundle",
    since=ApiVersion(65),
    xsd="AiAuthoringBundle.xsd",
    id_prefix="3A4",
    content_suffix="agent",
)
"""The type of agents in Agent Script."""

TEST_TYPES: Final = (EVALUATION_DEFINITION, TESTING_DEFINITION)
TYPES: Final = (*TEST_TYPES, SCORER_DEFINITION, AUTHORING_BUNDLE)
BUNDLE_TYPES: Final = {row.directory: row for row in TYPES if row.is_bundle}
"""The types whose components are folders, by the folder in which these are."""
_BY_NAME: Final = {row.name.lower(): row for row in TYPES}
_OTHER: Final = re.compile(rf"[A-Z][A-Za-z0-9]{{0,{limits.MAX_API_NAME_CHARS - 1}}}")
_BY_RUN_PREFIX: Final = {row.run_prefix: row for row in TEST_TYPES}


def metadata_type(name: str) -> MetadataType | None:
    """Return a type by its name in upper or lower case, like the sf CLI; None if evalmeta does not support it."""
    return _BY_NAME.get(name.lower())


def type_of_run(run_id: str) -> MetadataType | None:
    """Return the type of a run by its id; None if the id is not the id of a run."""
    return _BY_RUN_PREFIX.get(run_id[:3])


def type_at_path(run_path: str) -> MetadataType | None:
    """Return a type by its path in the Connect API, such as `ai-testing`."""
    return next((row for row in TEST_TYPES if row.run_path == run_path), None)


def types_at(version: ApiVersion) -> tuple[MetadataType, ...]:
    """Return the types that an API version has."""
    return tuple(row for row in TYPES if row.since <= version)


def is_other_type(name: str) -> bool:
    """Return whether a name may be another Salesforce type, not a misspelt supported type.

    No Salesforce type reaches the similarity 0.8 with a supported type (AssistantDefinition has 0.79).
    """
    is_near = bool(get_close_matches(name[: limits.MAX_API_NAME_CHARS].lower(), _BY_NAME, n=1, cutoff=0.8))
    return _OTHER.fullmatch(name) is not None and not is_near


def nearest_type_name(name: str) -> str | None:
    """Return the supported type with the most similar name, None if no name is similar."""
    return nearest_word(name, (row.name for row in TYPES))


def parse_api_version(text: str) -> ApiVersion | None:
    """Parse `64.0` (or `64`); return None if the text is not an API version."""
    major, dot, minor = text.strip().partition(".")
    if not re.fullmatch(r"[0-9]{1,3}", major) or (dot and minor != "0"):
        return None
    return ApiVersion(int(major))


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a project: its type, its full name, and its file or the folder of a bundle with its files."""

    type: MetadataType
    full_name: str
    path: Path
    bundle_files: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        """Return `Type:FullName`, which is unique in an org."""
        return f"{self.type.name}:{self.full_name}"

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the files of the component."""
        return self.bundle_files or (self.path,)


def names_by_type(components: Iterable[Component]) -> dict[str, list[str]]:
    """Return the full names of components by the names of their types."""
    names: dict[str, list[str]] = {}
    for component in components:
        names.setdefault(component.type.name, []).append(component.full_name)
    return names


@dataclass(frozen=True, slots=True)
class ComponentSet:
    """The components of a deployment in order of type and name, and the API version to use."""

    components: tuple[Component, ...]
    api_version: ApiVersion
    warnings: tuple[Problem, ...] = ()  # about what was selected and is skipped


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
