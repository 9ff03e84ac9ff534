"""Check files by the settings of their folders: the rules, the API version and the replacements of the project."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evalmeta.errors import NotFound, ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import DESTRUCTIVE_FILES, NEWEST_API_VERSION, WILDCARD, Component
from evalmeta.package.agent_files import SCRIPT_SUFFIX, agents_of
from evalmeta.package.components import content_of
from evalmeta.package.files import bytes_of, parse_file_name, shown
from evalmeta.package.folders import ignored_below, name_problems, open_bundle
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.model.definition import Definition
    from evalmeta.model.registry import ApiVersion, ComponentSet
    from evalmeta.model.settings import Profile
    from evalmeta.validation.definition_rules import NamedFile


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


class _FolderSettings(NamedTuple):
    """The settings by which the files of a folder are checked: those of its project, or the defaults without one.

    Attributes:
        root: the project's folder; None without a project.
    """

    root: Path | None
    policy: RulePolicy
    api_version: ApiVersion
    replacements: Replacements = NO_REPLACEMENTS


def check_files(
    files: Sequence[Path], profile: Profile | None, columns: Mapping[str, str] = MappingProxyType({})
) -> Validation:
    """Check files, alone and together, and return all problems; the arguments are those of `validate`."""
    # A mapping proxy cannot be sent to another process.
    titles = dict(columns)
    return _validation(files, map_chunks(partial(_check_each, profile, titles), files), profile)


def problems_of(project: Project, components: ComponentSet, *, profile: Profile | None = None) -> list[Problem]:
    """Return all problems of components, alone and together, by the rules of their API version."""
    policy = _policy_of(project, profile)
    settings = _FolderSettings(project.root, policy, components.api_version, project.replacements)
    checked = map_chunks(partial(_check_some, settings=settings), components.components)
    remember_clean(checked_file.clean for checked_file in checked if checked_file.clean)
    found = [problem for file in checked for problem in file.problems]
    together = validate_together([checked_file.file for checked_file in checked if checked_file.file], policy)
    return [*found, *(_without_values(problem, project.replacements) for problem in together)]


def validate_and_read(files: Sequence[Path]) -> tuple[Validation, list[Definition | None]]:
    """Validate definition files as `validate` does, and return the definition of each, read in the same pass.

    A definition is None if it could not be read, and if there are so many files that several processes validate them.
    """
    if len(files) >= _MIN_ITEMS:
        return check_files(files, None), [None] * len(files)
    settings_in = cache(partial(_settings_in, None))
    checked: list[CheckedFile] = []
    for path in files:
        parsed, settings = parse_file_name(path.name), settings_in(path.parent)
        if parsed is None:
            raise NotFound(f"{str(path)!r} is not a definition file")
        # Runs of files ask what the files have; only an org receives replacements.
        checked.append(_check_component(Component(*parsed, path), settings._replace(replacements=NO_REPLACEMENTS)))
    return _validation(files, checked, None), [checked_file.definition for checked_file in checked]


def is_beside_deletions(manifest: Path) -> bool:
    """Return whether a manifest is next to destructive changes, and so may select nothing."""
    return any((manifest.parent / name).is_file() for name in DESTRUCTIVE_FILES)


def _validation(files: Sequence[Path], checked: Sequence[CheckedFile], profile: Profile | None) -> Validation:
    settings_in = cache(partial(_settings_in, profile))
    problems = [problem for file in checked for problem in file.problems]
    files_of: dict[Path | None, tuple[_FolderSettings, list[NamedFile]]] = {}
    components_of: dict[Path | None, list[Component]] = {}
    count = 0
    for path, checked_file in zip(files, checked, strict=True):
        component = _component_at(path)
        count += len(component.files) if component else 1
        if component is None:
            continue
        settings = settings_in(path.parent)
        components_of.setdefault(settings.root, []).append(component)
        if checked_file.file:
            files_of.setdefault(settings.root, (settings, []))[1].append(checked_file.file)
    names = [problem for components in components_of.values() for problem in name_problems(components)]
    together = [
        _without_values(problem, settings.replacements)
        for settings, named in files_of.values()
        for problem in validate_together(named, settings.policy)
    ]
    return Validation((*names, *problems, *together), count)


def _settings_in(profile: Profile | None, folder: Path) -> _FolderSettings:
    try:
        project = find_project(folder)
    except ProjectError:
        return _FolderSettings(None, rule_policy(None, profile=profile), NEWEST_API_VERSION)
    return _FolderSettings(project.root, _policy_of(project, profile), version_in_force(project), project.replacements)


def _policy_of(project: Project, profile: Profile | None) -> RulePolicy:
    return rule_policy(project.declared, profile=profile, agents=agents_of(project))


def _check_each(profile: Profile | None, columns: Mapping[str, str], files: Sequence[Path]) -> list[CheckedFile]:
    settings_in = cache(partial(_settings_in, profile))
    return [_check_file(path, settings_in, columns) for path in files]


def _check_file(path: Path, settings_in: Callable[[Path], _FolderSettings], columns: Mapping[str, str]) -> CheckedFile:
    if component := _component_at(path):
        settings = settings_in(path.parent)
        return _check_component(component, settings)._replace(definition=None)
    if path.is_dir():
        raise NotFound(
            f"no file of the bundle {shown(path)} is checked: {ignored_below(path) or 'none is in the project.'}"
        )
    if path.suffix == ".xml":
        return CheckedFile(tuple(_check_manifest(path)))
    policy = settings_in(path.parent).policy
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


def _check_some(components: Sequence[Component], *, settings: _FolderSettings) -> list[CheckedFile]:
    return [_check_component(component, settings)._replace(definition=None) for component in components]


def _check_component(component: Component, settings: _FolderSettings) -> CheckedFile:
    """Check what an org would receive of a component; its files as they are, with a warning, if a value is missing."""
    missing = tuple(filter(None, map(settings.replacements.problem_of, component.files)))
    replacements = NO_REPLACEMENTS if missing else settings.replacements
    checked = check_component(
        component.type,
        content_of(component, read=lambda path: replacements.replace_in(path, bytes_of(path)).content),
        label=shown(component.path),
        full_name=component.full_name,
        policy=settings.policy,
        api_version=settings.api_version,
    )
    hidden = tuple(_without_values(problem, settings.replacements) for problem in checked.problems)
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
