"""What clients that show every case and every expectation are told of those that never had a result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.engine.plan import choose
from evalmeta.errors import InvalidMetadata
from evalmeta.model.run import CaseResult, RunStatus, TestResult, Verdict
from evalmeta.org.evaluations import evaluation_of_run

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case
    from evalmeta.model.run import Run
    from evalmeta.org.organization import Organization

__all__ = ["stand_ins"]

_ENDED_EARLY: Final = frozenset({RunStatus.ERROR, RunStatus.TERMINATED})


def stand_ins(org: Organization, run: Run) -> tuple[CaseResult, ...]:
    """Gives, for broken cases and for those that a run which ended early never asked, an error for every expectation.

    Salesforce's clients show nothing of a case without results, and divide by the number of cases.
    """
    broken = [each for each in run.cases if each.verdict is Verdict.ERROR and not each.results]
    ended_early = run.status in _ENDED_EARLY and len(run.cases) < run.total
    if not broken and not ended_early:
        return ()
    try:
        cases = {case.number: case for case in choose(evaluation_of_run(org, run), run.options)}
    except InvalidMetadata:
        # It is what broke the run.
        return ()
    if ended_early:
        done = {(each.iteration, each.number) for each in run.cases}
        every = ((iteration, case) for iteration in range(1, run.options.iterations + 1) for case in cases.values())
        broken += [
            _never_asked(run, case, iteration) for iteration, case in every if (iteration, case.number) not in done
        ]
    return tuple(replace(each, results=_errors(cases[each.number], each.error or "")) for each in broken)


def _never_asked(run: Run, case: Case, iteration: int) -> CaseResult:
    error = run.error or "the run ended before this case was asked"
    utterance = case.turns[-1].utterance
    return CaseResult(
        case.number, iteration, utterance, Verdict.ERROR, run.started, run.ended or run.started, error=error
    )


def _errors(case: Case, error: str) -> tuple[TestResult, ...]:
    return tuple(
        TestResult(each.name, Verdict.ERROR, expected=each.expected_value or "", label=each.label, error=error)
        for turn in case.turns
        for each in turn.expectations
    )
