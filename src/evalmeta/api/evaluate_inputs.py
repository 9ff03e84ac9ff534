"""What is to be evaluated: definitions, files, folders and cases, checked, and each with its project.

What evaluations are run with: a subject and a rater, given as Python objects, as settings, or by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from pydantic import ValidationError

from evalmeta.api.agent_tests import RECORDED_ANSWERS, find_tests, refuse_errors
from evalmeta.api.files import bytes_of, shown, validate
from evalmeta.engine.case_run import close
from evalmeta.engine.raters import bind_rater
from evalmeta.engine.subjects.python import subject_of
from evalmeta.engine.subjects.registry import bind
from evalmeta.errors import ProjectError, SettingsError, UsageError
from evalmeta.formats.document import reading_of
from evalmeta.formats.files import read_document
from evalmeta.model.definition import Definition
from evalmeta.model.evaluation import Case, Evaluation, evaluation_of
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION
from evalmeta.model.settings import (
    RATER_ADAPTERS,
    SUBJECT_ADAPTERS,
    PluginRater,
    PluginSubject,
    RecordedSubject,
    Settings,
)
from evalmeta.org.runs import read_evaluation
from evalmeta.org.subjects import bind_subject, rater_settings, sign_in
from evalmeta.package.config_file import key_name
from evalmeta.package.files import parse_file_name
from evalmeta.package.project import find_project
from evalmeta.package.resolver import version_in_force
from evalmeta.validation.rules import rule_policy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import write_definition

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AsyncExitStack

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.engine.raters.judge import Rater, Rating, RatingCache, Rubric
    from evalmeta.formats.document import Document
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import RunOptions
    from evalmeta.model.settings import RaterSettings, SubjectSettings
    from evalmeta.package.project import Project


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
        """Return an evaluation with what the place says about it."""
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
    """Return what is to be evaluated, each evaluation by itself.

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
        """Return the root that was named, or that of the project around a folder; raises like `find_project`."""
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
    definitions = [each for each in files if parse_file_name(each.name)]
    refuse_errors(validate(definitions).problems if definitions else ())
    return [_from_file(file, scout, name, subject_name) for file in files]


def _from_file(file: Path, scout: _Scout, name: str | None, subject_name: str | None) -> Assignment:
    named = parse_file_name(file.name)
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
    """Return the agent that a project binds, where it binds one; else a word for whoever answers."""
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
        policy=rule_policy(project.declared if project else None),
        api_version=version_in_force(project) if project else NEWEST_API_VERSION,
    )
    refuse_errors(problems)
    return place.assignment(evaluation_of(definition, name=full_name), content, definition.type)


_SUBJECT_SETTINGS: Final[tuple[type, ...]] = (*SUBJECT_ADAPTERS.values(), PluginSubject)
_RATER_SETTINGS: Final[tuple[type, ...]] = (*RATER_ADAPTERS.values(), PluginRater)
_GIVEN: Final = "given"


