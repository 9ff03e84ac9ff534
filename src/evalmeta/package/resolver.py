"""The components of a project by the names of their files, and those that a manifest selects."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from evalmeta.errors import EvalmetaError, InvalidMetadata, ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    OLDEST_API_VERSION,
    PACKAGE_FILE,
    TYPES,
    WILDCARD,
    Component,
    ComponentSet,
    is_other_type,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.package.files import parse_file_name, read_file, shown, unsafe_name_problem
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.project import PROJECT_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.registry import ApiVersion, Manifest
    from evalmeta.package.forceignore import ForceIgnore
    from evalmeta.package.project import Project
    from evalmeta.xmlio.definitions import Locate


_Names: TypeAlias = "Mapping[str, Sequence[str]]"
# Finding the nearest name takes far longer than finding a name.
HINTED_MEMBERS: Final = 25
_SKIPPED: Final = "node_modules"


class Choice(NamedTuple):
    """The components that a manifest selects, and the problems of its entries."""

    components: tuple[Component, ...]
    problems: tuple[Problem, ...]


def find_components(project: Project) -> tuple[Component, ...]:
    """Return the project's components, sorted by type and full name.

    Raise InvalidMetadata if two files have the same full name or a file has an unsafe one, and ProjectError if a
    folder cannot be read or a package directory is not a folder.
    """
    components = list_files(project)
    _refuse(tuple(name_problems(components)))
    return components


def list_files(project: Project) -> tuple[Component, ...]:
    """Return the project's components like `find_components`, including files with unsafe or duplicate names."""
    try:
        return tuple(sorted(component_files(project), key=lambda file: (file.type.name, file.full_name, file.path)))
    except OSError as error:
        raise ProjectError(f"{error.filename}: cannot be read: {error.strerror}.") from error


def name_problems(components: Sequence[Component]) -> Iterator[Problem]:
    """Yield a problem for each file with an unsafe full name or, ignoring case, the name of another file."""
    first: dict[str, Component] = {}
    for component in components:
        label = shown(component.path)
        if unsafe := unsafe_name_problem(component, label):
            yield unsafe
        other = first.setdefault(component.key.casefold(), component)
        if other is component:
            continue
        yield Problem(
            code="full-name-duplicate",
            severity=Severity.ERROR,
            location=Location(label),
            message=f"{shown(other.path)} and {label} have the same full name, {component.full_name!r}",
            hint="Rename or remove one of the files: a full name is unique in an org, in any case.",
            component=component.key,
        )


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
    choice = choose(components, manifest, manifest_path=manifest_path, locate=locate, may_be_empty=may_be_empty)
    _refuse(choice.problems)
    declared = parse_api_version(manifest.version) if manifest.version is not None else None
    version = api_version or declared or api_version_of(project)
    return ComponentSet(choice.components, version)


def choose(
    components: Sequence[Component],
    manifest: Manifest,
    *,
    manifest_path: Path | None = None,
    locate: Locate | None = None,
    may_be_empty: bool = False,
) -> Choice:
    """Return the components that a manifest selects; the arguments are those of `resolve`.

    Other types of Salesforce are skipped; the reader of manifests reports them.
    """
    names: dict[str, list[str]] = {row.name: [] for row in TYPES}
    for component in components:
        names[component.type.name].append(component.full_name)
    path = str(manifest_path or PACKAGE_FILE)

    def located(type_name: str, member: str) -> Location:
        return Location(path, *locate(type_name, member)) if locate else Location(path)

    problems = tuple(dict.fromkeys(_problems(manifest, names, located, may_be_empty=may_be_empty)))
    selected = frozenset(_selected_keys(manifest, names))
    return Choice(tuple(component for component in components if component.key in selected), problems)


def api_version_of(project: Project) -> ApiVersion:
    """Return the API version with which a project is deployed by default; raise ProjectError if it is too old."""
    version = version_in_force(project)
    if version >= OLDEST_API_VERSION:
        return version
    raise ProjectError(
        f"the version in {PACKAGE_FILE}, {version}, is too old: {TYPES[0].name} needs {OLDEST_API_VERSION} or later.",
        actions=(f"Write <version>{OLDEST_API_VERSION}</version> in {PACKAGE_FILE}.",),
    )


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        hints = dict.fromkeys(problem.hint for problem in problems if problem.hint)
        message = f"{problems[0].location}: {problems[0].message}{more}"
        raise InvalidMetadata(message, problems=problems, actions=tuple(hints))


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
        hint = _missing_hint(member, names[name]) if number < HINTED_MEMBERS else ""
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
    near = nearest_name(member, names)
    return f"Did you mean {near}?" if near else ""


