"""Converting between source format and metadata format, which changes names and folders but not contents."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.api.selections import resolve
from evalmeta.errors import NotFound, ProjectError, UsageError
from evalmeta.model.component import PACKAGE_FILE
from evalmeta.package.archive import manifest_of
from evalmeta.package.files import META_XML_SUFFIX, entry_name, read_file, shown, state_of, write_below
from evalmeta.package.project import Project, find_project
from evalmeta.package.resolver import find_components
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.component import Component
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.files import FileState
    from evalmeta.package.selection import Selection


_SHOWN: Final = 20
_SOURCE_FOLDER: Final = Path("main/default")


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """A converted file: what writing it did, the component's full name (empty for a manifest), and its path."""

    state: FileState
    full_name: str
    file: str


def convert_source(
    project: Project,
    selection: Selection,
    output_dir: Path,
    *,
    api_version: ApiVersion | None = None,
    overwrite: bool = False,
) -> tuple[ConvertedFile, ...]:
    """Write the selected components to a folder in metadata format, with a package.xml."""
    chosen = resolve(project, selection, api_version=api_version)
    if not chosen.components:
        raise NotFound(f"{shown(project.root)} has no components in it.")
    manifest = write_manifest(manifest_of(chosen.components, chosen.api_version))
    targets: dict[Path, Component | bytes] = {Path(entry_name(component)): component for component in chosen.components}
    return _write(output_dir, {Path(PACKAGE_FILE): manifest, **targets}, overwrite=overwrite)


def convert_metadata(
    root_dir: Path, selection: Selection, output_dir: Path | None = None, *, overwrite: bool = False
) -> tuple[ConvertedFile, ...]:
    """Write the components of a folder in metadata format, at any depth, in source format.

    A component that the project has already in the output folder keeps its path; others go
    to `main/default`. Without an output folder, the files are written to the DX project
    around the current folder.
    """
    chosen = resolve(_opened(root_dir), selection).components
    if not chosen:
        raise NotFound(f"{shown(root_dir)} has no components in it.")
    if output_dir is None:
        project = _dx_project()
        output_dir, default = project.root, project.package_directories[0].relative_to(project.root)
    else:
        default = Path()
    paths = _existing_paths(output_dir)
    targets: dict[Path, Component | bytes] = {
        paths.get(
            component.key.casefold(), default / _SOURCE_FOLDER / f"{entry_name(component)}{META_XML_SUFFIX}"
        ): component
        for component in chosen
    }
    return _write(output_dir, targets, overwrite=overwrite)


def _dx_project() -> Project:
    project = find_project(Path.cwd())
    if not project.is_dx:
        raise ProjectError(
            f"{shown(project.root)} is in metadata format, so files in source format cannot be added",
            actions=("Name the folder to write to: --output-dir.",),
        )
    return project


def _opened(root_dir: Path) -> Project:
    if not root_dir.is_dir():
        raise NotFound(f"{root_dir} does not exist or is not a folder")
    root = Path(os.path.realpath(root_dir))
    # A DX project finds components at any depth, by their suffix: retrieved folders are nested.
    return Project(root, is_dx=True, package_directories=(root,), api_version=None)


def _existing_paths(output_dir: Path) -> Mapping[str, Path]:
    """Return the paths of the components in a folder, according to the project around it.

    Keys are in lower case, because full names ignore case.
    """
    folder = Path(os.path.realpath(output_dir))
    if not folder.is_dir():
        return {}
    try:
        components = find_components(find_project(folder))
    except ProjectError:
        return {}
    inside = (component for component in components if component.path.is_relative_to(folder))
    return {component.key.casefold(): component.path.relative_to(folder) for component in inside}


def _write(
    output_dir: Path, targets: Mapping[Path, Component | bytes], *, overwrite: bool
) -> tuple[ConvertedFile, ...]:
    states = {target: state_of(output_dir / target, _content(source)) for target, source in targets.items()}
    changed = [target for target, state in states.items() if state == "Changed"]
    if changed and not overwrite:
        raise _refused([shown(output_dir / target) for target in changed])
    return tuple(_written(output_dir, targets, states))


def _written(
    output_dir: Path, targets: Mapping[Path, Component | bytes], states: Mapping[Path, FileState]
) -> Iterator[ConvertedFile]:
    root = Path(os.path.realpath(output_dir))
    for target, source in targets.items():
        if states[target] != "Unchanged":
            write_below(root, root / target, _content(source), durable=False)
        full_name = "" if isinstance(source, bytes) else source.full_name
        yield ConvertedFile(states[target], full_name, shown(output_dir / target))


def _content(source: Component | bytes) -> bytes:
    return source if isinstance(source, bytes) else read_file(source.path)


def _refused(files: list[str]) -> UsageError:
    more = [f"and {len(files) - _SHOWN:,} more"] if len(files) > _SHOWN else []
    listed = "".join(f"\n  {line}" for line in (*files[:_SHOWN], *more))
    return UsageError(
        f"These files have different content; nothing was written:{listed}",
        actions=("Choose another folder with --output-dir, or overwrite them with --force.",),
    )
