"""The project of a folder: a Salesforce DX project, or a plain folder in metadata format.

`sfdx-project.json` is checked by hand, because pydantic would take longer to import than checking a whole project.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.errors import EvalmetaError, NotFound, ProjectError, UsageError
from evalmeta.model.registry import NEWEST_API_VERSION, OLDEST_API_VERSION, PACKAGE_FILE, TYPES, parse_api_version
from evalmeta.model.store import STORE_VARIABLE, Store, read_store_url
from evalmeta.package.files import key_name, read_file, read_text
from evalmeta.package.replacements import NO_REPLACEMENTS, Replacements, read_replacements, replacement_faults
from evalmeta.package.trust import STATE_FOLDER, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.registry import ApiVersion
    from evalmeta.model.settings import Settings

    # An invalid value: the keys that lead to it, and the reason.
    _Fault = tuple[tuple[str | int, ...], str]


PROJECT_FILE: Final = "sfdx-project.json"
SETTINGS_FILE: Final = "evalmeta.toml"
ON_VARIABLE: Final = "EVALMETA_ON"
_MARKERS: Final = (PACKAGE_FILE, *(row.directory for row in TYPES))
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NAMESPACE: Final = re.compile(r"(?:(?=.{1,15}\Z)[A-Za-z](?:_?[A-Za-z0-9])*)?")
_EXAMPLE: Final = 'such as [{"path": "force-app", "default": true}]'


@dataclass(frozen=True, slots=True)
class Project:
    """A project on disk.

    Attributes:
        root: the folder with the project's files, absolute, symlinks resolved.
        is_dx: True for source format (`sfdx-project.json`), False for metadata format.
        package_directories: absolute paths, the default one first; only the root in a plain folder.
        api_version: the sourceApiVersion; None if it is not set.
        namespace: the namespace of `sfdx-project.json`, or empty.
        replacements: what is replaced in files that are deployed.
        declared: the settings of `evalmeta.toml`; None without that file.
        store_url: the URL of a shared store as it is declared, which may have a password; empty for the state folder.
        home: the state folder that a command uses instead of the usual one.
        is_archive: whether that has an archive of runs, which was loaded to be read.
        on: the cluster whose machines ask the cases, such as `ray`; empty for this machine.
    """

    root: Path
    is_dx: bool
    package_directories: tuple[Path, ...]
    api_version: ApiVersion | None
    namespace: str = ""
    replacements: Replacements = NO_REPLACEMENTS
    declared: Settings | None = None
    store_url: str = field(default="", repr=False)
    home: Path | None = None
    is_archive: bool = False
    on: str = ""

    @property
    def settings(self) -> Settings:
        """Return the settings of `evalmeta.toml`, or the defaults."""
        return settings_of(self)

    @property
    def state_dir(self) -> Path:
        """Return the folder for state: EVALMETA_HOME if it is set, or else `.evalmeta` in the root."""
        home = self.home or os.environ.get("EVALMETA_HOME")
        return Path(home).absolute() if home else self.root / STATE_FOLDER

    @property
    def store(self) -> Store:
        """Return where the runs are stored; raise UsageError if the declared URL is none of a store."""
        if not self.store_url:
            return Store(self.state_dir)
        try:
            return Store(self.state_dir, read_store_url(self.store_url))
        except ValueError as error:
            raise UsageError(f"{STORE_VARIABLE} {error}") from None


def settings_of(project: Project | None) -> Settings:
    """Return the settings of a project's `evalmeta.toml`, or the defaults."""
    from evalmeta.model.settings import Settings

    return (project and project.declared) or Settings()


