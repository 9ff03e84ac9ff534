"""The project around a folder: a Salesforce DX project, or a plain folder in metadata format."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.errors import NotFound, ProjectError
from evalmeta.model.registry import TYPES
from evalmeta.package.markers import PROJECT_FILE, SETTINGS_FILE, STATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.registry import ApiVersion
    from evalmeta.model.settings import Settings
    from evalmeta.package.projectfile import PackageDirectory

__all__ = ["Project", "find_project", "has_project"]

_TRACES: Final = ("package.xml", *(row.directory for row in TYPES))


@dataclass(frozen=True, slots=True)
class Project:
    """A project on disk.

    Attributes:
        root: the folder with the project's files, absolute, symlinks resolved.
        is_dx: True for source format (`sfdx-project.json`), False for metadata format.
        package_directories: absolute, the default one first; the root alone in a plain folder.
        api_version: sourceApiVersion, None when the project names none.
        namespace: the namespace of `sfdx-project.json`, empty without one.
        declared: what `evalmeta.toml` says, None without that file.
    """

    root: Path
    is_dx: bool
    package_directories: tuple[Path, ...]
    api_version: ApiVersion | None
    namespace: str = ""
    declared: Settings | None = None

    @property
    def settings(self) -> Settings:
        """Gives the settings in force: those of `evalmeta.toml`, or the defaults."""
        from evalmeta.model.settings import Settings  # noqa: PLC0415 - pydantic, which checking files does without

        return self.declared or Settings()

    @property
    def state_dir(self) -> Path:
        """Gives the folder for state: EVALMETA_HOME when it is set and not empty, else `.evalmeta` in the root."""
        home = os.environ.get("EVALMETA_HOME")
        return Path(home).absolute() if home else self.root / STATE_FOLDER


def find_project(start: Path, *, or_folder: bool = False) -> Project:
    """Finds the project that a file or folder belongs to.

    The nearest folder, from `start` up, with `sfdx-project.json`, `evalmeta.toml`,
    `package.xml` or `aiEvaluationDefinitions` is the root. The last two also occur
    inside DX projects, so a `sfdx-project.json` above them comes first. Without any of
    them, the folder itself is a project when runs have left their state in it, or when
    `or_folder` says so.

    Raises:
        NotFound: `start` does not exist.
        ProjectError: there is no project, or its `sfdx-project.json` is wrong.
        SettingsError: its `evalmeta.toml` is wrong.
    """
    try:
        folders = _folders(start)
        root = _root_among(folders)
        if root is None and (or_folder or (folders[0] / STATE_FOLDER).is_dir()):
            root = folders[0]
        if root is None:
            raise _no_project(folders[0])
        return _open_project(root)
    except OSError as error:
        raise ProjectError(f"{error.filename or start}: cannot be read: {error.strerror}.") from error


def has_project(start: Path) -> bool:
    """Says whether a file or folder belongs to a project, however wrong that is."""
    return start.exists() and _root_among(_folders(start)) is not None


def _folders(start: Path) -> tuple[Path, ...]:
    if not start.exists():
        raise NotFound(f"{start}: there is no such file or folder.")
    here = start.resolve()
    return (here, *here.parents) if here.is_dir() else tuple(here.parents)


def _root_among(folders: Sequence[Path]) -> Path | None:
    trace: Path | None = None
    for folder in folders:
        if (folder / PROJECT_FILE).is_file():
            return folder
        if trace is None and (folder / SETTINGS_FILE).is_file():
            return folder
        if trace is None and _has_trace(folder):
            trace = folder
    return trace


def _has_trace(folder: Path) -> bool:
    manifest, *directories = (folder / name for name in _TRACES)
    return manifest.is_file() or any(directory.is_dir() for directory in directories)


def _no_project(folder: Path) -> ProjectError:
    wanted = ", ".join((PROJECT_FILE, SETTINGS_FILE, *_TRACES))
    return ProjectError(
        f"There is no project in {folder} or above it; looked for {wanted}.",
        actions=(
            f"Change to the folder of a Salesforce DX project (it has {PROJECT_FILE}).",
            f"Or make this folder a project: create an empty {SETTINGS_FILE} and a folder {TYPES[0].directory}.",
        ),
    )


def _open_project(root: Path) -> Project:
    settings = _load_settings(root / SETTINGS_FILE)
    file = root / PROJECT_FILE
    if not file.is_file():
        return Project(root, is_dx=False, package_directories=(root,), api_version=None, declared=settings)
    from evalmeta.package.projectfile import read_project_file  # noqa: PLC0415 - only DX projects have one

    project = read_project_file(file)
    return Project(
        root,
        is_dx=True,
        package_directories=_package_directories(file, project.package_directories),
        api_version=project.source_api_version,
        namespace=project.namespace,
        declared=settings,
    )


def _load_settings(file: Path) -> Settings | None:
    if not file.is_file():
        return None
    # pydantic costs as much as all else that checking a file does: only who has settings pays for it.
    from evalmeta.package.settings import load_settings  # noqa: PLC0415

    return load_settings(file)


def _package_directories(file: Path, declared: Sequence[PackageDirectory]) -> tuple[Path, ...]:
    ordered = sorted(declared, key=lambda directory: not directory.default)
    paths: dict[Path, None] = {}
    for directory in ordered:
        path = Path(os.path.realpath(file.parent / directory.path))
        if not path.is_relative_to(file.parent):
            raise ProjectError(f"{file}: the package directory {directory.path!r} lies outside the project.")
        paths[path] = None
    return tuple(paths)
