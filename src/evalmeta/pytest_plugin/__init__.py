"""The pytest plugin: cases of definitions and other files as test items, and test functions as evaluations.

All parameter sets and iterations of an evaluation together have one verdict, by their pass rate. A test that fails is
reported as an expected failure, wherever it runs. The process that reports to the user counts, and adds one report with
the verdict at the end; so it does not matter which worker runs a test.

pytest loads this module at every start, so it imports nothing heavy.
"""

from __future__ import annotations

import argparse
import inspect
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar, cast, overload

import pytest
from _pytest.unittest import TestCaseFunction

from evalmeta import limits
from evalmeta.errors import EvalmetaError, ProjectError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from evalmeta.pytest_plugin.entries import Entries
    from evalmeta.pytest_plugin.files import EvaluationFile
    from evalmeta.pytest_plugin.notes import CaseNote, UncountedTest
    from evalmeta.pytest_plugin.results import FileNote, SessionResults

__all__: list[str] = []

_SUFFIXES_IN_FOLDERS: Final = (".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv")
_SUFFIXES: Final = (*_SUFFIXES_IN_FOLDERS, ".parquet")
_OPTIONS: Final = (
    ("subject", "MODULE:NAME", "agent under test for evaluation files"),
    ("iterations", "N", "number of times to run each case"),
    ("min-pass-rate", "RATE", "share of a case's iterations that must pass"),
    ("min-decided", "SHARE", "share of a file's results that must be judged"),
    ("concurrency", "N", "number of cases, or of entries of an asynchronous evaluation, in flight at a time"),
    ("report-dir", "DIR", "write a report of the evaluations with a time in its name"),
    ("baseline", "FILE", "compare evaluations with an earlier report"),
)
_NUMBERS: Final = {"N", "RATE", "SHARE"}
_WHOLE: Final = {"iterations": limits.MAX_ITERATIONS, "concurrency": limits.MAX_CONCURRENCY}
_MARKER: Final = "evalmeta_evaluation"
_ITERATION: Final = "evalmeta_iteration"
_NOTE: Final = "evalmeta_note"
_UNCOUNTED: Final = "evalmeta_uncounted"
_FILE_NOTE: Final = "evalmeta_file_note"
_ERRORS: Final = ("error", "fail")
_Test = TypeVar("_Test")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and settings of the plugin."""
    group = parser.getgroup("evalmeta", "evaluations of agents")
    group.addoption("--evalmeta", action="store_true", help="collect tests of all formats in all folders")
    for name, metavar, text in _OPTIONS:
        read = partial(_checked, name.replace("-", "_")) if metavar in _NUMBERS else str
        group.addoption(f"--evalmeta-{name}", metavar=metavar, type=read, help=text)
    group.addoption("--evalmeta-no-history", action="store_true", help="keep no runs of evaluations in the project")
    parser.addini("evalmeta_history", "keep the runs of evaluations in the project", type="bool", default=True)
    text = (
        "collect tests of all formats in folders: true in all, false in none; default: in projects with evalmeta.toml"
    )
    parser.addini("evalmeta_collect", text, type="bool", default=None)
    parser.addini("evalmeta_subject", "agent under test for evaluation files, as MODULE:NAME", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the plugin for evaluations."""
    config.addinivalue_line("markers", f"{_MARKER}: the test is part of an evaluation, made by @evalmeta.evaluation")
    config.pluginmanager.register(Evaluations(config), "evalmeta-evaluations")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> EvaluationFile | None:
    """Collect files named on the command line; in folders of projects, or in all, all tests, also invalid ones."""
    name, is_named = file_path.name, parent.session.isinitpath(file_path)
    setting: bool | None = True if parent.config.getoption("evalmeta") else parent.config.getini("evalmeta_collect")
    if not (is_named or setting) and (setting is False or not _is_in_project(file_path.parent)):
        return None
    # Only such names are checked further, because the check imports most of evalmeta.
    if not ("Definition" in name or name.lower().endswith(_SUFFIXES if is_named else _SUFFIXES_IN_FOLDERS)):
        return None
    from evalmeta.pytest_plugin.files import evaluation_file

    return evaluation_file(file_path, parent, is_named=is_named, is_asked_for=is_named or bool(setting))


