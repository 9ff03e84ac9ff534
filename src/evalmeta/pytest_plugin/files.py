"""Evaluation files as test files: every case is a test item, and the selected cases of all files run together."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.api.discovery import Searched, kind_in_folder, others_note, source_note, sources_of, without_parts
from evalmeta.api.evaluating.evaluate import check_evaluation
from evalmeta.api.evaluating.inputs import load_evaluations
from evalmeta.api.runs.case_lines import case_places
from evalmeta.engine.project_code import imports_kept
from evalmeta.errors import EvalmetaError, FormatError, InvalidMetadata, ProjectError, SubjectNotBound
from evalmeta.model.aggregation import verdict_in
from evalmeta.model.run import CaseResult, Summary, Verdict
from evalmeta.model.tally import summarise
from evalmeta.package.files import parse_test_name, shown
from evalmeta.package.forceignore import ForceIgnore, read_forceignore
from evalmeta.package.project import find_project, has_project
from evalmeta.pytest_plugin.entries import gets_whole_files
from evalmeta.pytest_plugin.questions import Questions
from evalmeta.pytest_plugin.results import FileNote, error_text, failure_repr, file_note
from evalmeta.report.details import case_text, iterations_text, why_not_passed
from evalmeta.report.problems import render
from evalmeta.report.report import coverage_text, ended_text, quarantine_text
from evalmeta.report.text import count, one_line, percent

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from _pytest._code.code import TerminalRepr

    from evalmeta.api.evaluating.loaded import LoadedEvaluation
    from evalmeta.model.evaluation import Case
    from evalmeta.model.run_options import RunOptions
    from evalmeta.pytest_plugin.questions import Answers, FileRun


_NAME_CHARS: Final = 80
_ROUND_BRACKETS: Final = str.maketrans("[]", "()")
_NO_AGENT_ACTIONS: Final = (
    "Name a Python agent: --evalmeta-subject MODULE:NAME, or evalmeta_subject in pytest's settings.",
    "Or add [subjects.NAME] to an evalmeta.toml, with the agent's name in the file.",
)
_PLUGIN: Final = "evalmeta-definitions"
_RUN_OPTIONS: Final = ("iterations", "min_pass_rate", "min_decided", "concurrency")


def evaluation_file(
    path: Path, parent: pytest.Collector, *, is_named: bool, is_asked_for: bool
) -> EvaluationFile | None:
    """Return the collector of an evaluation file; None for other files.

    In folders, definitions and other tests are collected, also those with mistakes. If the command line names a file
    (`is_named`), files of all formats are. If nothing asked for files, those without an agent are skipped.
    """
    if not is_named and _is_skipped(path, parent.session):
        return None
    plugins, kind = parent.config.pluginmanager, kind_in_folder(path)
    is_other = kind is not None and not (kind.is_test or (is_named and kind.format))
    if kind is None and parse_test_name(path.name) is None and not (is_named and path.suffix == ".parquet"):
        return None
    if not plugins.has_plugin(_PLUGIN):
        plugins.register(sys.modules[__name__], _PLUGIN)
        # An agent is imported once for the check and for the cases of all files.
        stack = ExitStack()
        stack.enter_context(imports_kept())
        parent.config.add_cleanup(stack.close)
    if kind and is_other:
        parent.config.stash.setdefault(_OTHERS, {})[path] = kind.why_not
        return None
    found: EvaluationFile = EvaluationFile.from_parent(parent, path=path)
    found.is_named, found.is_asked_for = is_named, is_asked_for
    return found


def _is_skipped(path: Path, session: pytest.Session) -> bool:
    """Return whether other searches of the folder skip a file: it is hidden, or the project's `.forceignore` has it."""
    ignore = _ignore_of(path.parent)
    if not ignore.ignores(_real(path)):
        return path.name.startswith(".")
    named = (parent for parent in path.parents if session.isinitpath(parent))
    return not any(ignore.ignores(_real(folder), is_folder=True) for folder in named)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path.parent)) / path.name


@cache
def _ignore_of(folder: Path) -> ForceIgnore:
    try:
        return read_forceignore(find_project(folder).root)
    except ProjectError:
        return ForceIgnore(folder)


