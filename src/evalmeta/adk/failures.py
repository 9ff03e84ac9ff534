"""The error that lists the failures of all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.run import Verdict
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.finished_runs import FinishedRun, FinishedRuns
    from evalmeta.model.run import CaseResult


__tracebackhide__ = True  # pytest's tracebacks end where the test calls


class EvaluationFailed(AssertionError):
    """Raised if means did not reach their thresholds, or cases could not be evaluated; the message lists all of them.

    Attributes:
        runs: One run for each file.
    """

    def __init__(self, message: str, runs: FinishedRuns) -> None:
        super().__init__(message)
        self.runs = runs


def passed(runs: FinishedRuns, labels: Sequence[str]) -> FinishedRuns:
    """Return the runs if all of them succeeded; `labels` are the names of their files in messages.

    Raises:
        EvaluationFailed: A metric failed, or a case could not be evaluated.
    """
    if runs.succeeded:
        return runs
    lines = [_counts(runs)]
    for label, run in zip(labels, runs, strict=True):
        if not run.succeeded:
            lines += [f"{label}:", *(f"  {failure}" for failure in _failures(run))]
    raise EvaluationFailed("\n".join(lines), runs)


def _counts(runs: FinishedRuns) -> str:
    """Return `2 metrics of 1 case failed; 1 case could not be evaluated`."""
    failed = {(place, *each) for place, run in enumerate(runs) for each in _failed(run)}
    broken = {(place, case.number) for place, run in enumerate(runs) for case in run.run.cases if any(_errors(case))}
    cases = count(len({each[:2] for each in failed}), "case")
    parts = [f"{count(len(failed), 'metric')} of {cases} failed"] if failed else []
    parts += [f"{count(len(broken), 'case')} could not be evaluated"] if broken else []
    return "; ".join(parts) or "the evaluation did not pass"


def _failed(run: FinishedRun) -> Iterator[tuple[int, str]]:
    """Yield the case number and the name of every failed metric."""
    for mean in run.summary.averages:
        if mean.verdict is Verdict.FAILURE:
            yield mean.number, mean.name
    for case in run.run.cases:
        for result in case.results:
            if result.verdict is Verdict.FAILURE and result.threshold is None:
                yield case.number, result.name


def _failures(run: FinishedRun) -> Iterator[str]:
    """Yield a line for each failed metric, and for each case or result that is an error."""
    cases = run.run.cases
    if run.run.error:
        yield run.run.error
    yield from dict.fromkeys(each for case in cases for each in _errors(case))
    for mean in run.summary.averages:
        if mean.verdict is Verdict.FAILURE and mean.score is not None:
            score = f"expected {mean.threshold:g}, got {round(mean.score, 3):g}"
            yield f"{mean.name} for {mean.label} failed: {score}{_reason(cases, mean.number, mean.name)}"
    yield from dict.fromkeys(each for case in cases for each in _failed_alone(case))
    if run.summary.pass_rate is None and not run.summary.errors:
        yield "nothing could be judged; the report of the runs says what is missing"


def _errors(case: CaseResult) -> Iterator[str]:
    if case.error:
        yield f"{case.label} could not be evaluated: {case.error}"
    for result in case.results:
        if result.error:
            yield f"{result.name} for {case.label} could not be judged: {result.error}"


def _failed_alone(case: CaseResult) -> Iterator[str]:
    for result in case.results:
        if result.verdict is Verdict.FAILURE and result.threshold is None:
            yield f"{result.name} for {case.label} failed: {result.explanation}"


def _reason(cases: Sequence[CaseResult], number: int, name: str) -> str:
    """Return the explanation of the first failed result."""
    for case in cases:
        for result in case.results:
            if case.number == number and result.name == name and result.verdict is Verdict.FAILURE:
                turn = f"turn {result.turn}: " if result.turn else ""
                return f"\n    {turn}{result.explanation}"
    return ""
