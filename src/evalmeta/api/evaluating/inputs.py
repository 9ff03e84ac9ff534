"""The inputs of `evaluate`: definitions, files, folders and cases, with the subjects and raters to run them with."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.api.evaluating.loaded import LoadedEvaluation, Roots
from evalmeta.engine.case_run import close
from evalmeta.engine.prices import Prices
from evalmeta.engine.raters import offline_rater
from evalmeta.engine.redaction import with_redaction
from evalmeta.engine.scorers.functions import check_label
from evalmeta.engine.spending import Spending
from evalmeta.engine.subjects.objects import subject_of
from evalmeta.errors import FormatError, SettingsError, UsageError, did_you_mean
from evalmeta.model.definition import Definition, Expectation
from evalmeta.model.evaluation import Case, Evaluation, iterations_fault, metadata_fault
from evalmeta.model.json_value import frame_rows, is_frame
from evalmeta.model.python_objects import object_of
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run_options import OFFLINE_RATER, RunOptions, Scoring, Setup
from evalmeta.version import __version__

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from evalmeta.engine.interfaces import Rater, Rating, RatingCache, Rubric, Subject
    from evalmeta.engine.scorers.functions import GivenFunction, GivenFunctions
    from evalmeta.model.evaluation import Turn

_CASE_EXAMPLE: Final = '{"input": "Hello!", "contains": "Hi"}'
_Given = Iterable[Case | Mapping[str, object]]
_Source = Definition | Evaluation | Path | str | _Given


class _Frame(Protocol):
    columns: Iterable[object]


def check_keywords(given: Iterable[str], known: Collection[str], *, of: str) -> None:
    """Refuse keywords that a function does not have; the error suggests the most similar one, or the run's options."""
    for name in given:
        if name not in known:
            is_option = "options" in known and name in RunOptions.__annotations__
            action = f"Pass options=RunOptions({name}=...)." if is_option else did_you_mean(name, known)
            raise UsageError(f"{of} has no keyword {name!r}", actions=[action])


def is_list(what: object) -> bool:
    """Return whether this is a list of things to evaluate; a list of cases is one thing."""
    if not isinstance(what, Sequence) or isinstance(what, str):
        return False
    return not (what and isinstance(what[0], Case | Mapping))


def load_evaluations(
    what: object,
    *,
    name: str | None,
    root: Path | None,
    subject_name: str | None,
    checks: Iterable[object] = (),
    columns: Mapping[str, str] | None = None,
) -> list[LoadedEvaluation]:
    """Load what is to be evaluated, a single thing by another `name`, in a project's folder or in the projects around.

    `subject_name` is the subject's name for cases that have none; None if a project must bind it. `checks` judge all
    answers, too. `columns` are those of `evaluate`.
    """
    roots = Roots(root, subject_name, columns or {})
    if isinstance(checks, str | Mapping) or callable(checks):
        raise UsageError("the checks must be a list", actions=["Write checks=[...]."])
    given = [roots.functions.add(check) for check in checks]
    roots.functions.judge_all = bool(given)
    loaded = _load_all(what, name, roots)
    if columns:
        from evalmeta.formats.document import check_columns

        check_columns(columns, [item.file for item in loaded])
    return [_with_checks(loaded_evaluation, given) for loaded_evaluation in loaded] if given else loaded


def _with_checks(loaded: LoadedEvaluation, checks: Sequence[GivenFunction]) -> LoadedEvaluation:
    """Return an evaluation whose answers are judged by functions, too; it is not the test in the file any more."""
    given = loaded.evaluation.cases
    judged = _Judged(given, checks)
    cases = tuple(judged) if isinstance(given, tuple) else iter(judged) if isinstance(given, Iterator) else judged
    return loaded._replace(evaluation=replace(loaded.evaluation, cases=cases), content=None)


@dataclass(frozen=True, slots=True)
class _Judged:
    """Cases whose answers are all judged by functions, too."""

    cases: Iterable[Case]
    checks: Sequence[GivenFunction]

    def __iter__(self) -> Iterator[Case]:
        for case in self.cases:
            yield replace(case, turns=tuple(_judged(turn, self.checks) for turn in case.turns))


