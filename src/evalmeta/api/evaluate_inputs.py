"""The inputs of `evaluate`: definitions, files, folders and cases, with the subjects and raters to run them with."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from pydantic import ValidationError

from evalmeta.api.agent_tests import RECORDED_ANSWERS, refuse_errors, with_document
from evalmeta.api.discovery import find_tests
from evalmeta.api.files import bytes_of, validate
from evalmeta.engine.case_run import close
from evalmeta.engine.raters.registry import bind_rater
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
from evalmeta.package.files import parse_file_name, shown
from evalmeta.package.project import find_project
from evalmeta.package.resolver import version_in_force
from evalmeta.store.judge_cache import FolderRatings
from evalmeta.validation.rules import rule_policy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import write_definition

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AsyncExitStack

    from pydantic_core import ErrorDetails

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.engine.raters.judge import Rater, Rating, RatingCache, Rubric
    from evalmeta.formats.document import Document
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import RunOptions
    from evalmeta.model.settings import RaterSettings, SubjectSettings
    from evalmeta.package.project import Project


_Source = Definition | Evaluation | Path | str | Iterable[Case]


class LoadedEvaluation(NamedTuple):
    """An evaluation and its origin.

    Attributes:
        content: the definition's bytes; None for cases without a definition.
        kind: the definition's type.
        root: the folder that Python subjects are imported from.
        settings: those of the project around it, or the defaults.
        state_dir: the project's state folder; None without a project.
        file: the file that it was read from, if any.
        document: the content of a file that is not a definition.
    """

    evaluation: Evaluation
    content: bytes | None
    kind: MetadataType
    root: Path
    settings: Settings
    state_dir: Path | None
    file: Path | None = None
    document: Document | None = None

    @property
    def options(self) -> RunOptions:
        """Return the options that the file says, and [run] and [score] of the project's settings."""
        options = self.settings.run_options()
        return options if self.document is None else with_document(options, self.document)


class _Root(NamedTuple):
    """A folder with the project around it, if any."""

    folder: Path
    project: Project | None

    def loaded(self, evaluation: Evaluation, content: bytes | None, kind: MetadataType) -> LoadedEvaluation:
        settings, state_dir = (self.project.settings, self.project.state_dir) if self.project else (Settings(), None)
        return LoadedEvaluation(evaluation, content, kind, self.folder, settings, state_dir)


def is_list(what: object) -> bool:
    """Return whether this is a list of things to evaluate; a list of cases is one thing."""
    return isinstance(what, Sequence) and not isinstance(what, str) and not (what and isinstance(what[0], Case))


def load_evaluations(
    what: _Source | Sequence[_Source], *, name: str | None, root: Path | None, subject_name: str | None
) -> list[LoadedEvaluation]:
    """Load what is to be evaluated.

    Args:
        what: one thing, or a list, in which folders stand for all definitions in them.
        name: the name of the evaluation; only for one thing.
        root: the project's folder; the project around each file or the current folder if None.
        subject_name: the subject's name for cases that have none; None if a project must bind it.

    Raises:
        InvalidMetadata: definitions have errors; `problems` has them and the warnings.
        NotFound: a file or folder does not exist, or has no definitions.
        UsageError: there is nothing to evaluate, or more than one thing where one is expected.
        ProjectError: there is no project, and no subject.
    """
    loader = _Loader(root, subject_name)
    if not is_list(what):
        return [loader.load_one(cast("_Source", what), name)]
    if name is not None:
        raise UsageError("a list of evaluations cannot have one name; leave out `name`")
    found = [each for thing in cast("Sequence[_Source]", what) for each in loader.load_item(thing)]
    if not found:
        raise UsageError("there is nothing to evaluate: the list is empty")
    return found


