"""The components that a command selects by folders, by a manifest, or by `--metadata` entries.

An entry is `Type:Name`, `Type:Order_*`, or `Type` for all components of the type.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from fnmatch import translate
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta.errors import NotFound, ProjectError, UsageError, nearest_word
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    PACKAGE_FILE,
    TYPES,
    WILDCARD,
    ComponentSet,
    is_other_type,
    metadata_type,
    names_by_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.package.files import slash_hint
from evalmeta.package.folders import find_components, refuse_problems
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.project import Project, api_version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.registry import ApiVersion, Component, Manifest, MetadataType
    from evalmeta.xmlio.definitions import Locate


_Names: TypeAlias = "Mapping[str, Sequence[str]]"
# Finding the nearest name takes far longer than finding a name.
_HINTED_MEMBERS: Final = 25


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected folders and files, or a manifest, or `Type:Name` entries; everything if all are empty.

    Raises:
        UsageError: More than one of the three is used.
    """

    source_dirs: tuple[Path, ...] = ()
    manifest: Path | None = None
    metadata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that only one of the three is used."""
        if sum((bool(self.source_dirs), self.manifest is not None, bool(self.metadata))) > 1:
            raise UsageError(
                "--source-dir, --manifest and --metadata cannot be combined.",
                actions=("Use only one of them; --source-dir and --metadata can be repeated.",),
            )

    @property
    def is_everything(self) -> bool:
        """Return whether all components are selected."""
        return not (self.source_dirs or self.manifest or self.metadata)


def components_under(project: Project, components: Sequence[Component], paths: Sequence[Path]) -> tuple[Component, ...]:
    """Return the components that are one of the files or in one of the folders, in their order.

    Raise NotFound if a path contains no components, and ProjectError if it is outside the package directories.
    """
    wanted = {_real(path): path for path in paths}
    hit: set[Path] = set()
    chosen: list[Component] = []
    for component in components:
        around = wanted.keys() & {component.path, *component.files, *component.path.parents}
        if around:
            hit |= around
            chosen.append(component)
    for real, path in wanted.items():
        if real not in hit:
            raise _nothing_under(project, path, real)
    return tuple(chosen)


def _real(path: Path) -> Path:
    """Return a path like those of components: links to folders are resolved, a link to a file is kept."""
    if path.is_dir():
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


def _nothing_under(project: Project, path: Path, real: Path) -> ProjectError | NotFound:
    if not path.exists():
        return NotFound(f"{path}: the file or folder does not exist.", actions=slash_hint(path))
    if not any(
        real.is_relative_to(directory) or directory.is_relative_to(real) for directory in project.package_directories
    ):
        folders = ", ".join(directory.relative_to(project.root).as_posix() for directory in project.package_directories)
        return ProjectError(
            f"{path}: is outside the project's package directories ({folders}).",
            actions=("Name a file or folder inside them, or add a package directory to sfdx-project.json.",),
        )
    line = read_forceignore(project.root).find_line(real, is_folder=path.is_dir())
    if line is not None:
        return NotFound(f"{path}: is ignored by {line}.")
    kind = "contains no components" if path.is_dir() else "is not a component"
    return NotFound(f"{path}: {kind}.")


class MemberPattern(NamedTuple):
    """A type and a full name, in which `*` matches any characters and `?` any one."""

    type: MetadataType
    name: str

    def __str__(self) -> str:
        """Return the entry as it is written."""
        return f"{self.type.name}:{self.name}"

    @property
    def is_whole_type(self) -> bool:
        """Return whether it matches all components of the type."""
        return self.name == WILDCARD

    @property
    def is_wild(self) -> bool:
        """Return whether the name has wildcards."""
        return not {"*", "?"}.isdisjoint(self.name)


def parse_members(entries: Iterable[str]) -> tuple[MemberPattern, ...]:
    """Parse entries, without duplicates; raise UsageError or NotFound for malformed entries or unknown types."""
    return tuple(dict.fromkeys(_parse(entry) for entry in entries))


def match_names(patterns: Sequence[MemberPattern], names: Mapping[str, Sequence[str]], *, where: str) -> set[str]:
    """Return the keys (`Type:Name`) that patterns select; raise NotFound if some patterns match nothing.

    `names` are the full names by type; `where` is what they belong to, for messages: `the project`.
    """
    selected: set[str] = set()
    missing: list[MemberPattern] = []
    for pattern in patterns:
        found = _matching(pattern, names.get(pattern.type.name, ()))
        selected.update(f"{pattern.type.name}:{name}" for name in found)
        if not found:
            missing.append(pattern)
    if missing:
        listed = ", ".join(str(pattern) for pattern in missing)
        nearest = [
            (member_pattern.type.name, nearest_word(member_pattern.name, names.get(member_pattern.type.name, ())))
            for member_pattern in missing[:_HINTED_MEMBERS]
        ]
        hints = dict.fromkeys(f"Did you mean {kind}:{name}?" for kind, name in nearest if name)
        raise NotFound(f"{where} has no {listed}.", actions=tuple(hints))
    return selected


def components_named(
    components: Sequence[Component], patterns: Sequence[MemberPattern], *, where: str = "the project"
) -> tuple[Component, ...]:
    """Return the components that patterns select, in their order; `where` and errors are those of `match_names`."""
    selected = match_names(patterns, names_by_type(components), where=where)
    return tuple(component for component in components if component.key in selected)


def _parse(entry: str) -> MemberPattern:
    type_name, colon, name = (part.strip() for part in entry.partition(":"))
    if not type_name or (colon and not name):
        raise UsageError(
            f"--metadata {entry!r} is not a valid Type or Type:Name.",
            actions=(f"Write it as {TYPES[0].name}:Full_Name.",),
        )
    row = metadata_type(type_name)
    if row is None:
        near = nearest_type_name(type_name)
        hints = [f"Did you mean {near}?" if near else f"Known types: {', '.join(kind.name for kind in TYPES)}."]
        if not (near or colon):
            hints.insert(0, f"Name a component with its type: {TYPES[0].name}:{type_name}")
        raise NotFound(f"evalmeta does not handle the type {type_name!r}.", actions=hints)
    return MemberPattern(row, name or WILDCARD)


def _matching(pattern: MemberPattern, names: Sequence[str]) -> list[str]:
    if not pattern.is_wild:
        return [name for name in names if name == pattern.name]
    matches = re.compile(translate(pattern.name.replace("[", "[[]"))).match
    return [name for name in names if matches(name)]


class Choice(NamedTuple):
    """The components that a manifest selects, and the problems of its entries."""

    components: tuple[Component, ...]
    problems: tuple[Problem, ...]


def resolve(
    project: Project,
    *,
    manifest: Manifest | None = None,
    manifest_path: Path | None = None,
    api_version: ApiVersion | None = None,
    locate: Locate | None = None,
    may_be_empty: bool = False,
) -> ComponentSet:
    """Return the components to deploy: all of the project, or those that the manifest selects.

    `api_version` is by default that of the manifest, or of the project, or the newest one. `locate` returns line and
    column of a type name, as the manifest spells it, and its member; the member is empty for the type, both are empty
    for the manifest. With `may_be_empty`, as beside destructive changes, the manifest may select nothing. Raise
    InvalidMetadata if it names components that the project does not have, and ProjectError like `find_components`.
    """
    components = find_components(project)
    if manifest is None:
        return ComponentSet(components, api_version or api_version_of(project))
    choice = choose(
        components,
        manifest,
        namespace=project.namespace,
        manifest_path=manifest_path,
        locate=locate,
        may_be_empty=may_be_empty,
    )
    refuse_problems(choice.problems)
    declared = parse_api_version(manifest.version) if manifest.version is not None else None
    version = api_version or declared or api_version_of(project)
    return ComponentSet(choice.components, version)


def choose(
    components: Sequence[Component],
    manifest: Manifest,
    *,
    namespace: str = "",
    manifest_path: Path | None = None,
    locate: Locate | None = None,
    may_be_empty: bool = False,
) -> Choice:
    """Return the components that a manifest selects; the other arguments are those of `resolve`.

    With the `namespace` of the project, `namespace__Name` means its file `Name`, unless it has one with the whole name.
    Other types of Salesforce are skipped; the reader of manifests reports them.
    """
    names: dict[str, list[str]] = {row.name: [] for row in TYPES} | names_by_type(components)
    path = str(manifest_path or PACKAGE_FILE)
    manifest = _without_namespace(manifest, names, namespace)

    def located(type_name: str, member: str) -> Location:
        return Location(path, *locate(type_name, member)) if locate else Location(path)

    problems = tuple(dict.fromkeys(_problems(manifest, names, located, may_be_empty=may_be_empty)))
    selected = frozenset(_selected_keys(manifest, names))
    return Choice(tuple(component for component in components if component.key in selected), problems)


def _without_namespace(manifest: Manifest, names: _Names, namespace: str) -> Manifest:
    """Return a manifest with the names that the project's files have."""
    if not namespace:
        return manifest

    def local(type_name: str, member: str) -> str:
        row = metadata_type(type_name)
        return member if row is None else local_name(member, names[row.name], namespace)

    blocks = (
        replace(block, members=tuple(local(block.name, member) for member in block.members)) for block in manifest.types
    )
    return replace(manifest, types=tuple(blocks))


