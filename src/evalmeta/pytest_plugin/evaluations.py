"""Test functions as evaluations: all parameter sets and iterations together have one verdict, the pass rate.

A test that fails is reported as an expected failure, wherever it runs; the process that reports to the user
counts, and adds one report with the verdict at the end. So it does not matter which worker ran what.

What an evaluation may ask for, in our words and in those of Ballerina's tests.

The workers of pytest-xdist, which is not imported: whoever does not use it need not have it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar, cast

import pytest

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.model.statistics import CaseCounts
    from evalmeta.pytest_plugin.summary import CaseNote, EvaluationTally

    _Property = tuple[str, object]


MARKER: Final = "evalmeta_evaluation"
ITERATION: Final = "evalmeta_iteration"
_NOTE: Final = "evalmeta_note"
_REASON_CHARS: Final = 300
_NOT_SUPPORTED: Final = "async def functions are not natively supported"
_Test = TypeVar("_Test")


def evaluation(
    *,
    min_pass_rate: float | None = None,
    iterations: int | None = None,
    confidence: float | None = None,
    runs: int | None = None,
) -> Callable[[_Test], _Test]:
    """Create a test function one evaluation, which passes when enough of its parameter sets and iterations do.

    A test fails by an assertion or `pytest.fail`, and then only counts. Any other exception
    is an error: it fails the session, whatever the rate, as it does without the decorator.

    Args:
        min_pass_rate: the share of tests, 0 to 1, that must pass, of those that pass or fail; 1 when not given.
        iterations: how often each parameter set is tested; the fixture `evalmeta_iteration` tells which time it is.
        confidence: another word for `min_pass_rate`.
        runs: another word for `iterations`.

    Raises:
        UsageError: a number is out of range, two words for the same say different things, or what is
            decorated is no function.
    """
    from evalmeta.errors import UsageError  # noqa: PLC0415 - only for evaluations

    terms = settle_terms(
        rates={"min_pass_rate": min_pass_rate, "confidence": confidence}, times={"iterations": iterations, "runs": runs}
    )
    if isinstance(terms, str):
        raise UsageError(f"@evalmeta.evaluation: {terms}")

    def mark(function: _Test) -> _Test:
        if not inspect.isfunction(function):
            raise UsageError(f"@evalmeta.evaluation is for test functions, and {function!r} is none")
        marker = getattr(pytest.mark, MARKER)
        marked: _Test = marker(**terms._asdict())(function)
        return marked

    return mark


def repeat(metafunc: pytest.Metafunc) -> None:
    """Create a test of an evaluation for every iteration, if there are several."""
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
        self._report = ""
        self._baseline: Mapping[str, Sequence[CaseCounts]] = {}

    def pytest_sessionstart(self) -> None:
        """Read the baseline and makes the folder for the report: what cannot be used is told before any test runs."""
        if is_worker(self._config):
            return
        given, folder = self._option("evalmeta_baseline"), self._option("evalmeta_report_dir")
        from evalmeta.errors import EvalmetaError  # noqa: PLC0415 - errors are light

        try:
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
            if given:
                from evalmeta.store.baselines import read_baseline  # noqa: PLC0415 - only for baselines

                self._baseline = read_baseline(given)
        except OSError as error:
            raise pytest.UsageError(f"{folder}: no reports can be written there: {error.strerror}") from None
        except EvalmetaError as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Refuse what cannot be parametrised, and so not repeated."""
        if not item.get_closest_marker(MARKER):
            return
        from unittest import TestCase  # noqa: PLC0415 - only for evaluations

        if issubclass(getattr(item, "cls", None) or object, TestCase):
            raise pytest.UsageError(f"{item.nodeid}: @evalmeta.evaluation is not for methods of unittest.TestCase")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record on the report what a test says about its evaluation; one that failed is expected to fail."""
        report = yield
        marker = item.get_closest_marker(MARKER)
        verdict = _verdict(report, call) if marker else None
        if marker and verdict:
            note = _note(item, marker, verdict, _reason(report, call))
            vars(report)[_NOTE] = note
            _note_properties(item, report, note)
            if verdict == "FAILURE":
                report.outcome = "skipped"
                report.wasxfail = f"counted by its evaluation: {note['reason']}"
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what tests said, here or in another process."""
        note = cast("CaseNote | None", vars(report).get(_NOTE))
        if note is None or is_worker(self._config):
            return
        from evalmeta.pytest_plugin.summary import EvaluationTally  # noqa: PLC0415 - only for evaluations

        self._tallies.setdefault(note["evaluation"], EvaluationTally(note)).add(note)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Add a report for each evaluation when all tests have run; a run that was stopped has no verdicts."""
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
        """Leave the reports of evaluations out of the progress, for no test has run; the summary shows them."""
        return (report.outcome, "", "") if self._is_deciding and report.when == "call" else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the rate and the failing cases of each evaluation."""
        if not self._tallies:
            return
        terminalreporter.write_sep("=", "evaluations")
        for tally in self._tallies.values():
            word, colour = self._word(tally)
            terminalreporter.write(word, **{colour: True})
            terminalreporter.write_line(f" {tally.name}: {tally.rate_line()}")
            is_told = word == "FAILED" and self._shows_tracebacks()
            told = tally.iteration_lines() if is_told else tally.detail_lines()
            for line in (*told, *self._against_baseline(tally)):
                terminalreporter.write_line(f"  {line}")
        if self._report:
            terminalreporter.write_line(self._report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the session's report, if one is wanted and there were evaluations."""
        folder = self._option("evalmeta_report_dir")
        if not (folder and self._tallies):
            return
        from evalmeta.errors import ProjectError  # noqa: PLC0415 - only for reports
        from evalmeta.pytest_plugin.summary import write_session_report  # noqa: PLC0415 - likewise

        try:
            path = write_session_report(folder, self._tallies.values(), is_complete=self._is_complete)
            self._report = f"report: {path}"
        except ProjectError as error:
            self._report = f"no report: {error}"
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _option(self, name: str) -> Path | None:
        """Return the path that an option names, from where pytest was called."""
        given: str | None = self._config.getoption(name)
        return self._config.invocation_params.dir / given if given else None

    def _against_baseline(self, tally: EvaluationTally) -> list[str]:
        """Return how an evaluation compares with what the baseline has of it."""
        before = self._baseline.get(tally.name)
        if before is None:
            return []
        from evalmeta.pytest_plugin.summary import comparison_with  # noqa: PLC0415 - only for baselines

        return comparison_with(before, tally, label=str(self._config.getoption("evalmeta_baseline")))

    def _run_again(self, tally: EvaluationTally) -> None:
        """Have `--last-failed` select the tests of an evaluation: the name of it is no test's."""
        kept: object = getattr(self._config.pluginmanager.get_plugin("lfplugin"), "lastfailed", None)
        if isinstance(kept, dict):
            kept.pop(tally.name, None)
            kept.update(dict.fromkeys(tally.notes, True))

    def _shows_tracebacks(self) -> bool:
        """Return whether pytest shows failures in full, where those of evaluations have their details already."""
        return self._config.getoption("tbstyle") not in {"no", "line"}

    def _word(self, tally: EvaluationTally) -> tuple[str, str]:
        if not self._is_complete:
            return "STOPPED", "yellow"
        return ("PASSED", "green") if tally.summary.succeeded else ("FAILED", "red")


def _note_properties(item: pytest.Item, report: pytest.TestReport, note: CaseNote) -> None:
    """Return the note to what writes files: they have the properties that the last report of an item has."""
    added: dict[str, object] = {"evaluation": note["evaluation"], "verdict": note["verdict"]}
    if note["inputs"] is not None:
        added["inputs"] = note["inputs"]
    kept = [each for each in item.user_properties if each[0] not in added]
    item.user_properties[:] = [*kept, *added.items()]
    report.user_properties = list(item.user_properties)


def _verdict(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str | None:
    """Return what a phase says: nothing, when it was skipped, expected to fail, or only prepared or cleaned up."""
    if report.passed:
        return "PASS" if report.when == "call" else None
    if report.skipped or call.excinfo is None:
        # A strict test that was expected to fail and passed has no exception.
        return "FAILURE" if report.failed else None
    error = call.excinfo.value
    is_judgement = isinstance(error, AssertionError | pytest.fail.Exception) and _NOT_SUPPORTED not in str(error)
    return "FAILURE" if report.when == "call" and is_judgement else "ERROR"


def _reason(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    from evalmeta.report.text import one_line  # noqa: PLC0415 - only for evaluations

    if report.passed:
        return ""
    if call.excinfo is None:
        return one_line(str(report.longrepr))
    # Of an assertion the first line says what was asserted; the others explain it in pytest's own words.
    first, *_ = call.excinfo.exconly(tryshort=True).strip().splitlines() or [""]
    return one_line(first, chars=_REASON_CHARS)


def _note(item: pytest.Item, marker: pytest.Mark, verdict: str, reason: str) -> CaseNote:
    from evalmeta.pytest_plugin.summary import inputs_text  # noqa: PLC0415 - only for evaluations

    file, line, _ = item.location
    callspec = getattr(item, "callspec", None)
    parameters: dict[str, object] = dict(callspec.params) if callspec else {}
    iteration = cast("int", parameters.pop(ITERATION, 1))
    case: str = f"-{callspec.id}" if callspec else ""
    function = getattr(item, "originalname", item.name)
    return {
        "evaluation": f"{item.parent.nodeid}::{function}" if item.parent else item.nodeid,
        "nodeid": item.nodeid,
        "case": case.removesuffix(f"-iteration{iteration}").removeprefix("-"),
        "place": [callspec.indices[name] for name in parameters] if callspec else [],
        "inputs": inputs_text(parameters) if parameters else None,
        "iteration": iteration,
        "iterations": marker.kwargs["iterations"],
        "min_pass_rate": marker.kwargs["min_pass_rate"],
        "verdict": verdict,
        "reason": reason,
        "file": file,
        "line": (line or 0) + 1,
    }


def _reports(tally: EvaluationTally) -> list[pytest.TestReport]:
    """Return the reports of a test that is the evaluation: its call, and a teardown, with which files write it."""
    from evalmeta.pytest_plugin.summary import explanation  # noqa: PLC0415 - only for evaluations

    summary, first = tally.summary, tally.first
    message = tally.rate_line()
    text = "\n".join([f"{first['file']}:{first['line']}: {message}", *(f"  {each}" for each in tally.detail_lines())])
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


def _inputs(tally: EvaluationTally) -> list[str]:
    return [notes[0]["inputs"] or "{}" for notes in tally.cases().values()]


def _properties(tally: EvaluationTally) -> list[_Property]:
    from evalmeta.pytest_plugin.summary import NO_INPUTS  # noqa: PLC0415 - only for evaluations

    summary = tally.summary
    return [
        ("pass_rate", "" if summary.pass_rate is None else summary.pass_rate),
        ("min_pass_rate", summary.min_pass_rate),
        ("passed", summary.passed),
        ("failed", summary.failed),
        ("errors", summary.errors),
        ("failing_cases", ", ".join(filter(None, tally.failing_cases()))),
        ("iterations", tally.first["iterations"]),
        ("outcomes", ", ".join(tally.outcomes())),
        ("inputs", NO_INPUTS if tally.first["inputs"] is None else f"[{', '.join(_inputs(tally))}]"),
    ]


class Terms(NamedTuple):
    """What share of its tests an evaluation needs, 0 to 1, and how often it tests each parameter set."""

    min_pass_rate: float
    iterations: int


def settle_terms(*, rates: Mapping[str, float | None], times: Mapping[str, int | None]) -> Terms | str:
    """Return what several words for the same two things say; or says what is wrong with it.

    Without any value all tests must pass, once each.
    """
    for values in (rates, times):
        given = {word: value for word, value in values.items() if value is not None}
        if len(set(given.values())) > 1:
            said = " and ".join(f"{word}={value}" for word, value in given.items())
            return f"{said} are two words for the same: give one of them"
    rate_word, rate = _given(rates, default=1.0)
    times_word, iterations = _given(times, default=1)
    return _rate_fault(rate, rate_word) or _times_fault(iterations, times_word) or Terms(rate, int(iterations))


def check_terms(*, min_pass_rate: float = 1.0, iterations: float = 1) -> str | None:
    """Return which of the two is beyond its limit; None when both are well."""
    return _rate_fault(min_pass_rate, "min_pass_rate") or _times_fault(iterations, "iterations")


def _rate_fault(rate: float, word: str) -> str | None:
    return None if 0 <= rate <= 1 else f"{word} is {rate}; 0 to 1 are allowed"


def _times_fault(times: float, word: str) -> str | None:
    if isinstance(times, int) and 1 <= times <= limits.MAX_ITERATIONS:
        return None
    return f"{word} is {times}; whole numbers from 1 to {limits.MAX_ITERATIONS} are allowed"


def _given(values: Mapping[str, float | None], *, default: float) -> tuple[str, float]:
    """Return the first word with a value, and the value."""
    return next(((word, value) for word, value in values.items() if value is not None), (next(iter(values)), default))


_WHOLE_FILES: Final = ("each", "loadfile", "loadscope")


class WorkerNode(Protocol):
    """A worker as the process that gives it tests sees it."""

    config: pytest.Config
    workerinput: dict[str, str]


def is_worker(config: pytest.Config) -> bool:
    """Return whether the process runs tests for another one, which reports them."""
    return hasattr(config, "workerinput")


def gets_whole_files(config: pytest.Config) -> bool:
    """Return whether whoever runs the first test of a definition runs all of them."""
    given = cast("dict[str, str]", getattr(config, "workerinput", {}))
    return given.get("evalmeta_dist", "each") in _WHOLE_FILES