class _Loader:
    """Loads evaluations, each with the project around it."""

    def __init__(self, root: Path | None, subject_name: str | None) -> None:
        self._root = root
        self._subject_name = subject_name
        self._find = cache(self._find_root)

    def load_one(self, what: _Source, name: str | None) -> LoadedEvaluation:
        if isinstance(what, str | Path):
            files = find_tests([Path(what)]).paths
            if len(files) != 1:
                raise UsageError(
                    f"{str(what)!r} has {len(files)} tests, and one is expected: pass a list, [Path({str(what)!r})]"
                )
            return self._load_files(files, name)[0]
        if isinstance(what, Definition):
            return self._load_definition(what, name)
        if isinstance(what, Evaluation):
            evaluation = replace(what, name=name or what.name, cases=_checked(what.cases))
            return self._root_of().loaded(evaluation, None, EVALUATION_DEFINITION)
        if not isinstance(what, Iterable):
            raise UsageError(f"cannot evaluate {type(what).__name__}: pass a definition, a path, cases, or a list")
        if self._subject_name is None:
            raise UsageError("cases do not name an agent: pass a subject too")
        evaluation = Evaluation(name or "evaluation", self._subject_name, _checked(what))
        return self._root_of().loaded(evaluation, None, EVALUATION_DEFINITION)

    def load_item(self, thing: _Source) -> list[LoadedEvaluation]:
        """Load an item of a list, in which a folder stands for all tests in it."""
        if isinstance(thing, str | Path):
            return self._load_files(find_tests([Path(thing)]).paths)
        return [self.load_one(thing, None)]

    def _load_files(self, files: Sequence[Path], name: str | None = None) -> list[LoadedEvaluation]:
        definitions = [each for each in files if parse_file_name(each.name)]
        refuse_errors(validate(definitions).problems if definitions else ())
        return [self._load_file(file, name)._replace(file=file) for file in files]

    def _load_file(self, file: Path, name: str | None) -> LoadedEvaluation:
        parsed = parse_file_name(file.name)
        if parsed is None:
            return self._load_document(file, name or file.name)
        content = bytes_of(file)
        kind, full_name = parsed
        return self._root_of(file.parent).loaded(read_evaluation(content, name or full_name), content, kind)

    def _load_document(self, file: Path, name: str) -> LoadedEvaluation:
        root = self._root_of(file.parent, may_be_none=True)
        settings = root.project.settings if root.project else Settings()
        reading = reading_of(settings, root=root.folder, is_asked=self._subject_name is not None)
        document = read_document(file, label=shown(file), name=name, reading=reading)
        if not document.is_answered:
            root = self._root_of(file.parent)
        evaluation = document.evaluation
        if not evaluation.subject_name:
            only = next(iter(settings.subjects)) if len(settings.subjects) == 1 else "My_Agent"
            default = RECORDED_ANSWERS if document.is_answered else only
            evaluation = replace(evaluation, subject_name=self._subject_name or default)
        return root.loaded(evaluation, None, EVALUATION_DEFINITION)._replace(document=document)

    def _load_definition(self, definition: Definition, name: str | None) -> LoadedEvaluation:
        root, full_name, content = self._root_of(), name or definition.name, write_definition(definition)
        problems = validate_component(
            definition.type,
            content,
            label=full_name,
            full_name=full_name,
            policy=rule_policy(root.project.declared if root.project else None),
            api_version=version_in_force(root.project) if root.project else NEWEST_API_VERSION,
        )
        refuse_errors(problems)
        return root.loaded(evaluation_of(definition, name=full_name), content, definition.type)

    def _root_of(self, folder: Path | None = None, *, may_be_none: bool = False) -> _Root:
        """Return the given root, or the project around a folder; raises like `find_project`."""
        return self._find(
            self._root or folder or Path.cwd(), needs_project=self._subject_name is None and not may_be_none
        )

    def _find_root(self, start: Path, *, needs_project: bool) -> _Root:
        try:
            project = find_project(start)
        except ProjectError:
            if needs_project:
                raise
            return _Root(start.resolve(), None)
        return _Root(project.root, project)


def _checked(cases: Iterable[Case]) -> Iterable[Case]:
    # An iterator must stay one, because its cases are available only once.
    return iter(_Cases(cases)) if isinstance(cases, Iterator) else _Cases(cases)


@dataclass(frozen=True, slots=True)
class _Cases:
    """Cases whose types and numbers are checked as they are iterated."""

    cases: Iterable[Case]

    def __iter__(self) -> Iterator[Case]:
        seen: set[int] = set()
        for case in self.cases:
            if not isinstance(case, Case):
                raise UsageError(f"{type(case).__name__} is not a Case of `evalmeta.model.evaluation`")
            if case.number in seen:
                raise UsageError(f"two cases have the number {case.number}")
            seen.add(case.number)
            yield case


_SUBJECT_SETTINGS: Final[tuple[type, ...]] = (*SUBJECT_ADAPTERS.values(), PluginSubject)
_RATER_SETTINGS: Final[tuple[type, ...]] = (*RATER_ADAPTERS.values(), PluginRater)
_ARGUMENT: Final = "argument"