def local_name(full_name: str, names: Collection[str], namespace: str) -> str:
    """Return the name without the namespace if a file has that name and none has the whole one."""
    own = full_name.removeprefix(f"{namespace}__") if namespace else full_name
    return own if own in names and full_name not in names else full_name


def _problems(
    manifest: Manifest, names: _Names, locate: Callable[[str, str], Location], *, may_be_empty: bool
) -> Iterator[Problem]:
    if manifest.version is not None and parse_api_version(manifest.version) is None:
        hint = f"Write a version such as {NEWEST_API_VERSION}."
        message = f"{manifest.version!r} is not a valid API version"
        yield Problem("manifest-version-invalid", Severity.ERROR, locate("", ""), message, hint)
    unresolved = [*_unknown_types(manifest, locate), *_missing_members(manifest, names, locate)]
    yield from unresolved
    if not (may_be_empty or unresolved or any(_selected_keys(manifest, names))):
        hint = "Add members that the project has, or `*` for all of a type."
        message = "the manifest selects nothing"
        yield Problem("manifest-selects-nothing", Severity.ERROR, locate("", ""), message, hint)


def _unknown_types(manifest: Manifest, locate: Callable[[str, str], Location]) -> Iterator[Problem]:
    for block in manifest.types:
        if metadata_type(block.name) or is_other_type(block.name):
            continue
        near = nearest_type_name(block.name)
        hint = f"Did you mean {near}?" if near else f"Known types: {', '.join(row.name for row in TYPES)}."
        message = f"evalmeta does not handle the type {block.name!r}"
        yield Problem("manifest-type-unknown", Severity.ERROR, locate(block.name, ""), message, hint)


