"""What is to be evaluated: definitions, files, folders and cases, checked, and each with its project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.metadata import bytes_of, files_to_check, validate
from evalmeta.errors import InvalidMetadata, NotFound, ProjectError, UsageError
from evalmeta.model.definition import Definition
from evalmeta.model.evaluation import Case, Evaluation, evaluation_of
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION
from evalmeta.model.settings import Settings
from evalmeta.org.evaluations import read_evaluation
from evalmeta.package.convert import named_by
from evalmeta.package.project import find_project
from evalmeta.package.resolver import find_components
from evalmeta.package.versions import version_in_force
from evalmeta.validation.validator import judgement_of, validate_component
from evalmeta.xmlio.definitions import write_definition

if TYPE_CHECKING:
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project

__all__ = ["Assignment", "assignments_of", "is_list"]

_SHOWN_PROBLEMS: Final = 20
_Source = Definition | Evaluation | Path | str | Iterable[Case]


class Assignment(NamedTuple):
    """An evaluation, and where it came from.

    Attributes:
        content: the definition's bytes; None for cases without one.
        kind: the definition's type.
        root: the folder that subjects are found from.
        settings: of the project there, or the defaults.
        state_dir: the project's own folder for state; None without a project.
        file: the definition's file, if it has one.
    """

    evaluation: Evaluation
    content: bytes | None
    kind: MetadataType
    root: Path
    settings: Settings
    state_dir: Path | None
    file: Path | None = None


class Place(NamedTuple):
    """A folder, and the project around it, if there is one."""

    root: Path
    project: Project | None

    def assignment(self, evaluation: Evaluation, content: bytes | None, kind: MetadataType) -> Assignment:
        """Gives an evaluation with what the place says about it."""
        settings = self.project.settings if self.project else Settings()
        return Assignment(
            evaluation, content, kind, self.root, settings, self.project.state_dir if self.project else None
        )


@dataclass(frozen=True, slots=True)
class _Cases:
    """Cases of any origin, which are made sure to be some, each with a number of its own."""

    cases: Iterable[Case]

    def __iter__(self) -> Iterator[Case]:
        seen: set[int] = set()
        for case in self.cases:
            if not isinstance(case, Case):
                raise UsageError(f"{type(case).__name__} is no Case, as `evalmeta.model.evaluation` has it")
            if case.number in seen:
                raise UsageError(f"two cases have the number {case.number}")
            seen.add(case.number)
            yield case


def is_list(what: object) -> bool:
    """Tells a list of things to evaluate from one thing, which a list of cases is too."""
    return isinstance(what, Sequence) and not isinstance(what, str) and not (what and isinstance(what[0], Case))


def assignments_of(
    what: _Source | Sequence[_Source], *, name: str | None, root: Path | None, subject_name: str | None
) -> list[Assignment]:
    """Gives what is to be evaluated, each evaluation by itself.

    Args:
        what: one thing, or a list in which folders stand for every definition in them.
        name: what to call it; only for one thing.
        root: the project's folder; the project around each file, or the current folder, when None.
        subject_name: what the subject is called where cases do not say; None when a project must bind it.

    Raises:
        InvalidMetadata: definitions have errors; `problems` has them and the warnings.
        NotFound: a file or folder is not there, or has no definitions.
        UsageError: nothing was given, or more than one thing where one is expected.
        ProjectError: there is no project, and nothing else names the subject.
    """
    scout = _Scout(root, needs_project=subject_name is None)
    if not is_list(what):
        return [_one(what, name, scout, subject_name)]  # type: ignore[arg-type] # as `is_list` says
    if name is not None:
        raise UsageError("a name is for one thing, and a list was given")
    found = [each for thing in what for each in _some(thing, scout, subject_name)]  # type: ignore[arg-type, union-attr]
    if not found:
        raise UsageError("nothing to evaluate was given")
    return found


class _Scout:
    """Finds the projects that things belong to."""

    def __init__(self, root: Path | None, *, needs_project: bool) -> None:
        self._root = root
        self._needs_project = needs_project
        self._find = cache(self._place)

    def place(self, folder: Path | None = None) -> Place:
        """Gives the root that was named, or that of the project around a folder; raises like `find_project`."""
        return self._find(self._root or folder or Path.cwd())

    def _place(self, start: Path) -> Place:
        try:
            project = find_project(start)
        except ProjectError:
            if self._needs_project:
                raise
            return Place(start.resolve(), None)
        return Place(project.root, project)


def _one(what: _Source, name: str | None, scout: _Scout, subject_name: str | None) -> Assignment:
    if isinstance(what, str | Path):
        files = _files(Path(what))
        if len(files) != 1:
            raise UsageError(
                f"{str(what)!r} has {len(files)} definitions, and one is expected: give a list, [Path({str(what)!r})]"
            )
        return _from_files(files, scout, name)[0]
    if isinstance(what, Definition):
        return _from_definition(what, name, scout)
    if isinstance(what, Evaluation):
        named = replace(what, name=name or what.name, cases=_checked(what.cases))
        return scout.place().assignment(named, None, EVALUATION_DEFINITION)
    if not isinstance(what, Iterable):
        raise UsageError(f"{type(what).__name__} cannot be evaluated: give a definition, a path, cases, or a list")
    if subject_name is None:
        raise UsageError("cases name no agent: give a subject too")
    cases = Evaluation(name or "evaluation", subject_name, _checked(what))
    return scout.place().assignment(cases, None, EVALUATION_DEFINITION)


def _some(thing: _Source, scout: _Scout, subject_name: str | None) -> list[Assignment]:
    if isinstance(thing, str | Path):
        return _from_files(_files(Path(thing)), scout)
    return [_one(thing, None, scout, subject_name)]


def _checked(cases: Iterable[Case]) -> Iterable[Case]:
    # What can be gone through only once must still look like it.
    return iter(_Cases(cases)) if isinstance(cases, Iterator) else _Cases(cases)


def _files(path: Path) -> list[Path]:
    """Lists the definitions that a path stands for; those of a project as its settings have it."""
    files = _project_files(path) if path.is_dir() else None
    if files is None:
        files = [each for each in files_to_check([path]) if named_by(each.name)]
    if not files:
        raise NotFound(f"there are no definitions in {str(path)!r}")
    return files


def _project_files(folder: Path) -> list[Path] | None:
    try:
        project = find_project(folder)
    except ProjectError:
        return None
    return [each.path for each in find_components(project)] if project.root == folder.resolve() else None


def _from_files(files: Sequence[Path], scout: _Scout, name: str | None = None) -> list[Assignment]:
    _refuse(validate(files).problems)
    return [_from_file(file, scout, name) for file in files]


def _from_file(file: Path, scout: _Scout, name: str | None) -> Assignment:
    named, content = named_by(file.name), bytes_of(file)
    kind, full_name = named or (EVALUATION_DEFINITION, file.stem)
    evaluation = read_evaluation(content, name or full_name)
    return scout.place(file.parent).assignment(evaluation, content, kind)._replace(file=file)


def _from_definition(definition: Definition, name: str | None, scout: _Scout) -> Assignment:
    place, full_name, content = scout.place(), name or definition.name, write_definition(definition)
    project = place.project
    problems = validate_component(
        definition.type,
        content,
        label=full_name,
        full_name=full_name,
        judgement=judgement_of(project.declared if project else None),
        api_version=version_in_force(project) if project else NEWEST_API_VERSION,
    )
    _refuse(problems)
    return place.assignment(evaluation_of(definition, name=full_name), content, definition.type)


def _refuse(problems: Sequence[Problem]) -> None:
    errors = [each for each in problems if each.is_error]
    if not errors:
        return
    lines = [f"{each} {each.hint}".rstrip() for each in errors[:_SHOWN_PROBLEMS]]
    if len(errors) > _SHOWN_PROBLEMS:
        lines.append(f"and {len(errors) - _SHOWN_PROBLEMS:,} more")
    message = "\n".join(["the definitions have errors; nothing was asked:", *lines])
    raise InvalidMetadata(message, problems=problems)