def _load_all(what: object, name: str | None, roots: Roots) -> list[LoadedEvaluation]:
    if not is_list(what):
        return [_load_one(cast("_Source", what), name, roots)]
    if name is not None:
        raise UsageError("a list of evaluations cannot have one name; leave out `name`")
    found = [
        loaded_evaluation for thing in cast("Sequence[_Source]", what) for loaded_evaluation in _load_item(thing, roots)
    ]
    if not found:
        raise UsageError("there is nothing to evaluate: the list is empty")
    return found


def _load_item(thing: _Source, roots: Roots) -> list[LoadedEvaluation]:
    """Load an item of a list, in which a folder stands for all tests in it."""
    if isinstance(thing, str | Path):
        from evalmeta.api.evaluating.project import load_tests

        return load_tests(Path(thing), roots)
    return [_load_one(thing, None, roots)]


def _load_one(what: _Source, name: str | None, roots: Roots) -> LoadedEvaluation:
    if isinstance(what, Evaluation):
        evaluation = replace(what, name=name or what.name, cases=_checked(what.cases, roots.functions))
        return roots.root_of().loaded(evaluation, None, EVALUATION_DEFINITION)
    if isinstance(what, str | Path | Definition):
        from evalmeta.api.evaluating import project

        if isinstance(what, Definition):
            return project.load_definition(what, name, roots)
        return project.load_one_file(Path(what), name, roots)
    given: object = _rows_of(what) if is_frame(what) else what
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise UsageError(
            f"cannot evaluate {type(what).__name__}: pass a definition, a path, cases, a data frame, or a list"
        )
    if roots.subject_name is None:
        raise UsageError("cases do not name an agent: pass a subject too")
    evaluation = Evaluation(name or "evaluation", roots.subject_name, _checked(cast("_Given", given), roots.functions))
    return roots.root_of().loaded(evaluation, None, EVALUATION_DEFINITION)


def _rows_of(frame: object) -> list[Mapping[str, object]]:
    """Return the rows of a data frame as cases; a missing value is a key that the case does not have.

    Raise FormatError if two columns have one name, because rows have only one of them.
    """
    names = Counter(map(str, cast("_Frame", frame).columns))
    if repeated := next((name for name, times in names.items() if times > 1), None):
        raise FormatError(
            f"the data frame has two columns named {repeated!r}",
            actions=["Rename or remove one of them. A cell may hold a list of values."],
        )
    return [{key: value for key, value in row.items() if value is not None} for row in frame_rows(frame)]


def _checked(given: _Given, functions: GivenFunctions) -> Iterable[Case]:
    cases = _Cases(given, functions)
    if isinstance(given, list | tuple):
        return tuple(cases)
    # An iterator must stay one, because its cases are available only once.
    return iter(cases) if isinstance(given, Iterator) else cases


@dataclass(frozen=True, slots=True)
class _Cases:
    """Cases whose types and numbers are checked as they are iterated; mappings become cases."""

    cases: _Given
    functions: GivenFunctions

    def __iter__(self) -> Iterator[Case]:
        # Numbers that follow one another, which is usual, take no memory.
        first, following, others = 1, 1, set[int]()
        for place, given in enumerate(self.cases, 1):
            case = given if isinstance(given, Case) else _case_of(given, place, self.functions)
            if given is case and (fault := _fault(case)):
                raise UsageError(f"case {case.number}: {fault}")
            number = case.number
            if first <= number < following or number in others:
                raise UsageError(f"two cases have the number {number}")
            if number == following:
                following += 1
            elif place == 1:
                first, following = number, number + 1
            else:
                others.add(number)
            yield case


def _fault(case: Case) -> str:
    if case.iterations is not None and (fault := iterations_fault(case.iterations)):
        return fault
    return metadata_fault(case.metadata) if case.metadata else ""


