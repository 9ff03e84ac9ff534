"""Whose fault it is that a case became worse."""

from __future__ import annotations

import pytest

from evalmeta.model.case_faults import fault_of, needs_earlier_result
from evalmeta.model.changes import Fault
from evalmeta.model.comparison import CaseComparison, Standing
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, ErrorOrigin, TestResult, Verdict
from evalmeta.model.statistics import CaseCounts

FAILED = TestResult("topic", Verdict.FAILURE, explanation="the topic is Returns")
RATED = TestResult("rating", Verdict.FAILURE, explanation="It is wrong.", rater="llm:judge")
NOT_RATED = TestResult("rating", Verdict.ERROR, explanation="not rated: no reply", error="not rated: no reply")
NOT_JUDGED = TestResult("rating", Verdict.UNDECIDED, explanation="the models disagree", rater="llm:judge")
NOT_REPORTED = TestResult("actions", Verdict.UNDECIDED, explanation="the agent reports no actions")


def case(*results: TestResult, answer: str = "On Friday.", **fields: object) -> CaseResult:
    verdict = Verdict.ERROR if fields.get("error") else Verdict.FAILURE
    return CaseResult(1, 1, "When?", verdict, 0, 0, results, GeneratedData(answer), **fields)


def compared(before: str = "a", after: str = "a") -> CaseComparison:
    sides = CaseCounts(1, "When?", 1, checks=before), CaseCounts(1, "When?", 0, 1, checks=after)
    return CaseComparison(Standing.BROKEN, 1, "When?", *sides)


@pytest.mark.parametrize(
    ("after", "fault", "badge"),
    [
        (case(FAILED), Fault.AGENT, "agent"),
        (case(NOT_REPORTED), Fault.AGENT, "agent"),
        (case(RATED, answer="On Monday."), Fault.AGENT, "agent"),
        (case(RATED), Fault.JUDGE, "same answer"),
        (case(FAILED, RATED), Fault.AGENT, "agent"),
        (case(FAILED, NOT_RATED), Fault.JUDGE, "judge failed"),
        (case(NOT_JUDGED), Fault.JUDGE, "not judged"),
        (case(error="no answer", origin=ErrorOrigin.TIME_OUT), Fault.INFRASTRUCTURE, "time-out"),
        (case(error="no answer"), Fault.INFRASTRUCTURE, "no answer"),
        (case(error="the file names no agent", origin=ErrorOrigin.TEST), Fault.TEST, "not runnable"),
    ],
)
def test_a_fault_is_that_of_what_failed(after: CaseResult, fault: Fault, badge: str) -> None:
    assert fault_of(compared(), case(FAILED), after, ()) == (fault, badge)


def test_a_changed_expectation_comes_before_all_other_faults() -> None:
    for after in (case(FAILED), case(NOT_RATED), case(error="no answer")):
        assert fault_of(compared("a", "b"), None, after, ()) == (Fault.TEST, "expectation changed")
    assert fault_of(compared("", "b"), None, case(FAILED), ())[0] is Fault.AGENT, "what is not known did not change"


def test_another_rater_is_the_fault_only_of_what_it_rates() -> None:
    assert fault_of(compared(), None, case(RATED), {"rater"}) == (Fault.TEST, "another rater")
    assert fault_of(compared(), None, case(FAILED), {"rater"})[0] is Fault.AGENT
    assert fault_of(compared(), None, case(FAILED), {"agent"}) == (Fault.TEST, "another agent")
    assert fault_of(compared(), None, case(FAILED), {"version of the agent"})[0] is Fault.AGENT


def test_earlier_answers_are_read_only_if_they_decide() -> None:
    assert needs_earlier_result(case(RATED))
    assert not any(map(needs_earlier_result, (case(FAILED), case(FAILED, RATED), case(RATED, error="x"), case())))