def nearest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name that is most like another, ignoring case; None if none is like it."""
    folded = {text.casefold(): text for text in names}
    near = get_close_matches(name.casefold(), folded, n=1)
    return folded[near[0]] if near else None


def version_in_force(project: Project) -> ApiVersion:
    """Return a DX project's sourceApiVersion, or the version in a plain folder's `package.xml`, or the newest one.

    A sourceApiVersion that is too old for agent tests is raised: it is also that of the project's other metadata. A
    `package.xml` that cannot be read has no version; validation reports why.
    """
    if project.api_version is not None:
        return max(project.api_version, OLDEST_API_VERSION)
    return _declared(project) or NEWEST_API_VERSION


def _declared(project: Project) -> ApiVersion | None:
    path = project.root / PACKAGE_FILE
    if project.is_dx or not path.is_file():
        return None
    from evalmeta.xmlio.definitions import read_manifest
    from evalmeta.xmlio.reader import read_xml

    try:
        manifest = read_manifest(read_xml(read_file(path), label=PACKAGE_FILE))
    except EvalmetaError:
        return None
    return parse_api_version(manifest.version or "")


def component_files(project: Project, ignore: ForceIgnore | None = None) -> Iterator[Component]:
    """Yield the components of the project, in no particular order.

    In a DX project, components can be in any folder of a package directory, except hidden ones and `node_modules`; in
    a plain folder, only in the folder of their type. Symlinks inside the project are followed, each folder once.
    Files that `.forceignore` ignores are skipped, or those of `ignore`. Raise OSError if a folder cannot be read.
    """
    ignore = ignore or read_forceignore(project.root)
    return _in_package_directories(project, ignore) if project.is_dx else _in_type_folders(project, ignore)


def _in_package_directories(project: Project, ignore: ForceIgnore) -> Iterator[Component]:
    pending = [directory for directory in project.package_directories if not _hides(ignore, directory)]
    _expect_folders(project, pending)
    visited: set[Path] = set()
    while pending:
        folder = pending.pop()
        if folder in visited:
            continue
        visited.add(folder)
        for entry in _folder_entries(folder, project.root):
            if not entry.is_dir():
                yield from _component(entry, ignore)
                continue
            target = _real(entry) if entry.is_symlink() else Path(entry.path)
            skipped = entry.name.startswith(".") or entry.name == _SKIPPED
            if not (skipped or _hides(ignore, Path(entry.path)) or _hides(ignore, target)):
                pending.append(target)


def _expect_folders(project: Project, directories: Sequence[Path]) -> None:
    for directory in directories:
        if not directory.is_dir():
            what = "is not a folder" if directory.exists() else "does not exist"
            name = directory.relative_to(project.root).as_posix()
            raise ProjectError(
                f"{shown(project.root / PROJECT_FILE)}: the package directory {name!r} {what}.",
                actions=(f"Create the folder {shown(directory)}, or correct packageDirectories.",),
            )


def _in_type_folders(project: Project, ignore: ForceIgnore) -> Iterator[Component]:
    for row in TYPES:
        link = project.root / row.directory
        folder = Path(os.path.realpath(link))
        if not (folder.is_dir() and folder.is_relative_to(project.root)) or _hides(ignore, link):
            continue
        found = (
            component for entry in _folder_entries(folder, project.root) for component in _component(entry, ignore)
        )
        yield from (component for component in found if component.type == row)


def _folder_entries(folder: Path, root: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_symlink() or ((target := _real(entry)).is_relative_to(root) and target.exists()):
                yield entry


def _real(entry: os.DirEntry[str]) -> Path:
    return Path(os.path.realpath(entry.path))


def _hides(ignore: ForceIgnore, folder: Path) -> bool:
    return ignore.ignores(folder, is_folder=True)


def _component(entry: os.DirEntry[str], ignore: ForceIgnore) -> Iterator[Component]:
    named = parse_file_name(entry.name)
    if named and entry.is_file() and not ignore.ignores(entry.path):
        yield Component(*named, Path(entry.path))
