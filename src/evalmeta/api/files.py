"""Reading, writing, validating and formatting the files of a project."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evalmeta import limits
from evalmeta.errors import FormatError, InvalidMetadata, NotFound, ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import DESTRUCTIVE_FILES, MANIFEST_FILES, NEWEST_API_VERSION, TYPES, WILDCARD, Component
from evalmeta.package.agent_files import SCRIPT_SUFFIX, agents_of
from evalmeta.package.components import content_of
from evalmeta.package.files import parse_file_name, put_file, shown, slash_hint
from evalmeta.package.folders import (
    FORCEIGNORE_FILE,
    files_below,
    find_bundle,
    list_files,
    name_problems,
    open_bundle,
    read_forceignore,
)
from evalmeta.package.project import Project, find_project, version_in_force
from evalmeta.package.replacements import NO_REPLACEMENTS, Replacements
from evalmeta.validation.rules import RulePolicy, rule_policy
from evalmeta.validation.validator import (
    CheckedFile,
    check_component,
    remember_clean,
    validate_manifest,
    validate_together,
)
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.formatter import format_definition, format_manifest
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.definition import Definition
    from evalmeta.model.registry import ApiVersion, ComponentSet
    from evalmeta.model.settings import Profile
    from evalmeta.validation.definition_rules import NamedFile


_MANIFEST_FOLDERS: Final = (".", "manifest")
_MANIFEST_ROOT: Final = re.compile(rb"<Package[\s>/]")


@dataclass(frozen=True, slots=True)
class Validation:
    """All problems that a validation found.

    Attributes:
        files: the number of files.
        others: the YAML, JSON, JSON Lines and CSV files in folders that are not tests, and why.
    """

    problems: tuple[Problem, ...]
    files: int
    others: Mapping[Path, str] = field(default_factory=dict)

    @property
    def is_valid(self) -> bool:
        """Return whether no problem prevents a deployment."""
        return not any(problem.is_error for problem in self.problems)


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
        return replace(_validate_files(files, profile, columns), others=others)
    project = find_project(start or Path.cwd())
    tests, others = _tests_among(sorted(files_below(project.root)))
    others_of_project = (test for test in tests if not (_is_checked(test) or find_bundle(test)))
    files = [*_project_files(project, with_bundles=True), *others_of_project]
    found = _validate_files(files, profile)
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


def problems_of(project: Project, components: ComponentSet, *, profile: Profile | None = None) -> list[Problem]:
    """Return all problems of components, alone and together, in the API version in force."""
    policy = _policy_of(project, profile)
    force = _InForce(project.root, policy, components.api_version, project.replacements)
    checked = map_chunks(partial(_check_some, force=force), components.components)
    remember_clean(checked_file.clean for checked_file in checked if checked_file.clean)
    found = [problem for file in checked for problem in file.problems]
    together = validate_together([checked_file.file for checked_file in checked if checked_file.file], policy)
    return [*found, *(_without_values(problem, project.replacements) for problem in together)]


def is_beside_deletions(manifest: Path) -> bool:
    """Return whether a manifest is next to destructive changes, and so may select nothing."""
    return any((manifest.parent / name).is_file() for name in DESTRUCTIVE_FILES)


def bytes_of(path: Path) -> bytes:
    """Read a file up to `limits.MAX_XML_BYTES` and one more byte."""
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise NotFound(f"{str(path)!r} is a pipe", actions=["Write its content to a file, and name that."])
        with path.open("rb") as file:
            return file.read(min(os.fstat(file.fileno()).st_size, limits.MAX_XML_BYTES) + 1)
    except FileNotFoundError:
        raise NotFound(f"the file {str(path)!r} cannot be found", actions=slash_hint(path)) from None
    except OSError as error:
        raise NotFound(f"{str(path)!r} cannot be read: {error.strerror}") from None


class _InForce(NamedTuple):
    """What is in force for the files in a folder; the defaults if there is no project."""

    root: Path | None
    policy: RulePolicy
    api_version: ApiVersion
    replacements: Replacements = NO_REPLACEMENTS


def _in_force(profile: Profile | None, folder: Path) -> _InForce:
    try:
        project = find_project(folder)
    except ProjectError:
        return _InForce(None, rule_policy(None, profile=profile), NEWEST_API_VERSION)
    return _InForce(project.root, _policy_of(project, profile), version_in_force(project), project.replacements)


def _policy_of(project: Project, profile: Profile | None) -> RulePolicy:
    return rule_policy(project.declared, profile=profile, agents=agents_of(project))


def _validate_files(
    files: Sequence[Path], profile: Profile | None, columns: Mapping[str, str] = MappingProxyType({})
) -> Validation:
    # Processes receive it.
    titles = dict(columns)
    return _validation(files, map_chunks(partial(_check_files, profile, titles), files), profile)


def _validation(files: Sequence[Path], checked: Sequence[CheckedFile], profile: Profile | None) -> Validation:
    in_force = cache(partial(_in_force, profile))
    problems = [problem for file in checked for problem in file.problems]
    files_of: dict[Path | None, tuple[_InForce, list[NamedFile]]] = {}
    components_of: dict[Path | None, list[Component]] = {}
    count = 0
    for path, checked_file in zip(files, checked, strict=True):
        component = _component_at(path)
        count += len(component.files) if component else 1
        if component is None:
            continue
        force = in_force(path.parent)
        components_of.setdefault(force.root, []).append(component)
        if checked_file.file:
            files_of.setdefault(force.root, (force, []))[1].append(checked_file.file)
    names = [problem for components in components_of.values() for problem in name_problems(components)]
    together = [
        _without_values(problem, force.replacements)
        for force, named in files_of.values()
        for problem in validate_together(named, force.policy)
    ]
    return Validation((*names, *problems, *together), count)


def _check_files(profile: Profile | None, columns: Mapping[str, str], files: Sequence[Path]) -> list[CheckedFile]:
    in_force = cache(partial(_in_force, profile))
    return [_check_file(path, in_force, columns) for path in files]


def _check_file(path: Path, in_force: Callable[[Path], _InForce], columns: Mapping[str, str]) -> CheckedFile:
    if component := _component_at(path):
        force = in_force(path.parent)
        return _check_component(component, force)._replace(definition=None)
    if path.suffix == ".xml":
        return CheckedFile(tuple(_check_manifest(path)))
    policy = in_force(path.parent).policy
    if path.suffix == SCRIPT_SUFFIX:
        from evalmeta.validation.script_rules import check_script

        return CheckedFile(tuple(check_script(bytes_of(path), label=shown(path), severity_of=policy.severity)))
    from evalmeta.api import discovery

    return CheckedFile(tuple(discovery.check_other_test(path, columns, policy=policy)))


def _component_at(path: Path) -> Component | None:
    """Return the component of a file by its name, or of the folder of a bundle; None for other files."""
    if parsed := parse_file_name(path.name):
        return Component(*parsed, path)
    return open_bundle(path) if path.is_dir() else None


def _check_some(components: Sequence[Component], *, force: _InForce) -> list[CheckedFile]:
    return [_check_component(component, force)._replace(definition=None) for component in components]


def validate_and_read(files: Sequence[Path]) -> tuple[Validation, list[Definition | None]]:
    """Validate definition files as `validate` does, and return the definition of each, read in the same pass.

    A definition is None if it could not be read, and if there are so many files that several processes validate them.
    """
    if len(files) >= _MIN_ITEMS:
        return _validate_files(files, None), [None] * len(files)
    in_force = cache(partial(_in_force, None))
    checked: list[CheckedFile] = []
    for path in files:
        parsed, force = parse_file_name(path.name), in_force(path.parent)
        if parsed is None:
            raise NotFound(f"{str(path)!r} is not a definition file")
        # Runs of files ask what the files have; only an org receives replacements.
        checked.append(_check_component(Component(*parsed, path), force._replace(replacements=NO_REPLACEMENTS)))
    return _validation(files, checked, None), [checked_file.definition for checked_file in checked]


def _check_component(component: Component, force: _InForce) -> CheckedFile:
    """Check what an org would receive of a component; its files as they are, with a warning, if a value is missing."""
    missing = tuple(filter(None, map(force.replacements.problem_of, component.files)))
    replacements = NO_REPLACEMENTS if missing else force.replacements
    checked = check_component(
        component.type,
        content_of(component, read=lambda path: replacements.replace_in(path, bytes_of(path)).content),
        label=shown(component.path),
        full_name=component.full_name,
        policy=force.policy,
        api_version=force.api_version,
    )
    hidden = tuple(_without_values(problem, force.replacements) for problem in checked.problems)
    return checked._replace(problems=(*missing, *hidden))


def _without_values(problem: Problem, replacements: Replacements) -> Problem:
    message, hint = map(replacements.hide_values, (problem.message, problem.hint))
    return replace(problem, message=message, hint=hint)


def _check_manifest(path: Path) -> Iterator[Problem]:
    label, destructive = shown(path), "destructive" in path.name.casefold()
    manifest, problems = validate_manifest(bytes_of(path), label=label, destructive=destructive, mixed=True)
    yield from problems
    is_empty = manifest is not None and not any(types.members for types in manifest.types)
    if is_empty and not (destructive or is_beside_deletions(path)):
        hint = f"Add members, or {WILDCARD} for all of a type."
        yield Problem(
            "manifest-selects-nothing", Severity.ERROR, Location(label, 1, 1), "the manifest names nothing", hint
        )


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


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Starting processes takes as long as checking a few hundred files.
_MIN_ITEMS: Final = 600
_CHUNK: Final = 100
_MAX_PROCESSES: Final = 8


def map_chunks(work: Callable[[Sequence[_Item]], list[_Result]], items: Sequence[_Item]) -> list[_Result]:
    """Return the results of `work` for all items in their order; use several processes for many items.

    `work` takes some items and returns one result for each. It must be a module's function, and items and results
    must be picklable.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(items) < _MIN_ITEMS or cores == 1:
        return work(items)
    from concurrent.futures import ProcessPoolExecutor

    chunks = [items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)]
    with ProcessPoolExecutor(min(cores, _MAX_PROCESSES)) as pool:
        return list(chain.from_iterable(pool.map(work, chunks)))