def _case_of(values: object, number: int, functions: GivenFunctions) -> Case:
    if not isinstance(values, Mapping):
        raise UsageError(
            f"{type(values).__name__} is not a test case: pass a mapping such as {_CASE_EXAMPLE}, or a Case"
        )
    from evalmeta.formats.spec_cases import case_of

    if values.keys().isdisjoint(_CHECKED_KEYS):
        return case_of(values, number, reads_expected=functions.judge_all)
    if "turns" not in values:
        named, checks = _named(values, functions)
        case = case_of(named, number, reads_expected=functions.judge_all or bool(checks))
        return replace(case, turns=tuple(_judged(turn, checks) for turn in case.turns))
    turns = [_named(turn, functions) if isinstance(turn, Mapping) else (turn, ()) for turn in _listed(values["turns"])]
    reads_expected = functions.judge_all or any(checks for _, checks in turns)
    values = {**_named(values, functions)[0], "turns": [named for named, _ in turns]}
    case = case_of(values, number, reads_expected=reads_expected)
    return replace(
        case, turns=tuple(_judged(turn, checks) for turn, (_, checks) in zip(case.turns, turns, strict=True))
    )


_CHECKED_KEYS: Final = ("checks", "function", "turns")


def _named(
    values: Mapping[str, object], functions: GivenFunctions
) -> tuple[Mapping[str, object], Sequence[GivenFunction]]:
    """Return a test case or a turn without functions among its checks, and these functions."""
    checks = [*_listed(values.get("checks")), *_listed(values.get("function"))]
    texts = [check for check in checks if isinstance(check, str)]
    named = {key: value for key, value in values.items() if key not in {"checks", "function"}}
    given = [functions.add(check) for check in checks if not isinstance(check, str)]
    # A test case with turns has no checks of its own, which its reader reports.
    is_named = bool(texts) or (bool(given) and "turns" in values)
    return ({**named, "function": texts or [check.name for check in given]} if is_named else named), given


def _judged(turn: Turn, checks: Sequence[GivenFunction]) -> Turn:
    return replace(turn, expectations=(*turn.expectations, *map(_by_function, checks))) if checks else turn


def _by_function(check: GivenFunction) -> Expectation:
    return Expectation("function", label=check_label(check.label), terms={"function": check.name})


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, list | tuple) else () if value is None else (value,)