def find_project(start: Path, *, or_folder: bool = False, with_settings: bool = True) -> Project:
    """Return the project of a file or folder.

    The root is the nearest folder, from `start` up, with `sfdx-project.json`, `evalmeta.toml`, `package.xml` or
    `aiEvaluationDefinitions`. The last two also occur inside DX projects, so a `sfdx-project.json` above them comes
    first. If there is none, the folder itself is the root if it contains the state of runs, or with `or_folder`.
    Without `with_settings`, `evalmeta.toml` is not read, which saves most of the time.

    Raises:
        NotFound: `start` does not exist.
        ProjectError: There is no project, or its `sfdx-project.json` is not valid, or one of the two files belongs to
            another user and EVALMETA_SAFE_FOLDERS does not name its folder.
        SettingsError: Its `evalmeta.toml` is not valid.
    """
    try:
        folders = _folders(start)
        root = _root_among(folders)
        if root is None and (or_folder or (folders[0] / STATE_FOLDER).is_dir()):
            root = folders[0]
        if root is None:
            raise _no_project(folders[0])
        return _open_project(root, with_settings=with_settings)
    except OSError as error:
        raise ProjectError(f"{error.filename or start}: cannot be read: {error.strerror}.") from error


def has_project(start: Path) -> bool:
    """Return whether a file or folder belongs to a project, even if the project is not valid."""
    return start.exists() and _root_among(_folders(start)) is not None


def _folders(start: Path) -> tuple[Path, ...]:
    if not start.exists():
        raise NotFound(f"{start}: the file or folder does not exist.")
    here = start.resolve()
    return (here, *here.parents) if here.is_dir() else tuple(here.parents)


def _root_among(folders: Sequence[Path]) -> Path | None:
    marked: Path | None = None
    for folder in folders:
        if (folder / PROJECT_FILE).is_file():
            return folder
        if marked is None and (folder / SETTINGS_FILE).is_file():
            return folder
        manifest, *directories = (folder / name for name in _MARKERS)
        if marked is None and (manifest.is_file() or any(directory.is_dir() for directory in directories)):
            marked = folder
    return marked


def _no_project(folder: Path) -> ProjectError:
    wanted = ", ".join((PROJECT_FILE, SETTINGS_FILE, *_MARKERS))
    return ProjectError(
        f"There is no project in {folder} or above it; searched for {wanted}.",
        actions=(
            f"Change to the folder of a Salesforce DX project (it has {PROJECT_FILE}).",
            "Or start a project in this folder: evalmeta init, or evalmeta init --dx for Salesforce DX.",
            "Or name files, which need no project: evalmeta validate FILE, evalmeta test run FILE.",
        ),
    )


def _open_project(root: Path, *, with_settings: bool) -> Project:
    for name in (SETTINGS_FILE, PROJECT_FILE):
        if (root / name).is_file():
            refuse_foreign(root / name)
    settings = None
    if with_settings and (root / SETTINGS_FILE).is_file():
        from evalmeta.package.settings import load_settings

        settings = load_settings(root / SETTINGS_FILE)
    # Code that runs later may remove the variable from the environment, because its value is a secret.
    opened = Project(
        root,
        is_dx=False,
        package_directories=(root,),
        api_version=None,
        declared=settings,
        store_url=os.environ.get(STORE_VARIABLE) or (settings.store.url if settings else ""),
        on=os.environ.get(ON_VARIABLE, ""),
    )
    file = root / PROJECT_FILE
    if not file.is_file():
        return opened
    project = read_project_file(file)
    return replace(
        opened,
        is_dx=True,
        package_directories=_package_directories(file, project.package_directories),
        api_version=project.source_api_version,
        namespace=project.namespace,
        replacements=project.replacements,
    )


def _package_directories(file: Path, declared: Sequence[str]) -> tuple[Path, ...]:
    paths: dict[Path, None] = {}
    for directory in declared:
        path = Path(os.path.realpath(file.parent / directory))
        if not path.is_relative_to(file.parent):
            raise ProjectError(f"{file}: the package directory {directory!r} is outside the project.")
        paths[path] = None
    return tuple(paths)


class ProjectFile(NamedTuple):
    """The keys of `sfdx-project.json` that evalmeta uses."""

    package_directories: tuple[str, ...]  # relative, with forward slashes, the default one first
    source_api_version: ApiVersion | None = None
    namespace: str = ""
    replacements: Replacements = NO_REPLACEMENTS