def _missing_members(manifest: Manifest, names: _Names, locate: Callable[[str, str], Location]) -> Iterator[Problem]:
    known = {name: frozenset(full_names) for name, full_names in names.items()}
    named = (entry for entry in _entries(manifest) if entry[2] != WILDCARD)
    missing = (entry for entry in named if entry[2] not in known[entry[0]])
    for number, (name, spelt, member) in enumerate(missing):
        hint = _missing_hint(member, names[name]) if number < _HINTED_MEMBERS else ""
        message = f"the project has no {name} {member!r}"
        where = locate(spelt, member)
        yield Problem("manifest-member-missing", Severity.ERROR, where, message, hint, f"{name}:{member}")


def _selected_keys(manifest: Manifest, names: _Names) -> Iterator[str]:
    for name, _, member in _entries(manifest):
        members = names[name] if member == WILDCARD else (member,)
        yield from (f"{name}:{full_name}" for full_name in members)


def _entries(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield type name, type name as the manifest spells it, and member; each member of a type once."""
    united: dict[tuple[str, str], str] = {}
    for block in manifest.types:
        row = metadata_type(block.name)
        if row is None:
            continue
        for member in block.members:
            united.setdefault((row.name, member), block.name)
    return ((name, spelt, member) for (name, member), spelt in united.items())


def _missing_hint(member: str, names: Sequence[str]) -> str:
    if WILDCARD in member:
        return f"Write a <members> for each name, or only {WILDCARD} for all components of the type."
    near = nearest_word(member, names)
    return f"Did you mean {near}?" if near else ""
