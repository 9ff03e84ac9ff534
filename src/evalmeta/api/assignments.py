"""What is to be evaluated: definitions, files, folders and cases, checked, and each with its project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.documents import RECORDED_ANSWERS, find_tests, refuse_errors
from evalmeta.api.metadata import bytes_of, shown, validate
from evalmeta.errors import ProjectError, UsageError
from evalmeta.interop.files import read_document
from evalmeta.interop.reading import reading_of
from evalmeta.model.definition import Definition
from evalmeta.model.evaluation import Case, Evaluation, evaluation_of
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION
from evalmeta.model.settings import Settings
from evalmeta.org.evaluations import read_evaluation
from evalmeta.package.convert import named_by
from evalmeta.package.project import find_project
from evalmeta.package.versions import version_in_force
from evalmeta.validation.judgement import judgement_of
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import write_definition

if TYPE_CHECKING:
    from evalmeta.interop.document import Document
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project

__all__ = ["Assignment", "assignments_of", "is_list"]

_Source = Definition | Evaluation | Path | str | Iterable[Case]


class Assignment(NamedTuple):
    """An evaluation, and where it came from.

    Attributes:
        content: the definition's bytes; None for cases without one.
        kind: the definition's type.
        root: the folder that subjects are found from.
        settings: of the project there, or the defaults.
        state_dir: the project's own folder for state; None without a project.
        file: the file that it was read from, if there is one.
        document: what a file says that is no definition.
    """

    evaluation: Evaluation
    content: bytes | None
    kind: MetadataType
    root: Path
    settings: Settings
    state_dir: Path | None
    file: Path | None = None
    document: Document | None = None


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

    def place(self, folder: Path | None = None, *, may_be_none: bool = False) -> Place:
        """Gives the root that was named, or that of the project around a folder; raises like `find_project`."""
        return self._find(self._root or folder or Path.cwd(), self._needs_project and not may_be_none)

    def _place(self, start: Path, needs_project: bool) -> Place:  # noqa: FBT001 - kept by both
        try:
            project = find_project(start)
        except ProjectError:
            if needs_project:
                raise
            return Place(start.resolve(), None)
        return Place(project.root, project)


def _one(what: _Source, name: str | None, scout: _Scout, subject_name: str | None) -> Assignment:
    if isinstance(what, str | Path):
        files = find_tests([Path(what)])
        if len(files) != 1:
            raise UsageError(
                f"{str(what)!r} has {len(files)} tests, and one is expected: give a list, [Path({str(what)!r})]"
            )
        return _from_files(files, scout, name, subject_name=subject_name)[0]
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
        return _from_files(find_tests([Path(thing)]), scout, subject_name=subject_name)
    return [_one(thing, None, scout, subject_name)]


def _checked(cases: Iterable[Case]) -> Iterable[Case]:
    # What can be gone through only once must still look like it.
    return iter(_Cases(cases)) if isinstance(cases, Iterator) else _Cases(cases)


def _from_files(
    files: Sequence[Path], scout: _Scout, name: str | None = None, *, subject_name: str | None = None
) -> list[Assignment]:
    definitions = [each for each in files if named_by(each.name)]
    refuse_errors(validate(definitions).problems if definitions else ())
    return [_from_file(file, scout, name, subject_name) for file in files]


def _from_file(file: Path, scout: _Scout, name: str | None, subject_name: str | None) -> Assignment:
    named = named_by(file.name)
    if named is None:
        return _from_document(file, scout, name or file.name, subject_name)
    content = bytes_of(file)
    kind, full_name = named
    evaluation = read_evaluation(content, name or full_name)
    return scout.place(file.parent).assignment(evaluation, content, kind)._replace(file=file)


def _from_document(file: Path, scout: _Scout, name: str, subject_name: str | None) -> Assignment:
    place = scout.place(file.parent, may_be_none=True)
    settings = place.project.settings if place.project else Settings()
    reading = reading_of(settings, is_asked=subject_name is not None)
    document = read_document(file, label=shown(file), name=name, reading=reading)
    if not document.is_answered:
        place = scout.place(file.parent)
    evaluation = document.evaluation
    if not evaluation.subject_name:
        answers = RECORDED_ANSWERS if document.is_answered else _only_subject(place)
        evaluation = replace(evaluation, subject_name=subject_name or answers)
    return place.assignment(evaluation, None, EVALUATION_DEFINITION)._replace(file=file, document=document)


def _only_subject(place: Place) -> str:
    """Gives the agent that a project binds, where it binds one; else a word for whoever answers."""
    bound = place.project.settings.subjects if place.project else {}
    return next(iter(bound)) if len(bound) == 1 else "the agent"


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
    refuse_errors(problems)
    return place.assignment(evaluation_of(definition, name=full_name), content, definition.type)