class Bindings:
    """The subjects and raters of one call, each made once, shared by its runs, and closed at its end.

    Args:
        stack: what closes them.
        subject: an agent, a table of settings or a subject; None binds them by name.
        rater: a function, a table of settings or a rater; None takes those that options name.
        cache: keeps what language models say.
    """

    def __init__(self, stack: AsyncExitStack, subject: object, rater: object, cache: RatingCache | None) -> None:
        self._stack = stack
        self._subject = subject
        self._rater = rater
        self._cache = cache
        self._subjects: dict[tuple[Path, str] | None, Subject] = {}
        self._raters: dict[tuple[Path, str] | None, Rater] = {}

    def subject(self, assignment: Assignment) -> Subject:
        """Return the subject of an assignment, which stays open when a run closes it.

        Raises:
            SubjectNotBound: none was given, and no adapter is bound to the agent's name.
            SettingsError: what was given is no subject, or cannot be used.
        """
        key = (assignment.root, assignment.evaluation.subject_name) if self._subject is None else None
        if key not in self._subjects:
            self._subjects[key] = found = self._new_subject(assignment)
            self._stack.push_async_callback(close, found)
        return _Shared(self._subjects[key])

    def rater(self, assignment: Assignment, options: RunOptions) -> Rater:
        """Return the rater of an assignment.

        Raises:
            SettingsError: what was given is no rater, none has the name, or it cannot be used.
        """
        key = (assignment.root, options.scoring.rater) if self._rater is None else None
        if key not in self._raters:
            self._raters[key] = found = self._new_rater(assignment, options.scoring.rater)
            self._stack.push_async_callback(close, found)
        return self._raters[key]

    def _new_subject(self, assignment: Assignment) -> Subject:
        if self._subject is not None:
            return _given_subject(self._subject, assignment.root)
        name, kind = assignment.evaluation.subject_name, assignment.evaluation.subject_type
        if assignment.document and assignment.document.is_answered and name not in assignment.settings.subjects:
            return bind(RecordedSubject(adapter="recorded"), root=assignment.root)
        return bind_subject(assignment.settings.subjects, name, root=assignment.root, subject_type=kind)

    def _new_rater(self, assignment: Assignment, name: str) -> Rater:
        if self._rater is not None:
            return _given_rater(self._rater, assignment.root, self._cache)
        return bind_rater(rater_settings(assignment.settings.raters, name), root=assignment.root, cache=self._cache)


class _Shared:
    """A subject that several runs ask; whoever made it closes it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    async def open(self, case: Case) -> Session:
        return await self._subject.open(case)

    async def close(self) -> None:
        """Leave the subject to whoever made it."""


class _Function:
    """A function that rates, with nothing to let go of."""

    def __init__(self, rate: object) -> None:
        self._rate = rate

    def __call__(self, rubric: Rubric, /) -> Rating | Awaitable[Rating] | None:
        return cast("Rater", self._rate)(rubric)

    async def close(self) -> None:
        """Has nothing to let go of."""


def _given_subject(subject: object, root: Path) -> Subject:
    settings = _subject_table(subject) if isinstance(subject, Mapping) else subject
    if isinstance(settings, _SUBJECT_SETTINGS):
        return bind(cast("SubjectSettings", settings), root=root, sign_in=sign_in)
    return cast("Subject", subject) if _is_subject(subject) else subject_of(subject, root=root)


def _given_rater(rater: object, root: Path, cache: RatingCache | None) -> Rater:
    settings = _rater_table(rater) if isinstance(rater, Mapping) else rater
    if isinstance(settings, _RATER_SETTINGS):
        return bind_rater(cast("RaterSettings", settings), root=root, cache=cache)
    if not callable(rater) or inspect.isclass(rater):
        raise SettingsError(
            f"the rater is neither a function nor settings: {type(rater).__name__}",
            actions=('Give a function of a rubric that gives a Rating, or a table such as {"adapter": "llm", ...}.',),
        )
    return cast("Rater", rater) if callable(getattr(rater, "close", None)) else _Function(rater)


def _is_subject(thing: object) -> bool:
    """Tells the engine's subjects, whose `open` takes a case, from agents, whose `open` takes history and context."""
    opener, closer = getattr(thing, "open", None), getattr(thing, "close", None)
    if inspect.isclass(thing) or not (inspect.iscoroutinefunction(opener) and inspect.iscoroutinefunction(closer)):
        return False
    needed = [each.name for each in inspect.signature(opener).parameters.values() if each.default is each.empty]
    return len(needed) == 1 and needed[0] not in {"history", "context"}


def _subject_table(table: Mapping[object, object]) -> SubjectSettings:
    return _settings("subjects", table).subjects[_GIVEN]


def _rater_table(table: Mapping[object, object]) -> RaterSettings:
    return _settings("raters", table).raters[_GIVEN]


def _settings(group: str, table: Mapping[object, object]) -> Settings:
    try:
        return Settings.model_validate({group: {_GIVEN: dict(table)}})
    except ValidationError as error:
        # The values themselves may be secrets.
        found = error.errors(include_url=False, include_input=False, include_context=False)
        lines = "; ".join(f"{key_name([*each['loc'][3:]]) or 'adapter'}: {each['msg']}" for each in found)
        raise SettingsError(f"the {group[:-1]}'s settings are wrong: {lines}") from None