@cache
def _is_in_project(folder: Path) -> bool:
    """Return whether a folder, or one above it, has settings of evalmeta, which bind agents."""
    return (folder / "evalmeta.toml").is_file() or (folder != folder.parent and _is_in_project(folder.parent))


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the tests of an evaluation with several iterations; the iteration is the last parameter."""
    marker = metafunc.definition.get_closest_marker(_MARKER)
    iterations = marker.kwargs["iterations"] if marker else 1
    if iterations == 1:
        return
    if _ITERATION not in metafunc.fixturenames:
        metafunc.fixturenames.append(_ITERATION)
    numbers = range(1, iterations + 1)
    metafunc.parametrize(_ITERATION, numbers, indirect=True, ids=[f"iteration{number}" for number in numbers])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _WorkerNode) -> None:
    """Send the distribution mode to a worker of pytest-xdist, which does not know it."""
    node.workerinput["evalmeta_dist"] = node.config.getoption("dist")


@pytest.fixture(name=_ITERATION)
def evalmeta_iteration(request: pytest.FixtureRequest) -> int:
    """Return the iteration of an evaluation, from 1."""
    iteration: int = getattr(request, "param", 1)
    return iteration


def _checked(name: str, text: str) -> float:
    try:
        number = int(text) if name in _WHOLE else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if error := range_error(name, number):
        raise argparse.ArgumentTypeError(error)
    return number


@overload
def evaluation(function: _Test, /) -> _Test: ...
@overload
def evaluation(
    *,
    min_pass_rate: float | None = None,
    iterations: int | None = None,
    errors: Literal["error", "fail"] = "error",
    concurrency: int = limits.CONCURRENCY,
    confidence: float | None = None,
    runs: int | None = None,
) -> Callable[[_Test], _Test]: ...
def evaluation(
    function: _Test | None = None,
    /,
    *,
    min_pass_rate: float | None = None,
    iterations: int | None = None,
    errors: Literal["error", "fail"] = "error",
    concurrency: int = limits.CONCURRENCY,
    confidence: float | None = None,
    runs: int | None = None,
) -> _Test | Callable[[_Test], _Test]:
    """Make a test function one evaluation, which passes if enough of its parameter sets and iterations pass.

    A test that fails by an assertion or `pytest.fail` only counts. Any other exception is an error: by default it
    fails the session at any pass rate, as it does without the decorator. `@evalmeta.evaluation` needs no parentheses.

    Args:
        function: The test function, if the decorator is used without parentheses.
        min_pass_rate: The share of tests, 0 to 1, that must pass, of those that pass or fail; 1 by default.
        iterations: The number of times to run each parameter set; the fixture `evalmeta_iteration` has the number
            of the current iteration.
        errors: "fail" counts an exception of the test, such as that of an agent, as a failed test. Errors of
            fixtures always fail the session.
        concurrency: The number of tests that run at a time if the function is a coroutine function.
        confidence: An alias for `min_pass_rate`.
        runs: An alias for `iterations`.

    Raises:
        UsageError: A value is not allowed, two aliases have different values, or the decorated object is not a
            function.
    """
    if errors not in _ERRORS:
        raise UsageError(f"@evalmeta.evaluation: errors is {errors!r}; it must be 'error' or 'fail'")
    kwargs: dict[str, object] = {
        "min_pass_rate": _value("min_pass_rate", {"min_pass_rate": min_pass_rate, "confidence": confidence}, 1.0),
        "iterations": _value("iterations", {"iterations": iterations, "runs": runs}, 1),
        "errors": errors,
        "concurrency": _value("concurrency", {"concurrency": concurrency}, limits.CONCURRENCY),
    }

    def mark(function: _Test) -> _Test:
        if not inspect.isfunction(function):
            raise UsageError(f"@evalmeta.evaluation can only decorate test functions, not {function!r}")
        marked: _Test = getattr(pytest.mark, _MARKER)(**kwargs)(function)
        return marked

    return mark if function is None else mark(function)


def _value(name: str, aliases: Mapping[str, float | None], default: float) -> float:
    """Return the value of an argument with aliases, after checking it."""
    given = {alias: value for alias, value in aliases.items() if value is not None}
    if len({*given.values()}) > 1:
        values = " and ".join(f"{alias}={value}" for alias, value in given.items())
        raise UsageError(f"@evalmeta.evaluation: {values} are aliases; use only one of them")
    for alias, value in given.items():
        if error := range_error(name, value, alias=alias):
            raise UsageError(f"@evalmeta.evaluation: {error}")
    return next(iter(given.values()), default)


def range_error(name: str, value: float, *, alias: str | None = None) -> str | None:
    """Return why a value of a share (`min_pass_rate`) or of a whole number is out of range; None if it is valid."""
    if name not in _WHOLE:
        return None if 0 <= value <= 1 else f"{alias or name} is {value}; it must be from 0 to 1"
    if isinstance(value, int) and 1 <= value <= _WHOLE[name]:
        return None
    return f"{alias or name} is {value}; it must be a whole number from 1 to {_WHOLE[name]}"


class Evaluations:
    """The hooks for the evaluations of a session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._loaded: SessionResults | None = None
        self._entries: Entries | None = None
        self._files: dict[str, dict[str, FileNote]] = {}
        self._is_reporting = False
        self._lines: list[str] = []

    def _results(self) -> SessionResults:
        if self._loaded is None:
            from evalmeta.pytest_plugin.results import SessionResults

            self._loaded = SessionResults()
        return self._loaded

    def pytest_sessionstart(self) -> None:
        """Read the baseline and create the folder of the report, so that errors are reported before any test runs."""
        if _is_worker(self._config):
            return
        baseline, folder = self._option("evalmeta_baseline"), self._option("evalmeta_report_dir")
        try:
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
            if baseline:
                self._results().load_baseline(baseline, label=str(self._config.getoption("evalmeta_baseline")))
        except OSError as error:
            raise pytest.UsageError(f"{folder}: cannot write reports there: {error.strerror}") from None
        except EvalmetaError as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Reject methods of unittest.TestCase, which cannot be parametrized and therefore not repeated."""
        if item.get_closest_marker(_MARKER) and isinstance(item, TestCaseFunction):
            raise pytest.UsageError(f"{item.nodeid}: @evalmeta.evaluation cannot decorate methods of unittest.TestCase")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        """Number the cases of evaluations before options such as -k choose some, and prepare coroutine functions."""
        if marked := [item for item in items if item.get_closest_marker(_MARKER)]:
            from evalmeta.pytest_plugin.notes import number_cases

            number_cases(marked, own_fixture=_ITERATION)
        yield
        self._prepare_entries(items)

    def _prepare_entries(self, items: list[pytest.Item]) -> None:
        """Let evalmeta run coroutine functions; the entries of an evaluation stay together if tests are shuffled."""
        marked = [item for item in items if item.get_closest_marker(_MARKER) and isinstance(item, pytest.Function)]
        if not any(inspect.iscoroutinefunction(item.function) for item in marked):
            return
        from evalmeta.pytest_plugin.entries import is_coroutine, together

        entries = {item for item in marked if is_coroutine(item)}
        for item in entries:
            # Not pytest_pyfunc_call: plugins for coroutine functions replace what it calls.
            vars(item)["runtest"] = partial(self._run_entry, item)
        items[:] = together(items, entries.__contains__)

    def _run_entry(self, item: pytest.Function) -> None:
        __tracebackhide__ = True
        if self._entries is None:
            from evalmeta.pytest_plugin.entries import Entries, gets_whole_files

            # Workers do not know which of the entries others run.
            items = item.session.items if gets_whole_files(item.config) else ()
            self._entries = Entries(items, own_fixture=_ITERATION, concurrency=self._concurrency)
        self._entries.run(item)

    def _concurrency(self, item: pytest.Item) -> int:
        marker = item.get_closest_marker(_MARKER)
        chosen: int | None = self._config.getoption("evalmeta_concurrency")
        return chosen or (marker.kwargs["concurrency"] if marker else 1)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach to the report what the verdict on an evaluation or a file needs; its failures are expected."""
        report = yield
        note: CaseNote | None = None
        if marker := item.get_closest_marker(_MARKER):
            from evalmeta.pytest_plugin.notes import note_of, uncounted_of

            note = note_of(item, marker, report, call, own_fixture=_ITERATION)
            if note is None and report.skipped:
                vars(report)[_UNCOUNTED] = uncounted_of(item, report)
        if note:
            vars(report)[_NOTE] = note
            if note["verdict"] == "FAILURE":
                report.outcome = "skipped"
                report.wasxfail = f"counted by its evaluation: {note['reason']}"
        file_note: FileNote | None = getattr(item, "file_note", None)
        if file_note and (report.when == "call" or report.failed):
            vars(report)[_FILE_NOTE] = file_note
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the results of tests, which may have run in another process."""
        note = cast("CaseNote | None", vars(report).get(_NOTE))
        file_note = cast("FileNote | None", vars(report).get(_FILE_NOTE))
        if _is_worker(self._config):
            return
        if note:
            self._results().add(note)
        if uncounted := cast("UncountedTest | None", vars(report).get(_UNCOUNTED)):
            self._results().add_uncounted(uncounted)
        if file_note:
            self._files.setdefault(file_note["file"], {})[report.nodeid] = file_note

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After all tests, report each evaluation, and each file whose cases judged too little together.

        An interrupted session has no verdicts.
        """
        result = yield
        evaluations = [*self._loaded.evaluations.values()] if self._loaded else []
        not_judged = self._loaded.not_judged() if self._loaded else []
        reports = [report for results in evaluations for report in results.reports()]
        reports += [report for tests in not_judged for report in tests.reports()]
        if self._loaded:
            self._loaded.is_complete = True
        if self._files:
            from evalmeta.pytest_plugin.results import unjudged_reports

            files = (unjudged_reports([*notes.values()]) for notes in self._files.values())
            reports = [*chain.from_iterable(files), *reports]
        self._is_reporting = True
        for report in reports:
            session.config.hook.pytest_runtest_logreport(report=report)
        self._is_reporting = False
        for results in evaluations:
            if not results.summary.succeeded:
                self._select_as_last_failed(results.name, results.notes)
        for tests in not_judged:
            if not tests.is_chosen:
                self._select_as_last_failed(tests.name, tests.tests)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        """Hide the reports of evaluations from the progress, because they are not tests; the summary shows them."""
        return (report.outcome, "", "") if self._is_reporting and report.when == "call" else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the pass rate and the failing cases of each evaluation, and which had no tests that counted."""
        not_judged = self._loaded.not_judged() if self._loaded and self._loaded.is_complete else []
        if not self._loaded or not (self._loaded.evaluations or not_judged):
            return
        terminalreporter.write_sep("=", "evaluations")
        # pytest shows the details of failed evaluations itself, unless tracebacks are off.
        has_details = self._config.getoption("tbstyle") not in {"no", "line"}
        colours = {"PASSED": "green", "FAILED": "red", "STOPPED": "yellow"}
        for results in self._loaded.evaluations.values():
            verdict = self._loaded.verdict(results)
            terminalreporter.write(verdict, **{colours[verdict]: True})
            terminalreporter.write_line(f" {results.name}: {results.rate_line()}")
            lines = results.iteration_lines() if verdict == "FAILED" and has_details else results.detail_lines()
            for line in (*lines, *self._loaded.comparison_lines(results)):
                terminalreporter.write_line(f"  {line}")
        for tests in not_judged:
            terminalreporter.write("NOT JUDGED", yellow=True)
            terminalreporter.write_line(f" {tests.name}: {tests.why()}")
            for line in self._loaded.missing_lines(tests):
                terminalreporter.write_line(f"  {line}")
        for line in self._lines:
            terminalreporter.write_line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the runs of the session's evaluations in their projects, and write its report, if that is enabled."""
        if self._entries:
            self._entries.close()
        if not self._loaded or not (self._loaded.evaluations or self._loaded.not_judged()):
            return
        if self._config.getini("evalmeta_history") and not self._config.getoption("evalmeta_no_history"):
            from evalmeta.pytest_plugin.history import keep_history

            self._lines += keep_history(self._loaded, self._config.rootpath)
        folder = self._option("evalmeta_report_dir")
        if not folder:
            return
        try:
            path = self._loaded.write_report(folder)
            self._lines.append(f"report: {path}")
            if self._loaded.evaluations:
                self._lines.append(f"page: {self._loaded.write_page(path)}")
        except ProjectError as error:
            self._lines.append(f"no report: {error}")
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _option(self, name: str) -> Path | None:
        """Return the path of an option, which is relative to the folder where pytest was started."""
        value: str | None = self._config.getoption(name)
        return self._config.invocation_params.dir / value if value else None

    def _select_as_last_failed(self, name: str, tests: Iterable[str]) -> None:
        """Make `--last-failed` select the tests of an evaluation instead of its name, which is not a test."""
        failed: object = getattr(self._config.pluginmanager.get_plugin("lfplugin"), "lastfailed", None)
        if isinstance(failed, dict):
            failed.pop(name, None)
            failed.update(dict.fromkeys(tests, True))


class _WorkerNode(Protocol):
    """A worker of pytest-xdist in the controlling process; pytest-xdist itself need not be installed."""

    config: pytest.Config
    workerinput: dict[str, str]


def _is_worker(config: pytest.Config) -> bool:
    """Return whether this process is a worker of pytest-xdist."""
    return hasattr(config, "workerinput")