_QUESTIONS: Final = pytest.StashKey[Questions]()
_OTHERS: Final = pytest.StashKey[dict["Path", str]]()
_SOURCES: Final = pytest.StashKey[dict["Path", "Path"]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases of files in folders that are those of a definition or a spec that is collected too."""
    files = {item.path: item.parent for item in items if isinstance(item, CaseItem)}
    searched = [path for path, file in files.items() if not file.is_named]
    named = {os.path.realpath(path) for path, file in files.items() if file.is_named}
    kept, config.stash[_OTHERS] = without_parts(Searched([*files], config.stash.get(_OTHERS, {})), named)
    config.stash[_SOURCES] = sources = sources_of(files, searched=searched)
    run = {*kept}.difference(sources)
    left_out = {item for item in items if isinstance(item, CaseItem) and item.path not in run}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Name the deselected files, and those that cannot run because something is missing."""
    # All that cases need is checked before the first of them runs.
    files = {} if config.option.collectonly else _numbers_by_file(items)
    missing = [line for file, numbers in files.items() if (line := file.check(numbers))]
    others = config.stash.get(_OTHERS, {})
    note = others_note(others, verbose=config.option.verbose > 0)
    sources = (source_note(*pair) for pair in config.stash.get(_SOURCES, {}).items())
    return [*sources, *note.splitlines(), *missing]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show why a case could not run; by default pytest shows a traceback of its setup."""
    report = yield
    if isinstance(item, CaseItem) and report.failed and report.when == "setup" and call.excinfo:
        report.longrepr = item.repr_failure(call.excinfo)
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close agents before tests of other kinds run."""
    if not isinstance(nextitem, CaseItem):
        _close_questions(item.config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop what still runs when the session was stopped."""
    _close_questions(session.config)


def _questions(config: pytest.Config, subject: Mapping[str, str] | None) -> Questions:
    if _QUESTIONS not in config.stash:
        config.stash[_QUESTIONS] = Questions(subject)
    return config.stash[_QUESTIONS]


def _close_questions(config: pytest.Config) -> None:
    if _QUESTIONS in config.stash:
        questions = config.stash[_QUESTIONS]
        del config.stash[_QUESTIONS]
        questions.close()


def _asked_with(item: CaseItem) -> dict[EvaluationFile, list[int]]:
    """Return the cases that run together with a case: those that follow until a test of another kind, by file."""
    if not gets_whole_files(item.config):
        # Workers must not run the items of other workers.
        return {item.parent: [item.case.number]}
    items = item.session.items
    numbers = _numbers_by_file(items)
    if hasattr(item.config, "workerinput"):
        # Other workers may run the files that follow.
        return {item.parent: numbers[item.parent]}
    following = takewhile(lambda other: isinstance(other, CaseItem), islice(items, items.index(item), None))
    return {file: numbers[file] for file in _numbers_by_file(following)}


def _numbers_by_file(items: Iterable[pytest.Item]) -> dict[EvaluationFile, list[int]]:
    """Return the numbers of the cases among items by their file."""
    numbers: dict[EvaluationFile, list[int]] = {}
    for item in items:
        if isinstance(item, CaseItem):
            numbers.setdefault(item.parent, []).append(item.case.number)
    return numbers


class EvaluationFile(pytest.File):
    """An evaluation file; its cases run together, with those of the files that follow it."""

    options: RunOptions
    is_named: bool
    is_asked_for: bool
    _loaded: LoadedEvaluation
    _runs: dict[int, FileRun]
    _fault: EvalmetaError | None = None

    def collect(self) -> Iterator[CaseItem]:
        """Yield an item for each case; errors of the file and its project are shown by `repr_failure`."""
        self._runs = {}
        self._loaded = loaded = self._load()
        options = {name: self.config.getoption(f"evalmeta_{name}") for name in _RUN_OPTIONS}
        self.options = replace(loaded.options, **{name: value for name, value in options.items() if value is not None})
        lines, files = case_places(self.path, loaded.document)
        for note in loaded.document.notes if loaded.document else ():
            self.warn(pytest.PytestWarning(f"{note} {note.hint}".rstrip()))
        for case in loaded.evaluation.cases:
            place = files.get(case.number) or shown(self.path), lines.get(case.number, 1)
            yield CaseItem.from_parent(self, name=_item_name(case), case=case, place=place)

    def check(self, numbers: Sequence[int]) -> str:
        """Check what the cases with these numbers need; return a line if something is missing, and keep the error."""
        try:
            check_evaluation(self._loaded, self.subject, options=replace(self.options, cases=tuple(numbers)))
        except EvalmetaError as error:
            self._fault = error
            return f"evalmeta: {shown(self.path)}: {count(len(numbers), 'case')} cannot run: {error}"
        return ""

    def answers(self, item: CaseItem) -> Answers:
        """Return the results of a case, one for each iteration, or the error that prevented the run."""
        if self._fault is not None:
            return self._fault
        number, questions = item.case.number, _questions(self.config, self.subject)
        if number not in self._runs:
            for file, numbers in _asked_with(item).items():
                file.ask(questions, numbers)
        return questions.answers(self._runs[number], number)

    def ask(self, questions: Questions, numbers: Sequence[int]) -> None:
        """Begin to run the cases with these numbers, unless the file cannot run."""
        missing = [number for number in numbers if number not in self._runs]
        if missing and self._fault is None:
            run = questions.ask(self._loaded, replace(self.options, cases=tuple(missing)))
            self._runs |= dict.fromkeys(missing, run)

    def repr_failure(  # type: ignore[override] # as pytest's own
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> str | TerminalRepr:
        """Show the problems of a file like `evalmeta validate`."""
        error = excinfo.value
        if isinstance(error, InvalidMetadata | FormatError) and error.problems:
            first = next(problem for problem in error.problems if problem.is_error)
            text = render("human", error.problems, files=1)
            return failure_repr(shown(self.path), first.location.line or 1, message=first.message, text=text)
        if isinstance(error, EvalmetaError):
            return failure_repr(shown(self.path), 1, message=str(error), text=error_text(error))
        return super().repr_failure(excinfo)

    @property
    def subject(self) -> Mapping[str, str] | None:
        """Return the settings of the agent that pytest's options or settings name."""
        target: str = self.config.getoption("evalmeta_subject") or self.config.getini("evalmeta_subject")
        return {"adapter": "python", "target": target} if target else None

    def _load(self) -> LoadedEvaluation:
        name = None if self.subject is None else self.subject["target"]
        try:
            [loaded] = load_evaluations([self.path], name=None, root=self._root, subject_name=name)
        except ProjectError as error:
            if self._root is None:
                raise
            raise SubjectNotBound(
                f"{shown(self.path)} is not in a project with settings for its agent", actions=_NO_AGENT_ACTIONS
            ) from error
        return loaded

    @property
    def _root(self) -> Path | None:
        """Return pytest's root for files without a project, in which agents are searched."""
        return None if has_project(self.path.parent) else self.config.rootpath


class CaseItem(pytest.Item):
    """A case of a file. It runs in the setup, so that pytest reports a failed run as an error."""

    parent: EvaluationFile

    def __init__(self, *, case: Case, place: tuple[str, int], **keywords: object) -> None:
        super().__init__(**keywords)  # type: ignore[arg-type] # pytest's own
        self.case = case
        self._file, self._line = place
        self._results: Sequence[CaseResult] = ()
        self._is_quarantined = False
        self.file_note: FileNote | None = None

    def setup(self) -> None:
        """Run the case with the other selected cases of the file; raise the EvalmetaError that prevented it."""
        answers = self.parent.answers(self)
        if isinstance(answers, SubjectNotBound) and not self.parent.is_asked_for:
            # Definitions of an org may have agents that only the org has.
            raise pytest.skip.Exception(f"not run: {answers}", _use_item_location=True)
        if isinstance(answers, EvalmetaError):
            raise answers
        self._results = answers
        self.file_note = file_note(self.parent.nodeid, shown(self.parent.path), answers, self.parent.options)
        self._in_quarantine(answers)
        summary = self._summary
        # JUnit files have these properties.
        if summary.pass_rate is not None and summary.total > 1:
            self.user_properties += [("pass_rate", summary.pass_rate), ("iterations", summary.total)]
        if summary.undecided_results:
            names = ", ".join(name for name, _ in summary.undecided_results)
            self.user_properties += [("undecided", names), ("judged", coverage_text(summary))]
        if summary.errors and not self._is_quarantined:
            raise _CaseError

    def _in_quarantine(self, answers: Sequence[CaseResult]) -> None:
        """Make a case in quarantine an expected failure that may pass, judged as if it counted."""
        found = next((answer.quarantine for answer in answers if answer.quarantine and answer.is_quarantined), None)
        if found is None:
            return
        reason, self._is_quarantined = quarantine_text(found), True
        self.add_marker(pytest.mark.xfail(reason=reason, strict=False))
        self.user_properties.append(("quarantine", reason))
        self._results = [answer._replace(quarantine=None) for answer in answers]

    def runtest(self) -> None:
        """Pass, fail, or be skipped if nothing was judged."""
        summary = self._summary
        if summary.errors:
            raise _CaseError
        if summary.pass_rate is None:
            reason = f"nothing was judged: {why_not_passed(self._results[0])}"
            raise pytest.skip.Exception(reason, _use_item_location=True)
        if not summary.succeeded:
            raise _CaseFailed

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the location of the case in its file; pytest counts lines from 0."""
        return Path(self._file).absolute(), self._line - 1, self.name

    def repr_failure(  # type: ignore[override] # tracebacks have no styles here
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> str | TerminalRepr:
        """Show the expected and actual texts, and why the case did not pass."""
        error, place = excinfo.value, self._file
        if isinstance(error, _CaseError | _CaseFailed):
            summary = self._summary
            message, text = why_not_passed(self._not_passed[0], summary), self._text()
            quarantine = self._results[0].quarantine
            if quarantine and quarantine.has_ended:
                text += f"\n  {ended_text(quarantine)}"
            return failure_repr(place, self._line, message=message, text=text)
        if isinstance(error, EvalmetaError):
            text = f"{place}:{self._line}: {error_text(error)}"
            return failure_repr(place, self._line, message=str(error), text=text)
        return super().repr_failure(excinfo)

    @property
    def _summary(self) -> Summary:
        # How much must be judged is asked of the file, not of each case.
        return summarise(self._results, replace(self.parent.options, min_decided=0.0))

    @property
    def _not_passed(self) -> list[CaseResult]:
        """Return the results that did not pass, errors first."""
        averaged, options = self._summary.averaged, self.parent.options
        found = [result for result in self._results if verdict_in(averaged, result, options) is not Verdict.PASS]
        return sorted(found, key=lambda result: result.verdict is not Verdict.ERROR)

    def _text(self) -> str:
        summary, place = self._summary, f"{self._file}:{self._line}"
        if len(self._results) == 1:
            verdict = verdict_in(summary.averaged, self._results[0], self.parent.options)
            details = case_text(self._results[0], summary, indent="  ", traceback=True)
            return f"{place}: case {self.case.number}: {verdict}\n{details}"
        errors = f", {count(summary.errors, 'error')}" if summary.errors else ""
        passed = f"{summary.passed} of {count(summary.total, 'iteration')} passed"
        required = f"at least {percent(summary.min_pass_rate)} must"
        grouped: dict[tuple[Verdict, str], list[int]] = {}
        for case in self._not_passed:
            details = case_text(case, summary, indent="  ", traceback=True)
            grouped.setdefault((case.verdict, details), []).append(case.iteration)
        texts = [
            f"{iterations_text(iterations, len(self._results))}: {verdict}\n{text}"
            for (verdict, text), iterations in grouped.items()
        ]
        return "\n\n".join([f"{place}: case {self.case.number}: {passed}{errors}; {required}", *texts])


class _CaseError(Exception):
    """A case has an error result."""


class _CaseFailed(Exception):
    """A case did not pass."""


def _item_name(case: Case) -> str:
    """Return number and label or utterances of a case, without characters that have a meaning in node ids."""
    words = one_line(case.label or " / ".join(turn.utterance for turn in case.turns), chars=_NAME_CHARS)
    return f"{case.number}: {words}".replace("::", ":").translate(_ROUND_BRACKETS).rstrip()
