"""Test functions as evaluations: all parameter sets and iterations together have one verdict, by their pass rate.

A test that fails is reported as an expected failure, wherever it runs. The process that reports to the user counts,
and adds one report with the verdict at the end; so it does not matter which worker runs a test.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

import pytest
from _pytest.unittest import TestCaseFunction

from evalmeta import limits
from evalmeta.errors import EvalmetaError, ProjectError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from evalmeta.pytest_plugin.results import CaseNote, EvaluationResults, FileNote, SessionResults


MARKER: Final = "evalmeta_evaluation"
ITERATION: Final = "evalmeta_iteration"
_NOTE: Final = "evalmeta_note"
FILE_NOTE: Final = "evalmeta_file_note"
_Test = TypeVar("_Test")


def evaluation(
    *,
    min_pass_rate: float | None = None,
    iterations: int | None = None,
    confidence: float | None = None,
    runs: int | None = None,
) -> Callable[[_Test], _Test]:
    """Make a test function one evaluation, which passes if enough of its parameter sets and iterations pass.

    A test that fails by an assertion or `pytest.fail` only counts. Any other exception is an error: it fails the
    session at any pass rate, as it does without the decorator.

    Args:
        min_pass_rate: The share of tests, 0 to 1, that must pass, of those that pass or fail; 1 by default.
        iterations: The number of times to run each parameter set; the fixture `evalmeta_iteration` has the number
            of the current iteration.
        confidence: An alias for `min_pass_rate`.
        runs: An alias for `iterations`.

    Raises:
        UsageError: A number is out of range, two aliases have different values, or the decorated object is not a
            function.
    """
    kwargs = {
        "min_pass_rate": _value("min_pass_rate", {"min_pass_rate": min_pass_rate, "confidence": confidence}, 1.0),
        "iterations": _value("iterations", {"iterations": iterations, "runs": runs}, 1),
    }

    def mark(function: _Test) -> _Test:
        if not inspect.isfunction(function):
            raise UsageError(f"@evalmeta.evaluation can only decorate test functions, not {function!r}")
        marked: _Test = getattr(pytest.mark, MARKER)(**kwargs)(function)
        return marked

    return mark


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
    """Return why a value of a share (`min_pass_rate`) or of `iterations` is out of range; None if it is valid."""
    if name in {"min_pass_rate", "min_decided"}:
        return None if 0 <= value <= 1 else f"{alias or name} is {value}; it must be from 0 to 1"
    if isinstance(value, int) and 1 <= value <= limits.MAX_ITERATIONS:
        return None
    return f"{alias or name} is {value}; it must be a whole number from 1 to {limits.MAX_ITERATIONS}"


def repeat(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test of an evaluation with its iterations, if there are several."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    iterations = marker.kwargs["iterations"] if marker else 1
    if iterations == 1:
        return
    if ITERATION not in metafunc.fixturenames:
        metafunc.fixturenames.append(ITERATION)
    numbers = range(1, iterations + 1)
    metafunc.parametrize(ITERATION, numbers, indirect=True, ids=[f"iteration{number}" for number in numbers])


class Evaluations:
    """The hooks for the evaluations of a session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._loaded: SessionResults | None = None
        self._files: dict[str, dict[str, FileNote]] = {}
        self._is_reporting = False
        self._report_line = ""

    def _results(self) -> SessionResults:
        if self._loaded is None:
            from evalmeta.pytest_plugin.results import SessionResults

            self._loaded = SessionResults(iteration_fixture=ITERATION)
        return self._loaded

    def pytest_sessionstart(self) -> None:
        """Read the baseline and create the folder of the report, so that errors are reported before any test runs."""
        if is_worker(self._config):
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
        if item.get_closest_marker(MARKER) and isinstance(item, TestCaseFunction):
            raise pytest.UsageError(f"{item.nodeid}: @evalmeta.evaluation cannot decorate methods of unittest.TestCase")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach to the report what the test's evaluation needs; failures become expected failures."""
        report = yield
        marker = item.get_closest_marker(MARKER)
        note = self._results().note_of(item, marker, report, call) if marker else None
        if note:
            vars(report)[_NOTE] = note
            if note["verdict"] == "FAILURE":
                report.outcome = "skipped"
                report.wasxfail = f"counted by its evaluation: {note['reason']}"
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the results of tests, which may have run in another process."""
        note = cast("CaseNote | None", vars(report).get(_NOTE))
        if note and not is_worker(self._config):
            self._results().add(note)
        file_note = cast("FileNote | None", vars(report).get(FILE_NOTE))
        if file_note and not is_worker(self._config):
            self._files.setdefault(file_note["file"], {})[report.nodeid] = file_note

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Add a report for each evaluation after all tests; an interrupted session has no verdicts."""
        result = yield
        self._report_files(session)
        if self._loaded:
            self._loaded.is_complete = self._is_reporting = True
            for results in self._loaded.evaluations.values():
                for report in results.reports():
                    session.config.hook.pytest_runtest_logreport(report=report)
                if not results.summary.succeeded:
                    self._select_as_last_failed(results)
            self._is_reporting = False
        return result

    def _report_files(self, session: pytest.Session) -> None:
        """Fail the files whose cases judged too little together."""
        if not self._files:
            return
        from evalmeta.pytest_plugin.results import unjudged_reports

        self._is_reporting = True
        for notes in self._files.values():
            for report in unjudged_reports([*notes.values()]):
                session.config.hook.pytest_runtest_logreport(report=report)
        self._is_reporting = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        """Hide the reports of evaluations from the progress, because they are not tests; the summary shows them."""
        return (report.outcome, "", "") if self._is_reporting and report.when == "call" else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the pass rate and the failing cases of each evaluation."""
        if not (self._loaded and self._loaded.evaluations):
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
        if self._report_line:
            terminalreporter.write_line(self._report_line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report of the session's evaluations, if there are any and it is enabled."""
        folder = self._option("evalmeta_report_dir")
        if not (folder and self._loaded and self._loaded.evaluations):
            return
        try:
            self._report_line = f"report: {self._loaded.write_report(folder)}"
        except ProjectError as error:
            self._report_line = f"no report: {error}"
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _option(self, name: str) -> Path | None:
        """Return the path of an option, which is relative to the folder where pytest was started."""
        value: str | None = self._config.getoption(name)
        return self._config.invocation_params.dir / value if value else None

    def _select_as_last_failed(self, evaluation: EvaluationResults) -> None:
        """Make `--last-failed` select the tests of an evaluation instead of its name, which is not a test."""
        failed: object = getattr(self._config.pluginmanager.get_plugin("lfplugin"), "lastfailed", None)
        if isinstance(failed, dict):
            failed.pop(evaluation.name, None)
            failed.update(dict.fromkeys(evaluation.notes, True))


class WorkerNode(Protocol):
    """A worker of pytest-xdist in the controlling process; pytest-xdist itself need not be installed."""

    config: pytest.Config
    workerinput: dict[str, str]


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def gets_whole_files(config: pytest.Config) -> bool:
    """Return whether the process that runs the first test of a file runs all of them."""
    workerinput = cast("dict[str, str]", getattr(config, "workerinput", {}))
    return workerinput.get("evalmeta_dist", "each") in {"each", "loadfile", "loadscope"}
