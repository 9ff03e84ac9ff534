"""Files: reading, writing, checking, and choosing what a manifest selects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import EvalmetaError, InvalidMetadata, NotFound, ProjectError
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import NEWEST_API_VERSION, TYPES, parse_api_version
from evalmeta.package.convert import full_name_of
from evalmeta.package.project import find_project
from evalmeta.package.resolver import find_components
from evalmeta.package.resolver import resolve as resolve_components
from evalmeta.validation.validator import Judgement, judgement_of, validate_definition, validate_manifest
from evalmeta.xmlio.definitions import read_definition, sketch_definition, write_definition
from evalmeta.xmlio.manifests import locate_member
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.component import Component, ComponentSet
    from evalmeta.model.definition import Definition
    from evalmeta.model.manifest import Manifest
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project

__all__ = [
    "Validation",
    "case_lines",
    "check_components",
    "read",
    "read_manifest",
    "resolve",
    "shown",
    "validate",
    "write",
]

_MANIFEST: Final = "package.xml"


@dataclass(frozen=True, slots=True)
class Validation:
    """What a check found: every problem, and how many files were looked at."""

    problems: tuple[Problem, ...]
    files: int

    @property
    def is_valid(self) -> bool:
        """Says whether nothing stops a deployment."""
        return not any(problem.is_error for problem in self.problems)


def read(path: Path) -> Definition:
    """Reads a definition file.

    Raises:
        NotFound: there is no such file.
        InvalidMetadata: it does not fit the type; `problems` says where.
    """
    return read_definition(read_xml(_bytes_of(path), label=shown(path)))


def write(definition: Definition, path: Path) -> None:
    """Writes a definition file; one that was read and not changed keeps its bytes."""
    path.write_bytes(write_definition(definition))


def validate(paths: Sequence[Path] = (), *, start: Path | None = None) -> Validation:
    """Checks files, or all that a project has, and gives every problem.

    Args:
        paths: definition files, manifests, and folders, which are searched through;
            none means the project around `start`: its definitions and its package.xml.
        start: where to look for the project; the current folder when None.

    Raises:
        NotFound: a path does not exist, or is no file that evalmeta checks.
        ProjectError: there is no project, and no path was given.
        SettingsError: the project's settings are wrong.
    """
    files = list(_named_files(paths)) if paths else list(_project_files(find_project(start or Path.cwd())))
    problems = [problem for path in files for problem in _check_file(path)]
    return Validation((*_same_names(files), *problems), len(files))


def resolve(project: Project, manifest_path: Path | None = None) -> tuple[ComponentSet, Manifest | None]:
    """Gives the components that a manifest selects, or all of the project without one, and the manifest.

    Raises:
        NotFound: there is no such manifest.
        InvalidMetadata: the manifest has problems, or names what the project does not have.
    """
    if manifest_path is None:
        return resolve_components(project), None
    manifest = read_manifest(manifest_path)
    label = shown(manifest_path)
    document = read_xml(_bytes_of(manifest_path), label=label)
    components = resolve_components(
        project, manifest=manifest, manifest_path=Path(label), locate=partial(locate_member, document)
    )
    return components, manifest


def read_manifest(path: Path) -> Manifest:
    """Reads a manifest.

    Raises:
        NotFound: there is no such file.
        InvalidMetadata: it has problems.
    """
    label = shown(path)
    manifest, problems = validate_manifest(_bytes_of(path), label=label)
    if manifest is None or problems:
        raise InvalidMetadata(f"{label} cannot be used", problems=problems)
    return manifest


def check_components(project: Project, components: ComponentSet) -> tuple[Problem, ...]:
    """Checks components before they are sent, and gives the warnings.

    Raises:
        InvalidMetadata: there are errors; `problems` has them and the warnings.
    """
    judgement = judgement_of(project.settings)
    version = components.api_version
    found = [problem for each in components.components for problem in _check_component(each, judgement, version)]
    if any(problem.is_error for problem in found):
        raise InvalidMetadata("the definitions have errors; nothing was sent", problems=found)
    return tuple(found)


def case_lines(path: Path) -> dict[int, int]:
    """Gives the line of each test case of a definition file, by the case's number; empty when it cannot be read."""
    try:
        document = read_xml(_bytes_of(path), label=shown(path))
    except EvalmetaError:
        return {}
    cases = evaluation_of(sketch_definition(document), name="").cases
    steps = ([("testCase", place)] for place in range(len(cases)))
    return {case.number: document.location(document.find(each)).line for case, each in zip(cases, steps, strict=True)}


def shown(path: Path) -> str:
    """Gives a path as messages show it: relative to the current folder when it is inside."""
    absolute, here = path.absolute(), Path.cwd()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else str(path)


def _named_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.is_file() and _is_checked(each))
        elif not path.exists():
            raise NotFound(f"there is no file or folder {str(path)!r}")
        elif not _is_checked(path):
            suffix = f".{TYPES[0].suffix}"
            raise NotFound(
                f"{str(path)!r} is neither a definition nor a manifest",
                actions=[f"Name files that end in {suffix} or {suffix}-meta.xml, a package.xml, or folders."],
            )
        else:
            yield path


def _is_checked(path: Path) -> bool:
    return full_name_of(path.name) is not None or path.name == _MANIFEST


def _project_files(project: Project) -> Iterator[Path]:
    yield from (component.path for component in find_components(project))
    if (project.root / _MANIFEST).is_file():
        yield project.root / _MANIFEST


def _check_file(path: Path) -> list[Problem]:
    found = full_name_of(path.name)
    if found is None:
        return validate_manifest(_bytes_of(path), label=shown(path))[1]
    judgement, version = _in_force(path)
    return validate_definition(
        _bytes_of(path), label=shown(path), full_name=found[1], judgement=judgement, api_version=version
    )


def _check_component(component: Component, judgement: Judgement, version: ApiVersion) -> list[Problem]:
    return validate_definition(
        _bytes_of(component.path),
        label=shown(component.path),
        full_name=component.full_name,
        judgement=judgement,
        api_version=version,
    )


def _in_force(path: Path) -> tuple[Judgement, ApiVersion]:
    """Gives judgement and API version of the project around a file; the defaults when there is none."""
    try:
        project = find_project(path)
    except ProjectError:
        return Judgement(), NEWEST_API_VERSION
    return judgement_of(project.settings), project.api_version or _manifest_version(project) or NEWEST_API_VERSION


def _manifest_version(project: Project) -> ApiVersion | None:
    path = project.root / _MANIFEST
    if not path.is_file():
        return None
    manifest, _ = validate_manifest(_bytes_of(path), label=_MANIFEST)
    return parse_api_version(manifest.version) if manifest and manifest.version else None


def _same_names(files: Sequence[Path]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for path in files:
        found = full_name_of(path.name)
        if found is None:
            continue
        other = first.setdefault(found[1].casefold(), path)
        if other is not path:
            message = f"the full name {found[1]!r} is taken by {shown(other)}"
            hint = "Rename one of the files: a full name is unique in an org."
            yield Problem("full-name-duplicate", Severity.ERROR, Location(shown(path)), message, hint)


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limits.MAX_XML_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise NotFound(f"{str(path)!r} cannot be read: {error.strerror}") from None
