"""Read, write, validate and format the files of a project."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from evalmeta.api.file_checks import Validation, check_files, problems_of
from evalmeta.errors import FormatError, InvalidMetadata, NotFound
from evalmeta.model.problem import Problem, Severity
from evalmeta.model.registry import MANIFEST_FILES, TYPES, Component
from evalmeta.package.agent_files import SCRIPT_SUFFIX
from evalmeta.package.files import bytes_of, parse_file_name, put_file, shown, slash_hint
from evalmeta.package.folders import files_below, find_bundle, list_files
from evalmeta.package.forceignore import FORCEIGNORE_FILE, read_forceignore
from evalmeta.package.project import Project, find_project
from evalmeta.validation.validator import validate_manifest
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.formatter import format_definition, format_manifest
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.definition import Definition
    from evalmeta.model.registry import ComponentSet
    from evalmeta.model.settings import Profile


_MANIFEST_FOLDERS: Final = (".", "manifest")
_MANIFEST_ROOT: Final = re.compile(rb"<Package[\s>/]")


@dataclass(frozen=True, slots=True)
class Formatting:
    """The files that were written, or would be, why files were skipped, and the number of files."""

    changed: tuple[str, ...]
    problems: tuple[Problem, ...]
    files: int


def read(path: Path) -> Definition:
    """Read a definition file.

    Raises:
        NotFound: the file does not exist.
        InvalidMetadata: it is not valid; `problems` says where.
    """
    return read_definition(read_xml(bytes_of(path), label=shown(path)))


def write(definition: Definition, path: Path) -> None:
    """Write a definition file; a definition that was read and not changed keeps its bytes.

    Raises:
        ProjectError: the file cannot be written; it is unchanged.
    """
    put_file(path, write_definition(definition))


def validate(
    paths: Sequence[Path] = (),
    *,
    start: Path | None = None,
    profile: Profile | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Validation:
    """Validate files, or those of a project, and return all problems.

    Args:
        paths: definition files, manifests, tests in other formats, and folders, which are searched recursively.
            Without paths, the project around `start` is validated: its definitions, its bundles, the manifests in its
            root and in its folder `manifest`, and the tests in other formats in all its folders. A file of a bundle
            stands for the bundle.
        start: where to look for the project; the current folder if None.
        profile: how strict the rules are; by default, as the project of each file says, or else `orgs`.
        columns: keys of test cases, each with its column of tables and JSON Lines, which replace the project's.

    Raises:
        NotFound: a path does not exist.
        FormatError: a file is not a test file, or is an XML file that is neither a definition nor a manifest.
        ProjectError: there is no project, and no path was given; or a package directory does not exist.
        SettingsError: the project's settings are not valid.
    """
    if paths:
        if columns:
            from evalmeta.formats.document import check_columns

            check_columns(columns, paths)
        files, others = _tests_among(_each_once(_named_files(paths, takes_tests=True, columns=columns)), paths)
        return replace(check_files(files, profile, columns), others=others)
    project = find_project(start or Path.cwd())
    tests, others = _tests_among(sorted(files_below(project.root)))
    others_of_project = (test for test in tests if not (_is_checked(test) or find_bundle(test)))
    files = [*_project_files(project, with_bundles=True), *others_of_project]
    found = check_files(files, profile)
    ended: Sequence[Problem] = ()
    if project.declared is not None and project.declared.quarantine:
        from evalmeta.api.quarantines import listed_problems

        ended = listed_problems(project)
    return Validation((*ignore_problems(project), *ended, *found.problems), found.files, others)


def format_files(paths: Sequence[Path] = (), *, start: Path | None = None, check: bool = False) -> Formatting:
    """Write valid files in canonical form, each atomically; with `check`, only report which would change."""
    files = files_to_check(paths, start=start)
    changed: list[str] = []
    problems: list[Problem] = []
    for path in files:
        before = bytes_of(path)
        try:
            after = _formatted(path, before)
        except InvalidMetadata as error:
            problems += error.problems
            continue
        if after != before:
            changed.append(shown(path))
            if not check:
                put_file(path, after)
    return Formatting(tuple(changed), tuple(problems), len(files))


def files_to_check(paths: Sequence[Path] = (), *, start: Path | None = None) -> list[Path]:
    """List the definitions and manifests in files and folders, or of a project, each once; raises like `validate`."""
    if not paths:
        return _project_files(find_project(start or Path.cwd()))
    return _each_once(_named_files(paths))


def _project_files(project: Project, *, with_bundles: bool = False) -> list[Path]:
    """List the definitions and manifests of a project, and the folders of its bundles."""
    components = (file.path for file in list_files(project) if with_bundles or not file.type.is_bundle)
    manifests = (project.root / folder / name for folder in _MANIFEST_FOLDERS for name in MANIFEST_FILES)
    return [*components, *(path for path in manifests if path.is_file())]


def _each_once(paths: Iterable[Path]) -> list[Path]:
    real = cache(os.path.realpath)
    files: dict[tuple[str, str], Path] = {}
    for path in paths:
        files.setdefault((real(path.parent), path.name), path)
    return list(files.values())


def ignore_problems(project: Project) -> tuple[Problem, ...]:
    """Return warnings about the project's `.forceignore`."""
    label = shown(project.root / FORCEIGNORE_FILE)
    problems = read_forceignore(project.root).problems
    return tuple(replace(problem, location=replace(problem.location, path=label)) for problem in problems)


