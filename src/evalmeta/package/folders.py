"""The files in the folders of a project, without those that `.forceignore` ignores, and its components among them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import InvalidMetadata, ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import BUNDLE_TYPES, META_XML_SUFFIX, TYPES, Component, MetadataType
from evalmeta.package.components import entry_name
from evalmeta.package.files import is_safe_full_name, parse_file_name, shown, unsafe_name_problem
from evalmeta.package.forceignore import ForceIgnore, read_forceignore
from evalmeta.package.project import PROJECT_FILE, Project, find_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


BUNDLE_FILES: Final = tuple(name for row in BUNDLE_TYPES.values() for name in row.bundle_files(""))
"""How the names of the files of bundles end."""
_NODE_MODULES: Final = "node_modules"
_SKIPPED: Final = frozenset({_NODE_MODULES, "__pycache__"})
# Every virtual environment of Python has this file (PEP 405).
_VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders, in no particular order.

    Hidden files and folders, `node_modules`, `__pycache__`, virtual environments and what the project's `.forceignore`
    ignores are skipped, unless `folder` itself is one of them. Links to folders are not followed. Raise ProjectError if
    `.forceignore` is not valid.
    """
    root = os.path.realpath(folder)
    ignore = _ignore_of(folder)
    for where, folders, files in os.walk(root):
        if _VIRTUAL_ENVIRONMENT in files and where != root:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not _is_skipped(ignore, where, name)]
        below = folder / where[len(root) :].lstrip(os.sep)
        visible = (file for file in files if not file.startswith("."))
        yield from (below / text for text in visible if not ignore.ignores(f"{where}{os.sep}{text}"))


def ignored_below(folder: Path) -> str:
    """Return the first component below a folder that `.forceignore` ignores, and by which line; empty without one."""
    root = os.path.realpath(folder)
    ignore = _ignore_of(folder)
    for where, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not (name.startswith(".") or name in _SKIPPED))
        for name in sorted(name for name in files if name.endswith(BUNDLE_FILES) or parse_file_name(name)):
            if line := ignore.find_line(f"{where}{os.sep}{name}"):
                return f"{shown(folder / where[len(root) :].lstrip(os.sep) / name)} is ignored by {line}."
    return ""


def _is_skipped(ignore: ForceIgnore, where: str, folder: str) -> bool:
    if folder.startswith(".") or folder in _SKIPPED:
        return True
    return ignore.ignores(f"{where}{os.sep}{folder}", is_folder=True)


def _ignore_of(folder: Path) -> ForceIgnore:
    """Return the ignored files of the project around a folder; none if it has no project, or is ignored itself."""
    try:
        root = find_project(folder).root
    except ProjectError:
        return ForceIgnore(folder)
    ignore = read_forceignore(root)
    return ForceIgnore(root) if ignore.ignores(os.path.realpath(folder), is_folder=True) else ignore


def find_components(project: Project) -> tuple[Component, ...]:
    """Return the project's components, sorted by type and full name.

    Raise InvalidMetadata if two files have the same full name or a file has an unsafe one, and ProjectError if a
    folder cannot be read or a package directory is not a folder.
    """
    components = list_files(project)
    refuse_problems(tuple(name_problems(components)))
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


def component_files(project: Project, ignore: ForceIgnore | None = None) -> Iterator[Component]:
    """Yield the components of the project, in no particular order.

    In a DX project, components can be in any folder of a package directory, except hidden ones and `node_modules`; in
    a plain folder, only in the folder of their type. A bundle is a folder in the folder of its type, unless it is
    empty. Symlinks inside the project are followed, each folder once.
    Files that `.forceignore` ignores are skipped, or those of `ignore`. Raise OSError if a folder cannot be read.
    """
    ignore = ignore or read_forceignore(project.root)
    return _in_package_directories(project, ignore) if project.is_dx else _in_type_folders(project, ignore)


class _Folder(NamedTuple):
    """A folder to search: the type of bundles in it, or the type of the bundle that it is."""

    path: Path
    holds: MetadataType | None = None
    bundle: MetadataType | None = None

    def inner(self, name: str, path: Path) -> _Folder:
        """Return a folder in this one, by its name here; a link leads to another path."""
        if self.holds:
            return _Folder(path, bundle=self.holds)
        return _Folder(path, None if self.bundle else BUNDLE_TYPES.get(name))


def _in_package_directories(project: Project, ignore: ForceIgnore) -> Iterator[Component]:
    directories = [directory for directory in project.package_directories if not _hides(ignore, directory)]
    _expect_folders(project, directories)
    pending = [_Folder(directory, BUNDLE_TYPES.get(directory.name)) for directory in directories]
    visited: set[Path] = set()
    bundles: set[Path] = set()
    while pending:
        folder = pending.pop()
        if folder.bundle and folder.path not in bundles:
            bundles.add(folder.path)
            yield from _bundle_in(folder.path, folder.bundle, project.root, ignore)
        if folder.path in visited:
            continue
        visited.add(folder.path)
        for entry in _folder_entries(folder.path, project.root):
            if not entry.is_dir():
                yield from _component_of(entry, ignore)
                continue
            target = _real(entry) if entry.is_symlink() else Path(entry.path)
            if not (_is_left_out(entry, ignore) or _hides(ignore, target)):
                pending.append(folder.inner(entry.name, target))


