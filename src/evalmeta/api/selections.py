"""Which components a command works on, their validation, and their conversion between source and metadata format."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.file_checks import Validation, is_beside_deletions, problems_of
from evalmeta.api.files import validate
from evalmeta.errors import InvalidMetadata, NotFound, ProjectError, UsageError
from evalmeta.model.registry import (
    DESTRUCTIVE_FILES,
    META_XML_SUFFIX,
    PACKAGE_FILE,
    ComponentSet,
    names_by_type,
    parse_api_version,
    supported_part,
)
from evalmeta.package.archive import manifest_of
from evalmeta.package.components import entries_of, entry_name
from evalmeta.package.files import ComponentFile, bytes_of, shown, slash_hint, state_of, write_below
from evalmeta.package.folders import component_files, find_components, list_files, name_problems
from evalmeta.package.forceignore import ForceIgnore, read_forceignore
from evalmeta.package.project import Project, api_version_of, find_project, version_in_force
from evalmeta.package.replacements import NO_REPLACEMENTS, Replacements
from evalmeta.package.selection import Selection, choose, components_named, components_under, local_name, parse_members
from evalmeta.package.selection import resolve as resolve_components
from evalmeta.validation.validator import validate_manifest
from evalmeta.xmlio.definitions import index_members, write_manifest
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion, Component, Manifest
    from evalmeta.model.settings import Profile
    from evalmeta.package.files import FileState


_EVERYTHING = Selection()
_SHOWN_MANIFESTS: Final = 3


def resolve(
    project: Project,
    selection: Selection = _EVERYTHING,
    *,
    api_version: ApiVersion | None = None,
    may_be_empty: bool = False,
) -> ComponentSet:
    """Return the selected components and the API version in force.

    Args:
        project: where the components are.
        selection: which components; all by default.
        api_version: the version in force; that of the manifest or the project if None.
        may_be_empty: whether a manifest may select nothing.

    Raises:
        NotFound: a file, a folder or a name does not exist; the error suggests similar names.
        InvalidMetadata: the manifest has problems, or names components that the project does not have.
        ProjectError: a path is outside the package directories, or cannot be read.
        UsageError: the manifest is one of destructive changes.
    """
    if selection.manifest is not None:
        return _resolve_manifest(project, selection.manifest, api_version=api_version, may_be_empty=may_be_empty)
    components = _chosen(project, find_components(project), selection)
    return ComponentSet(components, api_version or api_version_of(project))


def read_manifest(path: Path, *, destructive: bool = False) -> tuple[Manifest, tuple[Problem, ...]]:
    """Return a manifest without the types that evalmeta does not support, and warnings about those."""
    label = shown(path)
    destructive = destructive or path.name in DESTRUCTIVE_FILES
    manifest, problems = validate_manifest(_read(path), label=label, destructive=destructive, mixed=True)
    if manifest is None or any(problem.is_error for problem in problems):
        raise InvalidMetadata(f"{label} cannot be used", problems=problems)
    return supported_part(manifest), tuple(problems)


def _read(path: Path) -> bytes:
    """Read a manifest; the error about a missing one names those of the current folder."""
    if path.exists():
        return bytes_of(path)
    others = [
        manifest.relative_to(Path.cwd()) for manifest in sorted(Path.cwd().glob("manifest*/*.xml"))[:_SHOWN_MANIFESTS]
    ]
    hints = [f"Did you mean {other.as_posix()}?" for other in others]
    way_out = "Write one of the whole project: evalmeta manifest generate"
    raise NotFound(f"the manifest {str(path)!r} cannot be found", actions=[*slash_hint(path), *hints, way_out])


def refuse_destructive(path: Path) -> None:
    """Refuse a manifest whose name says that it lists what to delete."""
    if path.name in DESTRUCTIVE_FILES:
        message = f"{shown(path)} lists what to delete, so it cannot select what to deploy or retrieve"
        raise UsageError(message, actions=("Name a package.xml.",))


def validate_selection(
    selection: Selection, *, start: Path | None = None, profile: Profile | None = None
) -> Validation:
    """Validate the selected components, and the manifest that selects them; `profile` is as in `validate`."""
    if selection.manifest is not None and selection.manifest.name in DESTRUCTIVE_FILES:
        return validate([selection.manifest], profile=profile)
    project = find_project(start or Path.cwd())
    files = list_files(project)
    found: list[Problem] = []
    if selection.manifest is None:
        chosen = ComponentSet(_chosen(project, files, selection), version_in_force(project))
    else:
        chosen, found = _chosen_by(project, files, selection.manifest)
    problems = dict.fromkeys((*found, *name_problems(files), *problems_of(project, chosen, profile=profile)))
    return Validation(tuple(problems), len(chosen.components) + int(selection.manifest is not None))


def _chosen_by(project: Project, files: Sequence[Component], path: Path) -> tuple[ComponentSet, list[Problem]]:
    """Return the components that a manifest selects, and all problems of the manifest and its members."""
    data, label = _read(path), shown(path)
    manifest, problems = validate_manifest(data, label=label, mixed=True)
    version = parse_api_version(manifest.version or "") if manifest else None
    version = version or version_in_force(project)
    if manifest is None:
        return ComponentSet((), version), problems
    choice = choose(
        files,
        manifest,
        namespace=project.namespace,
        manifest_path=Path(label),
        locate=index_members(read_xml(data, label=label)),
        may_be_empty=is_beside_deletions(path),
    )
    known = {(problem.code, problem.location) for problem in problems}
    more = [problem for problem in choice.problems if (problem.code, problem.location) not in known]
    return ComponentSet(choice.components, version), [*problems, *more]


def _resolve_manifest(
    project: Project, path: Path, *, api_version: ApiVersion | None, may_be_empty: bool
) -> ComponentSet:
    refuse_destructive(path)
    (manifest, warnings), label = read_manifest(path), shown(path)
    resolved = resolve_components(
        project,
        manifest=manifest,
        manifest_path=Path(label),
        api_version=api_version,
        locate=index_members(read_xml(bytes_of(path), label=label)),
        may_be_empty=may_be_empty,
    )
    return replace(resolved, warnings=warnings)


def _chosen(project: Project, components: tuple[Component, ...], selection: Selection) -> tuple[Component, ...]:
    names = names_by_type(components)
    patterns = tuple(
        pattern._replace(name=local_name(pattern.name, names.get(pattern.type.name, ()), project.namespace))
        for pattern in parse_members(selection.metadata)
    )
    if selection.source_dirs:
        return components_under(project, components, selection.source_dirs)
    where = "the project" if Path.cwd().is_relative_to(project.root) else shown(project.root)
    try:
        return components_named(components, patterns, where=where) if patterns else components
    except NotFound as error:
        keys, ignore = set(map(str, patterns)), read_forceignore(project.root)
        named = [file for file in component_files(project, ForceIgnore(project.root)) if file.key in keys]
        lines = [(file, line) for file in named if (line := ignore.find_line(file.path, is_folder=file.type.is_bundle))]
        hints = [f"{shown(file.path)} is ignored by {line}." for file, line in lines]
        raise NotFound(str(error), actions=[*hints, *error.actions]) from None


_REPLACE_VARIABLE: Final = "SF_APPLY_REPLACEMENTS_ON_CONVERT"
_SHOWN_FILES: Final = 20
_SOURCE_FOLDER: Final = Path("main/default")


def convert_source(
    project: Project,
    selection: Selection,
    output_dir: Path,
    *,
    api_version: ApiVersion | None = None,
    overwrite: bool = False,
) -> tuple[ComponentFile, ...]:
    """Write the selected components to a folder in metadata format, with a package.xml.

    As in the sf CLI, nothing is replaced in them unless SF_APPLY_REPLACEMENTS_ON_CONVERT is true.
    """
    chosen = resolve(project, selection, api_version=api_version)
    if not chosen.components:
        raise NotFound(f"{shown(project.root)} has no components in it.")
    manifest = write_manifest(manifest_of(chosen.components, chosen.api_version))
    components = {
        Path(entry): _Source(component.full_name, path)
        for component in chosen.components
        for entry, path in entries_of(component)
    }
    targets = {Path(PACKAGE_FILE): _Source("", manifest), **components}
    replacements = project.replacements if os.environ.get(_REPLACE_VARIABLE) == "true" else NO_REPLACEMENTS
    return _write(output_dir, targets, overwrite=overwrite, replacements=replacements)


def convert_metadata(
    root_dir: Path, selection: Selection, output_dir: Path | None = None, *, overwrite: bool = False
) -> tuple[ComponentFile, ...]:
    """Write the components of a folder in metadata format, at any depth, in source format.

    A component that the project has already in the output folder keeps its path; others go
    to `main/default`. Without an output folder, the files are written to the DX project
    around the current folder.
    """
    if not root_dir.is_dir():
        raise NotFound(f"{root_dir} does not exist or is not a folder")
    root = Path(os.path.realpath(root_dir))
    # A DX project finds components at any depth, by their suffix: retrieved folders are nested.
    opened = Project(root, is_dx=True, package_directories=(root,), api_version=None)
    chosen = resolve(opened, selection).components
    if not chosen:
        raise NotFound(f"{shown(root_dir)} has no components in it.")
    if output_dir is None:
        project = _dx_project()
        output_dir, default = project.root, project.package_directories[0].relative_to(project.root)
    else:
        default = Path()
    paths = _existing_paths(output_dir)
    targets = {
        target: _Source(component.full_name, file)
        for component in chosen
        for target, file in _source_files(component, paths, default)
    }
    return _write(output_dir, targets, overwrite=overwrite)


def _source_files(component: Component, paths: Mapping[str, Path], default: Path) -> Iterator[tuple[Path, Path]]:
    """Yield where the files of a component belong in source format, each with the file to read."""
    name = entry_name(component.type, component.full_name)
    usual = default / _SOURCE_FOLDER / (name if component.type.is_bundle else f"{name}{META_XML_SUFFIX}")
    path = paths.get(component.key.casefold(), usual)
    if component.type.is_bundle:
        yield from ((path / file.relative_to(component.path), file) for file in component.files)
    else:
        yield path, component.path


def _dx_project() -> Project:
    project = find_project(Path.cwd())
    if not project.is_dx:
        raise ProjectError(
            f"{shown(project.root)} is in metadata format, so files in source format cannot be added",
            actions=("Name the folder to write to: --output-dir.",),
        )
    return project


def _existing_paths(output_dir: Path) -> Mapping[str, Path]:
    """Return the paths of the components in a folder by their keys in lower case, as the project around it has them."""
    folder = Path(os.path.realpath(output_dir))
    if not folder.is_dir():
        return {}
    try:
        components = find_components(find_project(folder))
    except ProjectError:
        return {}
    inside = (component for component in components if component.path.is_relative_to(folder))
    return {component.key.casefold(): component.path.relative_to(folder) for component in inside}


class _Source(NamedTuple):
    """What to write: the content or the file that has it, of a component or without a name for a manifest."""

    full_name: str
    content: bytes | Path


def _write(
    output_dir: Path, targets: Mapping[Path, _Source], *, overwrite: bool, replacements: Replacements = NO_REPLACEMENTS
) -> tuple[ComponentFile, ...]:
    read = partial(_content, replacements)
    states = {target: state_of(output_dir / target, read(source)) for target, source in targets.items()}
    changed = [target for target, state in states.items() if state == "Changed"]
    if changed and not overwrite:
        raise _refused([shown(output_dir / target) for target in changed])
    return tuple(_written(output_dir, targets, states, read))


def _written(
    output_dir: Path,
    targets: Mapping[Path, _Source],
    states: Mapping[Path, FileState],
    read: Callable[[_Source], bytes],
) -> Iterator[ComponentFile]:
    root = Path(os.path.realpath(output_dir))
    for target, source in targets.items():
        if states[target] != "Unchanged":
            write_below(root, root / target, read(source), durable=False)
        yield ComponentFile(states[target], source.full_name, shown(output_dir / target))


def _content(replacements: Replacements, source: _Source) -> bytes:
    content = source.content
    return content if isinstance(content, bytes) else replacements.content_to_send(content)


def _refused(files: list[str]) -> UsageError:
    more = [f"and {len(files) - _SHOWN_FILES:,} more"] if len(files) > _SHOWN_FILES else []
    listed = "".join(f"\n  {line}" for line in (*files[:_SHOWN_FILES], *more))
    return UsageError(
        f"These files have different content; nothing was written:{listed}",
        actions=("Choose another folder with --output-dir, or overwrite them with --force.",),
    )