def check_components(
    project: Project,
    components: ComponentSet,
    *,
    find_unchanged: Callable[[Iterable[Component]], Iterable[Component]] = lambda _: (),
) -> tuple[Problem, ...]:
    """Validate components before they are sent, and return the warnings, including those about `.forceignore`.

    `find_unchanged` returns those components that the org has already as they are. Their errors are warnings, because
    an org may accept what evalmeta does not know.
    """
    files = (file for component in components.components for file in component.files)
    missing = [*map(project.replacements.problem_of, files)]
    if problems := [replace(problem, severity=Severity.ERROR) for problem in missing if problem]:
        raise InvalidMetadata(f"{problems[0].message}; nothing was sent", problems=problems)
    found = problems_of(project, components)
    if refused := {problem.component for problem in found if problem.is_error}:
        unchanged = find_unchanged([component for component in components.components if component.key in refused])
        found = _without_errors(found, {component.key for component in unchanged})
    if any(problem.is_error for problem in found):
        raise InvalidMetadata("the components have errors; nothing was sent", problems=found)
    return (*ignore_problems(project), *found)


def _without_errors(problems: Sequence[Problem], components: Container[str]) -> list[Problem]:
    hint = "The org already has this file unchanged, so it can be deployed."
    return [
        replace(problem, severity=Severity.WARNING, hint=f"{problem.hint} {hint}".lstrip())
        if problem.is_error and problem.component in components
        else problem
        for problem in problems
    ]


def _named_files(
    paths: Sequence[Path], *, takes_tests: bool = False, columns: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            below = sorted(files_below(path))
            if takes_tests:
                yield from (find_bundle(file) or file for file in below)
            else:
                yield from (file for file in below if _is_checked(file) and file.is_file())
        elif not path.exists():
            raise NotFound(f"the file or folder {str(path)!r} cannot be found", actions=slash_hint(path))
        elif takes_tests and (bundle := find_bundle(path)):
            yield bundle
        elif not (_is_named(path) or (takes_tests and (path.suffix == SCRIPT_SUFFIX or _is_other_test(path, columns)))):
            suffixes = " or ".join(f".{row.suffix}" for row in TYPES)
            raise FormatError(
                f"{str(path)!r} is neither a definition nor a manifest",
                actions=[f"Name files that end in {suffixes} (and -meta.xml), manifests (<Package>), or folders."],
            )
        else:
            yield path


def _tests_among(files: Sequence[Path], named: Sequence[Path] = ()) -> tuple[list[Path], Mapping[Path, str]]:
    """Return the files to validate, and those that are not tests with the reason; `named` files are validated."""
    chosen = {*named}
    others = [file for file in files if not (_is_checked(file) or find_bundle(file) or file.is_dir())]
    if not others:
        return [file for file in files if file in chosen or _can_be_read(file)], {}
    from evalmeta.api import discovery

    searched = discovery.search(file for file in others if file not in chosen)
    found = {*others}.difference(searched.tests, chosen)
    tests = [file for file in files if file not in found and (file in chosen or _can_be_read(file))]
    return discovery.without_parts(searched._replace(tests=tests), {*map(os.path.realpath, named)})


def _can_be_read(path: Path) -> bool:
    """Return whether a path in a folder is that of a file or of a bundle, not of a pipe or of a link to nothing."""
    return path.is_file() or path.is_dir()


def _is_other_test(path: Path, columns: Mapping[str, str]) -> bool:
    from evalmeta.api.discovery import reading_at
    from evalmeta.formats.files import format_of

    return format_of(path, label=shown(path), reading=reading_at(path, columns)) != "definition"


def _is_checked(path: Path) -> bool:
    return parse_file_name(path.name) is not None or path.name in MANIFEST_FILES


def _is_named(path: Path) -> bool:
    """Return whether a file that the user named is checked; it can be a manifest with any name."""
    return _is_checked(path) or (path.suffix == ".xml" and _MANIFEST_ROOT.search(bytes_of(path)) is not None)


def _formatted(path: Path, data: bytes) -> bytes:
    label = shown(path)
    if parse_file_name(path.name):
        return format_definition(data, label=label)
    manifest, problems = validate_manifest(data, label=label)
    if manifest is None:
        raise InvalidMetadata(f"{label} cannot be formatted", problems=problems)
    return format_manifest(data, label=label)