def read_project_file(file: Path) -> ProjectFile:
    """Read `sfdx-project.json`; the ProjectError of an invalid file has a line for each value, with file and key."""
    try:
        content: object = orjson.loads(read_text(file, raises=ProjectError))
    except orjson.JSONDecodeError as error:
        raise ProjectError(f"{file}:{error.lineno}:{error.colno}: is not valid JSON: {error.msg}.") from error
    faults = list(_faults(content))
    if faults or not isinstance(content, dict):
        findings = (": ".join(filter(None, (str(file), key_name(keys), reason))) + "." for keys, reason in faults)
        raise ProjectError("\n".join(findings), actions=(f"Correct {file}; nothing was done.",))
    rows = sorted(content["packageDirectories"], key=lambda row: not row.get("default", False))
    return ProjectFile(
        tuple(_slashed(row["path"]) for row in rows),
        parse_api_version(content.get("sourceApiVersion") or ""),
        content.get("namespace") or "",
        read_replacements(file, content.get("replacements")),
    )


def _faults(content: object) -> Iterator[_Fault]:
    if not isinstance(content, dict):
        yield (), "must be a JSON object, in braces"
        return
    yield from _directory_faults(content)
    version, namespace = content.get("sourceApiVersion"), content.get("namespace")
    if version is not None and not (isinstance(version, str) and parse_api_version(version)):
        yield ("sourceApiVersion",), f'must be an API version in quotes, such as "{NEWEST_API_VERSION}"'
    if not (namespace is None or (isinstance(namespace, str) and _NAMESPACE.fullmatch(namespace))):
        reason = "must be a namespace: up to 15 letters, digits and single underscores, beginning with a letter"
        yield ("namespace",), reason
    yield from replacement_faults(content.get("replacements"))


def _directory_faults(content: dict[str, object]) -> Iterator[_Fault]:
    key = "packageDirectories"
    if key not in content:
        yield (key,), f"is missing; it lists the folders of the project, {_EXAMPLE}"
        return
    rows = content[key]
    if not isinstance(rows, list):
        yield (key,), f"must be a list of folders, {_EXAMPLE}"
    elif not rows:
        yield (key,), f"is empty; a project has at least one folder, {_EXAMPLE}"
    else:
        for index, row in enumerate(rows):
            yield from (((key, index, *keys), reason) for keys, reason in _row_faults(row))
        if sum(isinstance(row, dict) and row.get("default") is True for row in rows) > 1:
            yield (key,), "only one package directory can be the default"


def _row_faults(row: object) -> Iterator[_Fault]:
    if not isinstance(row, dict):
        yield (), 'must be an object with a path, such as {"path": "force-app"}'
        return
    if reason := _path_fault(row.get("path")):
        yield ("path",), reason
    if not isinstance(row.get("default", False), bool):
        yield ("default",), "must be true or false"


def _path_fault(path: object) -> str | None:
    if path is None:
        return "is missing; it is the path of the folder"
    if not isinstance(path, str) or not path or _CONTROL.search(path):
        return "must be the path of a folder"
    posix = _slashed(path)
    if PurePosixPath(posix).is_absolute() or PureWindowsPath(posix).drive:
        return "must be relative to the project's folder"
    return None


def _slashed(path: str) -> str:
    # Projects saved on Windows may have backslashes between folders.
    return path.replace("\\", "/")


def api_version_of(project: Project) -> ApiVersion:
    """Return the API version with which a project is deployed by default; raise ProjectError if it is too old."""
    version = version_in_force(project)
    if version >= OLDEST_API_VERSION:
        return version
    raise ProjectError(
        f"the version in {PACKAGE_FILE}, {version}, is too old: {TYPES[0].name} needs {OLDEST_API_VERSION} or later.",
        actions=(f"Write <version>{OLDEST_API_VERSION}</version> in {PACKAGE_FILE}.",),
    )


def version_in_force(project: Project) -> ApiVersion:
    """Return a DX project's sourceApiVersion, or the version in a plain folder's `package.xml`, or the newest one.

    A sourceApiVersion that is too old for agent tests is raised: it is also that of the project's other metadata. A
    `package.xml` that cannot be read has no version; validation reports why.
    """
    if project.api_version is not None:
        return max(project.api_version, OLDEST_API_VERSION)
    return _declared_version(project) or NEWEST_API_VERSION


def _declared_version(project: Project) -> ApiVersion | None:
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
