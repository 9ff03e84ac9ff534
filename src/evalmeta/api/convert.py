"""Conversions between source format and metadata format: names and folders change, contents never."""

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
    """A file of a conversion: what writing it did, the component's full name (empty for a manifest), its path."""

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
    """Write a selection as a folder in metadata format, with a package.xml that names it.

    Raises:
        NotFound: the project has no components.
        UsageError: files there have other content, and `overwrite` is not set; nothing was written.
        EvalmetaError: as `selections.resolve`.
        ProjectError: a file cannot be written.
    """
    chosen = resolve(project, selection, api_version=api_version)
    if not chosen.components:
        raise NotFound(f"{shown(project.root)} has no components in it.")
    manifest = write_manifest(manifest_of(chosen.components, chosen.api_version))
    targets: dict[Path, Component | bytes] = {Path(entry_name(each)): each for each in chosen.components}
    return _write(output_dir, {Path(PACKAGE_FILE): manifest, **targets}, overwrite=overwrite)


def convert_metadata(
    root_dir: Path, selection: Selection, output_dir: Path | None = None, *, overwrite: bool = False
) -> tuple[ConvertedFile, ...]:
    """Write what stands in a folder in metadata format, at any depth, as source format.

    A component that the project around the output folder has in it already keeps its
    place; any other goes to `main/default`. Without an output folder it is the DX project
    around the current folder that takes the files.

    Raises:
        NotFound: there is no such folder, or no component in it.
        UsageError: files there have other content, and `overwrite` is not set; nothing was written.
        EvalmetaError: as `selections.resolve`.
        ProjectError: there is no DX project to write to, or a file cannot be written.
    """
    chosen = resolve(_opened(root_dir), selection).components
    if not chosen:
        raise NotFound(f"{shown(root_dir)} has no components in it.")
    if output_dir is None:
        project = _dx_project()
        output_dir, default = project.root, project.package_directories[0].relative_to(project.root)
    else:
        default = Path()
    places = _places(output_dir)
    targets: dict[Path, Component | bytes] = {
        places.get(each.key.casefold(), default / _source_path(each)): each for each in chosen
    }
    return _write(output_dir, targets, overwrite=overwrite)


def _dx_project() -> Project:
    project = find_project(Path.cwd())
    if not project.is_dx:
        raise ProjectError(
            f"{shown(project.root)} is a folder in metadata format, which takes no source format.",
            actions=("Name the folder to write to: --output-dir.",),
        )
    return project


def _opened(root_dir: Path) -> Project:
    if not root_dir.is_dir():
        raise NotFound(f"{root_dir}: there is no such folder.")
    root = Path(os.path.realpath(root_dir))
    # As in a DX project components are found by their suffix, at any depth: retrieved folders are nested.
    return Project(root, is_dx=True, package_directories=(root,), api_version=None)


def _source_path(component: Component) -> Path:
    return _SOURCE_FOLDER / f"{entry_name(component)}{META_XML_SUFFIX}"


def _places(output_dir: Path) -> Mapping[str, Path]:
    """Return where the project around a folder has its components, as far as they are in the folder.

    Keys are in small letters: full names are the same in any case.
    """
    folder = Path(os.path.realpath(output_dir))
    if not folder.is_dir():
        return {}
    try:
        components = find_components(find_project(folder))
    except ProjectError:
        return {}
    inside = (each for each in components if each.path.is_relative_to(folder))
    return {each.key.casefold(): each.path.relative_to(folder) for each in inside}


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
        f"These files have other content, and nothing was written:{listed}",
        actions=("Choose another folder with --output-dir, or overwrite them with --force.",),
    )