class Bindings:
    """The subjects and raters of one call, which its runs share; each is created and closed once.

    Args:
        stack: closes them.
        subject: an agent, a table of settings or a subject; None binds subjects by name.
        rater: a function, a table of settings or a rater; None binds the raters that options name.
        cache: keeps the replies of language models; None uses the project's cache, or this process's without one.
    """

    def __init__(self, stack: AsyncExitStack, subject: object, rater: object, cache: RatingCache | None) -> None:
        self._stack = stack
        self._subject = subject
        self._rater = rater
        self._cache = cache
        self._subjects: dict[tuple[Path, str] | None, Subject] = {}
        self._raters: dict[tuple[Path, str] | None, Rater] = {}

    def subject(self, loaded: LoadedEvaluation) -> Subject:
        """Return the subject of an evaluation; it stays open when a run closes it.

        Raises:
            SubjectNotBound: there is no subject argument, and no adapter is bound to the agent's name.
            SettingsError: the subject argument is not a subject, or cannot be used.
        """
        key = self.agent(loaded)
        if key not in self._subjects:
            self._subjects[key] = found = self._new_subject(loaded)
            self._stack.push_async_callback(close, found)
        return _SharedSubject(self._subjects[key])

    def agent(self, loaded: LoadedEvaluation) -> tuple[Path, str] | None:
        """Return what identifies the agent of an evaluation; None for the subject argument."""
        return (loaded.root, loaded.evaluation.subject_name) if self._subject is None else None

    def rater(self, loaded: LoadedEvaluation, options: RunOptions) -> Rater:
        """Return the rater of an evaluation.

        Raises:
            SettingsError: the rater argument is not a rater, there is none with the name, or it cannot be used.
        """
        key = (loaded.root, options.scoring.rater) if self._rater is None else None
        if key not in self._raters:
            self._raters[key] = found = self._new_rater(loaded, options.scoring.rater)
            self._stack.push_async_callback(close, found)
        return self._raters[key]

    def _new_subject(self, loaded: LoadedEvaluation) -> Subject:
        if self._subject is not None:
            return _subject_of_argument(self._subject, loaded.root)
        name, kind = loaded.evaluation.subject_name, loaded.evaluation.subject_type
        if loaded.document and loaded.document.is_answered and name not in loaded.settings.subjects:
            return bind(RecordedSubject(adapter="recorded"), root=loaded.root)
        return bind_subject(loaded.settings.subjects, name, root=loaded.root, subject_type=kind)

    def _new_rater(self, loaded: LoadedEvaluation, name: str) -> Rater:
        cache = self._cache or self._open_cache(loaded.state_dir)
        if self._rater is not None:
            return _rater_of_argument(self._rater, loaded.root, cache)
        return bind_rater(rater_settings(loaded.settings.raters, name), root=loaded.root, cache=cache)

    def _open_cache(self, state_dir: Path | None) -> RatingCache:
        cache = FolderRatings(state_dir)
        self._stack.callback(cache.close)
        return cache


class _SharedSubject:
    """A subject that several runs use; only the call that created it closes it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    async def open(self, case: Case) -> Session:
        return await self._subject.open(case)

    async def close(self) -> None:
        """Do nothing."""


class _FunctionRater:
    """A function as a rater."""

    def __init__(self, rate: object) -> None:
        self._rate = rate

    def __call__(self, rubric: Rubric, /) -> Rating | Awaitable[Rating] | None:
        return cast("Rater", self._rate)(rubric)

    async def close(self) -> None:
        """Do nothing: a function has nothing to close."""


def _subject_of_argument(subject: object, root: Path) -> Subject:
    settings = _settings("subjects", subject).subjects[_ARGUMENT] if isinstance(subject, Mapping) else subject
    if isinstance(settings, _SUBJECT_SETTINGS):
        return bind(cast("SubjectSettings", settings), root=root, sign_in=sign_in)
    return cast("Subject", subject) if _is_subject(subject) else subject_of(subject, root=root)


def _rater_of_argument(rater: object, root: Path, cache: RatingCache) -> Rater:
    settings = _settings("raters", rater).raters[_ARGUMENT] if isinstance(rater, Mapping) else rater
    if isinstance(settings, _RATER_SETTINGS):
        return bind_rater(cast("RaterSettings", settings), root=root, cache=cache)
    if not callable(rater) or inspect.isclass(rater):
        raise SettingsError(
            f"the rater must be a function or settings, not {type(rater).__name__}",
            actions=('Pass a function from a Rubric to a Rating, or a table such as {"adapter": "llm", ...}.',),
        )
    return cast("Rater", rater) if callable(getattr(rater, "close", None)) else _FunctionRater(rater)


def _is_subject(thing: object) -> bool:
    """Return whether this is a subject, whose `open` takes a case; that of an agent takes history and context."""
    opener, closer = getattr(thing, "open", None), getattr(thing, "close", None)
    if inspect.isclass(thing) or not (inspect.iscoroutinefunction(opener) and inspect.iscoroutinefunction(closer)):
        return False
    needed = [each.name for each in inspect.signature(opener).parameters.values() if each.default is each.empty]
    return len(needed) == 1 and needed[0] not in {"history", "context"}


def _settings(group: str, table: Mapping[object, object]) -> Settings:
    try:
        return Settings.model_validate({group: {_ARGUMENT: dict(table)}})
    except ValidationError as error:
        # The values may be secrets, so they are left out.
        found = error.errors(include_url=False, include_input=False, include_context=False)
        lines = "; ".join(map(_fault, found))
        raise SettingsError(f"the {group[:-1]}'s settings are not valid: {lines}") from None


def _fault(fault: ErrorDetails) -> str:
    keys = [*fault["loc"][3:]] or (["adapter"] if fault["type"].startswith("union_tag") else [])
    return f"{key_name(keys)}: {fault['msg']}" if keys else fault["msg"]
