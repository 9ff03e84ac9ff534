"""The files in the folders of a project, without those that `.forceignore` ignores, and its components among them."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import InvalidMetadata, ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import BUNDLE_TYPES, META_XML_SUFFIX, TYPES, Component, MetadataType
from evalmeta.package.components import entry_name
from evalmeta.package.files import is_safe_full_name, parse_file_name, read_text, shown, unsafe_name_problem
from evalmeta.package.project import PROJECT_FILE, Project, find_project

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


BUNDLE_FILES: Final = tuple(name for row in BUNDLE_TYPES.values() for name in row.bundle_files(""))
"""How the names of the files of bundles end."""
FORCEIGNORE_FILE: Final = ".forceignore"
# As in the sf CLI, they follow the lines of the file, so that no `!` can include such files again.
_DEFAULTS: Final = ("**/*.dup", "**/.*", "**/package2-descriptor.json", "**/package2-manifest.json")
# Backslashes between folders, but not the escapes of .gitignore: leading `\#` and `\!`, blanks, brackets, stars.
_SEPARATOR: Final = re.compile(r"\\(?=[\w.-])|(?<=.)\\(?=\*)|(?<=[^\\])\\$")
_GROUP_NAME: Final = re.compile(r"\(\?P<\w+>")
_END_BLANKS: Final = re.compile(r"(?<!\\) +$")


class IgnoreLine(NamedTuple):
    """A line of the file; the number is 0 for defaults."""

    number: int
    text: str

    def __str__(self) -> str:
        """Return the line and where it is, for messages."""
        place = f"{FORCEIGNORE_FILE}:{self.number}" if self.number else f"a default of {FORCEIGNORE_FILE}"
        return f"{self.text.strip()!r} ({place})"


class _Rule(NamedTuple):
    line: IgnoreLine
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool


class ForceIgnore:
    """The lines of a project's `.forceignore`; without the file nothing is ignored.

    As in git, the last line that matches a path decides, and everything in an ignored folder is ignored.

    Attributes:
        problems: warnings about lines that git reads differently.
    """

    __slots__ = ("_folders", "_may_match", "_root", "_rules", "problems")

    def __init__(self, root: Path, rules: Iterable[_Rule] = (), *, problems: Iterable[Problem] = ()) -> None:
        self._root = str(root).rstrip(os.sep) + os.sep
        self._rules = tuple(rules)[::-1]
        # One match excludes nearly every path that no rule matches.
        patterns = (f"(?:{_GROUP_NAME.sub('(?:', rule.regex.pattern)})" for rule in self._rules)
        self._may_match = re.compile("|".join(patterns)).match
        self._folders: dict[str, IgnoreLine | None] = {"": None}
        self.problems = tuple(problems)

    def ignores(self, path: Path | str, *, is_folder: bool = False) -> bool:
        """Return whether a file or folder inside the root is ignored, by itself or with a folder above it."""
        return bool(self._rules) and self.find_line(path, is_folder=is_folder) is not None

    def find_line(self, path: Path | str, *, is_folder: bool = False) -> IgnoreLine | None:
        """Return the line that ignores an absolute path inside the root; None if it is not ignored."""
        relative = str(path)[len(self._root) :].replace(os.sep, "/")
        if is_folder:
            return self._folder_line(relative)
        return self._folder_line(relative.rpartition("/")[0]) or self._line(relative, is_folder=False)

    def _folder_line(self, folder: str) -> IgnoreLine | None:
        if folder not in self._folders:
            above = self._folder_line(folder.rpartition("/")[0])
            self._folders[folder] = above or self._line(folder, is_folder=True)
        return self._folders[folder]

    def _line(self, path: str, *, is_folder: bool) -> IgnoreLine | None:
        if not self._may_match(path):
            return None
        for rule in self._rules:
            if rule.folders_only and not is_folder:
                continue
            match = rule.regex.match(path)
            # A group matched a folder above, which is checked separately.
            if match and match.lastindex is None:
                return rule.line if rule.ignores else None
        return None


def read_forceignore(root: Path) -> ForceIgnore:
    """Read the `.forceignore` in a project's root; raise ProjectError if a line is not a valid pattern."""
    file = root / FORCEIGNORE_FILE
    if not file.is_file():
        return ForceIgnore(root)
    texts = (text.removesuffix("\r") for text in read_text(file, raises=ProjectError).split("\n"))
    lines = [IgnoreLine(number, text) for number, text in enumerate(texts, 1)]
    rules = (_rule(file, line) for line in (*lines, *(IgnoreLine(0, default) for default in _DEFAULTS)))
    problems = (_backslash(file, line) for line in lines if _has_separator(line.text))
    return ForceIgnore(root, [rule for rule in rules if rule], problems=problems)


def _rule(file: Path, line: IgnoreLine) -> _Rule | None:
    from pathspec import GitIgnoreSpec

    spelt = _SEPARATOR.sub("/", line.text) if _has_separator(line.text) else line.text
    pattern = _END_BLANKS.sub("", spelt)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parsed = GitIgnoreSpec.from_lines([pattern.rstrip("/")]).patterns
    except (ValueError, re.error, Warning) as error:
        reason = str(error).partition(" at position")[0]
        raise ProjectError(
            f"{file}:{line.number}: {line.text.strip()!r} is not a valid pattern: {reason}.",
            actions=("Correct the line; its syntax is that of .gitignore.",),
        ) from error
    if not parsed or parsed[0].include is None or parsed[0].regex is None:
        return None
    return _Rule(line, parsed[0].regex, parsed[0].include, pattern.endswith("/"))


def _has_separator(text: str) -> bool:
    return not text.startswith("#") and _SEPARATOR.search(text) is not None


def _backslash(file: Path, line: IgnoreLine) -> Problem:
    location = Location(str(file), line.number, line.text.index("\\") + 1)
    message = f"{line.text.strip()!r} has a backslash between folders, which is read as a slash"
    return Problem("forceignore-backslash", Severity.WARNING, location, message, "Write / between folders.")


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