def _is_left_out(folder: os.DirEntry[str], ignore: ForceIgnore) -> bool:
    return folder.name.startswith(".") or folder.name == _NODE_MODULES or _hides(ignore, Path(folder.path))


def _bundle_in(folder: Path, kind: MetadataType, root: Path, ignore: ForceIgnore) -> Iterator[Component]:
    """Yield the bundle whose folder it is; none if no file is in it. Definitions in it are components themselves."""
    files = tuple(sorted(_bundle_files(folder, root, ignore)))
    if files:
        yield Component(kind, folder.name, folder, files)


def _bundle_files(folder: Path, root: Path, ignore: ForceIgnore) -> Iterator[Path]:
    for entry in _folder_entries(folder, root):
        if entry.is_dir(follow_symlinks=False):
            if not _is_left_out(entry, ignore):
                yield from _bundle_files(Path(entry.path), root, ignore)
        elif not (_is_no_content(entry) or ignore.ignores(entry.path)):
            yield Path(entry.path)


def _is_no_content(entry: os.DirEntry[str]) -> bool:
    return entry.name.startswith(".") or not entry.is_file() or parse_file_name(entry.name) is not None


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
        for entry in _folder_entries(folder, project.root):
            if not row.is_bundle:
                yield from (component for component in _component_of(entry, ignore) if component.type == row)
            elif entry.is_dir() and not _is_left_out(entry, ignore):
                yield from _bundle_in(_real(entry), row, project.root, ignore)


def find_bundle(path: Path) -> Path | None:
    """Return the folder of the bundle to which a file belongs by its name and its folders; None if it has none.

    Other files in the folder of a bundle can be tests, for example.
    """
    if not path.name.endswith(BUNDLE_FILES):
        return None
    folder = path.absolute().parent
    if folder.parent.name not in BUNDLE_TYPES:
        return None
    return path.parent if path.parent.name == folder.name else folder


def open_bundle(folder: Path) -> Component | None:
    """Return the bundle in a folder of `find_bundle`, without ignored files; None if all are ignored."""
    real = Path(os.path.realpath(folder))
    kind = BUNDLE_TYPES[folder.absolute().parent.name]
    try:
        root = find_project(real, with_settings=False).root
    except ProjectError:
        root = real
    return next(_bundle_in(real, kind, root, _ignore_of(real)), None)


def _folder_entries(folder: Path, root: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_symlink() or ((target := _real(entry)).is_relative_to(root) and target.exists()):
                yield entry


def _real(entry: os.DirEntry[str]) -> Path:
    return Path(os.path.realpath(entry.path))


def _hides(ignore: ForceIgnore, folder: Path) -> bool:
    return ignore.ignores(folder, is_folder=True)


def _component_of(entry: os.DirEntry[str], ignore: ForceIgnore) -> Iterator[Component]:
    named = parse_file_name(entry.name)
    if named and entry.is_file() and not ignore.ignores(entry.path):
        yield Component(*named, Path(entry.path))


def refuse_problems(problems: Sequence[Problem]) -> None:
    """Raise InvalidMetadata if there are problems."""
    if problems:
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        hints = dict.fromkeys(problem.hint for problem in problems if problem.hint)
        message = f"{problems[0].location}: {problems[0].message}{more}"
        raise InvalidMetadata(message, problems=problems, actions=tuple(hints))


def target_path(project: Project, kind: MetadataType, full_name: str) -> Path:
    """Return the path of a component that the project does not have yet, always inside the project: a file or a folder.

    In a DX project, it is in `main/default` of the default package directory. Raise InvalidMetadata if the full name
    is not a valid file name, such as `../X` (code `full-name-unsafe`).
    """
    if not is_safe_full_name(full_name):
        message = f"the full name {full_name!r} is not a valid file name"
        location = Location(entry_name(kind, full_name))
        hint = "Rename the component in the org."
        problem = Problem("full-name-unsafe", Severity.ERROR, location, message, hint, f"{kind.name}:{full_name}")
        raise InvalidMetadata(message, problems=(problem,), actions=(hint,))
    name = full_name if kind.is_bundle else f"{full_name}.{kind.suffix}"
    if not project.is_dx:
        return project.root / kind.directory / name
    folder = project.package_directories[0] / "main" / "default" / kind.directory
    return folder / (name if kind.is_bundle else f"{name}{META_XML_SUFFIX}")
