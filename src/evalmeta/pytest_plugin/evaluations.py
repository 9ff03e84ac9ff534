"""Test functions as evaluations: all parameter sets and iterations together have one verdict, the pass rate.

A test that fails is reported as an expected failure, wherever it runs; the process that reports to the user
counts, and adds one report with the verdict at the end. So it does not matter which worker ran what.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final, TypeVar, cast

import pytest

from evalmeta.pytest_plugin.workers import is_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from evalmeta.pytest_plugin.tallies import CaseNote, EvaluationTally

    _Property = tuple[str, object]

__all__ = ["ITERATION", "MARKER", "Evaluations", "evaluation", "repeat"]

MARKER: Final = "evalmeta_evaluation"
ITERATION: Final = "evalmeta_iteration"
_NOTE: Final = "evalmeta_note"
_NOT_SUPPORTED: Final = "async def functions are not natively supported"
_Test = TypeVar("_Test")


def evaluation(*, min_pass_rate: float = 1.0, iterations: int = 1) -> Callable[[_Test], _Test]:
    """Makes a test function one evaluation, which passes when enough of its parameter sets and iterations do.

    A test fails by an assertion or `pytest.fail`, and then only counts. Any other exception
    is an error: it fails the session, whatever the rate, as it does without the decorator.

    Args:
        min_pass_rate: the share of tests, 0 to 1, that must pass, of those that pass or fail.
        iterations: how often each parameter set is tested; the fixture `evalmeta_iteration` tells which time it is.

    Raises:
        UsageError: a number is out of range, or what is decorated is no function.
    """
    from evalmeta.errors import UsageError  # noqa: PLC0415 - only for evaluations
    from evalmeta.pytest_plugin.terms import check_terms  # noqa: PLC0415 - likewise

    if fault := check_terms(min_pass_rate=min_pass_rate, iterations=iterations):
        raise UsageError(f"@evalmeta.evaluation: {fault}")

    def mark(function: _Test) -> _Test:
        if not inspect.isfunction(function):
            raise UsageError(f"@evalmeta.evaluation is for test functions, and {function!r} is none")
        marker = getattr(pytest.mark, MARKER)
        marked: _Test = marker(min_pass_rate=min_pass_rate, iterations=iterations)(function)
        return marked

    return mark


def repeat(metafunc: pytest.Metafunc) -> None:
    """Makes a test of an evaluation for every iteration, if there are several."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    iterations = marker.kwargs["iterations"] if marker else 1
    if iterations == 1:
        return
    if ITERATION not in metafunc.fixturenames:
        metafunc.fixturenames.append(ITERATION)
    numbers = range(1, iterations + 1)
    metafunc.parametrize(ITERATION, numbers, indirect=True, ids=[f"iteration{each}" for each in numbers])


class Evaluations:
    """The evaluations of a session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tallies: dict[str, EvaluationTally] = {}
        self._is_complete = False
        self._is_deciding = False

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Refuses what cannot be parametrised, and so not repeated."""
        if not item.get_closest_marker(MARKER):
            return
        from unittest import TestCase  # noqa: PLC0415 - only for evaluations

        if issubclass(getattr(item, "cls", None) or object, TestCase):
            raise pytest.UsageError(f"{item.nodeid}: @evalmeta.evaluation is not for methods of unittest.TestCase")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Notes on the report what a test says about its evaluation; one that failed is expected to fail."""
        report = yield
        marker = item.get_closest_marker(MARKER)
        verdict = _verdict(report, call) if marker else None
        if marker and verdict:
            note = _note(item, marker.kwargs["min_pass_rate"], verdict, _reason(report, call))
            vars(report)[_NOTE] = note
            _note_properties(item, report, note)
            if verdict == "FAILURE":
                report.outcome = "skipped"
                report.wasxfail = f"counted by its evaluation: {note['reason']}"
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts what tests said, here or in another process."""
        note = cast("CaseNote | None", vars(report).get(_NOTE))
        if note is None or is_worker(self._config):
            return
        from evalmeta.pytest_plugin.tallies import EvaluationTally  # noqa: PLC0415 - only for evaluations

        self._tallies.setdefault(note["evaluation"], EvaluationTally(note)).add(note)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Adds a report for each evaluation when all tests have run; a run that was stopped has no verdicts."""
        result = yield
        self._is_complete = self._is_deciding = True
        for tally in self._tallies.values():
            for report in _reports(tally):
                session.config.hook.pytest_runtest_logreport(report=report)
            if not tally.summary.succeeded:
                self._run_again(tally)
        self._is_deciding = False
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        """Leaves the reports of evaluations out of the progress, for no test has run; the summary shows them."""
        return (report.outcome, "", "") if self._is_deciding and report.when == "call" else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Shows the rate and the failing cases of each evaluation."""
        if not self._tallies:
            return
        terminalreporter.write_sep("=", "evaluations")
        for tally in self._tallies.values():
            word, colour = self._word(tally)
            terminalreporter.write(word, **{colour: True})
            terminalreporter.write_line(f" {tally.name}: {tally.rate_line()}")
            for line in tally.case_lines():
                terminalreporter.write_line(f"  {line}")

    def _run_again(self, tally: EvaluationTally) -> None:
        """Has `--last-failed` select the tests of an evaluation: the name of it is no test's."""
        kept: object = getattr(self._config.pluginmanager.get_plugin("lfplugin"), "lastfailed", None)
        if isinstance(kept, dict):
            kept.pop(tally.name, None)
            kept.update(dict.fromkeys(tally.notes, True))

    def _word(self, tally: EvaluationTally) -> tuple[str, str]:
        if not self._is_complete:
            return "STOPPED", "yellow"
        return ("PASSED", "green") if tally.summary.succeeded else ("FAILED", "red")


