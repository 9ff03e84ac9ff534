"""Whose fault it is that a case became worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.changes import Fault
from evalmeta.model.fingerprints import compare_checks
from evalmeta.model.run import NEEDS_MODEL, CaseResult, ErrorOrigin, TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection

    from evalmeta.model.comparison import CaseComparison

# What takes part in a run and decides what its results mean, as `PartChange.what` calls it.
_OF_ALL: Final = {"agent": "another agent", "options of judging": "other options"}
_OF_RATED: Final = {"rater": "another rater", "prompt of the judge": "another prompt"}


def fault_of(
    case: CaseComparison, before: CaseResult | None, after: CaseResult, parts: Collection[str]
) -> tuple[Fault, str]:
    """Return whose fault it is that a case does not pass any more, and a few words for it.

    `before` is its result before, if that is known; `parts` names what takes part in the run and is another one now.
    """
    if word := _test_fault(case, after, parts):
        return Fault.TEST, word
    if after.verdict is Verdict.ERROR and after.error is not None:
        return Fault.INFRASTRUCTURE, after.origin.value if after.origin else "no answer"
    judged = _not_passed(after)
    if any(result.verdict is Verdict.ERROR for result in judged):
        return Fault.JUDGE, "judge failed"
    if judged and all(result.verdict is Verdict.UNDECIDED and _is_rated(result) for result in judged):
        return Fault.JUDGE, "not judged"
    if before is not None and judged and all(map(_is_rated, judged)) and _answers(before) == _answers(after):
        return Fault.JUDGE, "same answer"
    return Fault.AGENT, "agent"


def needs_earlier_result(after: CaseResult) -> bool:
    """Return whether only the earlier answer tells whether the agent or the judge changed."""
    judged = _not_passed(after)
    return after.error is None and bool(judged) and all(map(_is_rated, judged))


def _test_fault(case: CaseComparison, after: CaseResult, parts: Collection[str]) -> str:
    if after.origin is ErrorOrigin.TEST:
        return ErrorOrigin.TEST.value
    checks = (side.checks if side else "" for side in (case.before, case.after))
    if any(compare_checks(*checks)):
        return "expectation changed"
    known = _OF_ALL | (_OF_RATED if any(map(_is_rated, _not_passed(after))) else {})
    return next((word for part, word in known.items() if part in parts), "")


def _not_passed(case: CaseResult) -> list[TestResult]:
    return [result for result in case.results if not result.is_measured and result.verdict is not Verdict.PASS]


def _is_rated(result: TestResult) -> bool:
    return result.rater is not None or result.explanation.startswith(NEEDS_MODEL)


def _answers(case: CaseResult) -> list[tuple[object, ...]]:
    turns = [*(turn.generated for turn in case.earlier), case.generated]
    return [(answer.outcome, answer.topic, answer.actions) for answer in turns if answer]