class Bindings:
    """The subjects and raters of one call, which its runs share; each is created once, and `stack` closes it.

    Subject, rater and traces are those of `evaluate`. `cache` keeps the replies of language models, by default the
    project's.
    """

    def __init__(
        self, stack: AsyncExitStack, subject: object, rater: object, cache: RatingCache | None, *, traces: bool = False
    ) -> None:
        self._stack = stack
        self._subject = subject
        self._traces = traces
        self._rater = rater
        self._cache = cache
        self.spent: dict[Hashable, int] = {}
        self._subjects: dict[tuple[Path, str] | None, Subject] = {}
        self._raters: dict[tuple[Path, str] | None, Rater] = {}
        self._setups: dict[tuple[tuple[Path, str] | None, str, float], Setup] = {}

    def subject(self, loaded: LoadedEvaluation) -> Subject:
        """Return the subject of an evaluation; it stays open when a run closes it."""
        key = self.agent(loaded)
        if key not in self._subjects:
            self._subjects[key] = found = self._redacted(self._new_subject(loaded), loaded)
            self._stack.push_async_callback(close, found)
        return _SharedSubject(self._subjects[key])

    def agent(self, loaded: LoadedEvaluation) -> tuple[Path, str] | None:
        """Return what identifies the agent of an evaluation; None for the subject argument."""
        return (loaded.root, loaded.evaluation.subject_name) if self._subject is None else None

    def rater(self, loaded: LoadedEvaluation, options: RunOptions) -> Rater:
        """Return the rater of an evaluation."""
        key = (loaded.root, options.scoring.rater) if self._rater is None else None
        if key not in self._raters:
            self._raters[key] = found = self._new_rater(loaded, options.scoring.rater)
            self._stack.push_async_callback(close, found)
        return self._raters[key]

    def setup(self, loaded: LoadedEvaluation, options: RunOptions) -> Setup:
        """Return what answers and what judges in a run; both are bound."""
        key = self.agent(loaded), options.scoring.rater, options.scoring.threshold
        if key not in self._setups:
            self._setups[key] = self._new_setup(loaded, options.scoring)
        return self._setups[key]

    def spending(self, loaded: LoadedEvaluation) -> Spending:
        """Return the prices of an evaluation's project, and the model of its agent in the settings."""
        has_settings = loaded.project is not None and loaded.project.declared is not None
        if not has_settings and self._subject is not None and not _may_describe(self._subject):
            return Spending()
        from evalmeta.api.evaluating import project

        return Spending(Prices(loaded.settings.prices), project.model_of(loaded, self._subject))

    def check_price(self, loaded: LoadedEvaluation, options: RunOptions) -> None:
        """Raise SettingsError if nothing in a run with a cost limit can have a price."""
        from evalmeta.api.evaluating import project
        from evalmeta.org.readiness import check_price

        subject, rater = project.described(loaded, self._subject, self._rater, options)
        check_price(self.spending(loaded).prices, subject, rater)

    def _new_setup(self, loaded: LoadedEvaluation, scoring: Scoring) -> Setup:
        subject, judge, rater = self._subject, self._rater, scoring.rater
        has_settings = loaded.project is not None and loaded.project.declared is not None
        is_offline = judge is None and rater == OFFLINE_RATER and not has_settings
        if is_offline and subject is not None and not _may_describe(subject):
            return Setup(*object_of(subject), rater, evalmeta=__version__)
        from evalmeta.api.evaluating import project

        return project.setup_of(loaded, subject, judge, scoring)

    def _new_subject(self, loaded: LoadedEvaluation) -> Subject:
        subject, root = self._subject, loaded.root
        if subject is not None and not _may_describe(subject):
            return self._traced(_subject_of_argument(subject, root))
        from evalmeta.api.evaluating import project

        own = project.project_subject(loaded) if subject is None else project.described_subject(subject, root)
        if own is None:
            return self._traced(_subject_of_argument(subject, root))
        if self._traces:
            raise UsageError(
                "traces=True needs an agent that is a Python object",
                actions=["Write traces = true into the settings of the agent instead."],
            )
        return own

    def _traced(self, subject: Subject) -> Subject:
        if not self._traces:
            return subject
        from evalmeta.engine.process_traces import with_process_traces

        return with_process_traces(subject)

    def _redacted(self, subject: Subject, loaded: LoadedEvaluation) -> Subject:
        if loaded.project is None or loaded.project.declared is None:
            return subject
        return with_redaction(subject, loaded.settings.redact.patterns)

    def _new_rater(self, loaded: LoadedEvaluation, name: str) -> Rater:
        rater, has_settings = self._rater, loaded.project is not None and loaded.project.declared is not None
        if rater is None and name == OFFLINE_RATER and not has_settings:
            return offline_rater()
        if rater is not None and not _may_describe(rater):
            return _rater_of_argument(rater)
        from evalmeta.api.evaluating import project

        cache = self._cache or project.open_cache(loaded.store, self._stack)
        if rater is None:
            return project.project_rater(loaded, name, cache)
        return project.described_rater(rater, loaded.root, cache) or _rater_of_argument(rater)


class _SharedSubject:
    """A subject that several runs use; only the call that created it closes it."""

    def __init__(self, subject: Subject) -> None:
        self.open = subject.open

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


def _may_describe(argument: object) -> bool:
    """Return whether an argument may be a table or the settings of a subject or rater, which have an adapter."""
    return isinstance(argument, Mapping) or hasattr(argument, "adapter")


def _subject_of_argument(subject: object, root: Path) -> Subject:
    return cast("Subject", subject) if _is_subject(subject) else subject_of(subject, root=root)


def _rater_of_argument(rater: object) -> Rater:
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
    needed = [
        parameter.name
        for parameter in inspect.signature(opener).parameters.values()
        if parameter.default is parameter.empty
    ]
    return len(needed) == 1 and needed[0] not in {"history", "context"}