def _note_properties(item: pytest.Item, report: pytest.TestReport, note: CaseNote) -> None:
    """Gives the note to what writes files: they have the properties that the last report of an item has."""
    added: dict[str, object] = {"evaluation": note["evaluation"], "verdict": note["verdict"]}
    kept = [each for each in item.user_properties if each[0] not in added]
    item.user_properties[:] = [*kept, *added.items()]
    report.user_properties = list(item.user_properties)


def _verdict(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str | None:
    """Tells what a phase says: nothing, when it was skipped, expected to fail, or only prepared or cleaned up."""
    if report.passed:
        return "PASS" if report.when == "call" else None
    if report.skipped or call.excinfo is None:
        # A strict test that was expected to fail and passed has no exception.
        return "FAILURE" if report.failed else None
    error = call.excinfo.value
    is_judgement = isinstance(error, AssertionError | pytest.fail.Exception) and _NOT_SUPPORTED not in str(error)
    return "FAILURE" if report.when == "call" and is_judgement else "ERROR"


def _reason(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    from evalmeta.report.plain import one_line  # noqa: PLC0415 - only for evaluations

    if report.passed:
        return ""
    return one_line(call.excinfo.exconly(tryshort=True) if call.excinfo else str(report.longrepr))


def _note(item: pytest.Item, min_pass_rate: float, verdict: str, reason: str) -> CaseNote:
    file, line, _ = item.location
    callspec = getattr(item, "callspec", None)
    iteration: int = callspec.params.get(ITERATION, 1) if callspec else 1
    case: str = f"-{callspec.id}" if callspec else ""
    function = getattr(item, "originalname", item.name)
    return {
        "evaluation": f"{item.parent.nodeid}::{function}" if item.parent else item.nodeid,
        "nodeid": item.nodeid,
        "case": case.removesuffix(f"-iteration{iteration}").removeprefix("-"),
        "iteration": iteration,
        "min_pass_rate": min_pass_rate,
        "verdict": verdict,
        "reason": reason,
        "file": file,
        "line": (line or 0) + 1,
    }


def _reports(tally: EvaluationTally) -> list[pytest.TestReport]:
    """Gives the reports of a test that is the evaluation: its call, and a teardown, with which files write it."""
    from evalmeta.pytest_plugin.explanations import explanation  # noqa: PLC0415 - only for evaluations

    summary, first = tally.summary, tally.first
    message = tally.rate_line()
    text = "\n".join([f"{first['file']}:{first['line']}: {message}", *(f"  {each}" for each in tally.case_lines())])
    why = None if summary.succeeded else explanation(first["file"], first["line"], message=message, text=text)
    return [
        pytest.TestReport(
            nodeid=tally.name,
            location=(first["file"], first["line"] - 1, tally.name.rpartition("::")[2]),
            keywords={},
            outcome="failed" if phase == "call" and why else "passed",
            longrepr=why if phase == "call" else None,
            when=phase,
            user_properties=_properties(tally),
        )
        for phase in ("call", "teardown")
    ]


def _properties(tally: EvaluationTally) -> list[_Property]:
    summary = tally.summary
    return [
        ("pass_rate", "" if summary.pass_rate is None else summary.pass_rate),
        ("min_pass_rate", summary.min_pass_rate),
        ("passed", summary.passed),
        ("failed", summary.failed),
        ("errors", summary.errors),
        ("failing_cases", ", ".join(filter(None, tally.failing_cases()))),
    ]
