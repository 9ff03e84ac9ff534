"""Failures with the same cause."""

from __future__ import annotations

import pytest

from evalmeta.model.changes import ChangedCase, Fault, Moment
from evalmeta.model.comparison import CaseComparison, Standing
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.model.run_options import Origin
from evalmeta.report.causes import causes_of, masked, reason_of

MOMENT = Moment.of("4KB1", 0.0, Origin(branch="main"))


def failed(number: int, reason: str, *, utterance: str = "Where is it?", fault: Fault = Fault.AGENT) -> ChangedCase:
    result = TestResult("contains", Verdict.FAILURE, explanation=reason, label="contains")
    case = CaseResult(number, 1, utterance, Verdict.FAILURE, 0, 0, (result,))
    compared = CaseComparison(Standing.BROKEN, number, utterance, None, None)
    return ChangedCase("orders", compared, MOMENT, MOMENT, case, reason_of(case), fault, fault.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("no answer within 5.2 s", "no answer within 31 s"),
        ("order 10045 is not known", "order 7 is not known"),
        ('the answer does not contain "Friday"', 'the answer does not contain "the 3rd of May"'),
        ("run 4KB000000000001GAA failed", "run 4KB000000000002GAA failed"),
        ("no user a1-b2@x.com", "no user c3@y.org, d4@z.org"),
    ],
)
def test_numbers_ids_and_quoted_texts_do_not_make_another_cause(first: str, second: str) -> None:
    [cause] = causes_of([failed(1, first), failed(2, second)])
    assert "…" in cause.text
    assert len(cause.cases) == 2


def test_names_that_were_asked_for_do_not_make_another_cause() -> None:
    cases = [
        failed(1, "Ada is not known", utterance="Who is Ada?"),
        failed(2, "Bob is not known", utterance="And Bob?"),
    ]
    assert [cause.text for cause in causes_of(cases)] == ["contains: … is not known"]


def test_other_tools_lines_and_faults_are_other_causes() -> None:
    reasons = ("missing: Track_Parcel", "missing: Get_Order", "agents.py:25: KeyError", "agents.py:27: KeyError")
    assert len(causes_of([failed(number, reason) for number, reason in enumerate(reasons)])) == len(reasons)
    assert len(causes_of([failed(1, "late"), failed(2, "late", fault=Fault.TEST)])) == 2


def test_one_reason_is_shown_as_it_is_and_frequent_causes_come_first() -> None:
    causes = causes_of([failed(1, "order 5 is late"), failed(2, "missing: A"), failed(3, "missing: A")])
    assert [(cause.text, len(cause.cases)) for cause in causes] == [
        ("contains: missing: A", 2),
        ("contains: order 5 is late", 1),
    ]


def test_a_reason_is_the_error_or_the_first_result_that_did_not_pass() -> None:
    case = failed(1, "late").result
    assert reason_of(case._replace(error="no\nanswer")) == "no answer"
    assert reason_of(case._replace(error="no answer\n→ Add this row:\n- a\n→ Or this")) == "no answer"
    assert reason_of(case._replace(results=())) == "the case has no expectations"
    assert masked("late", case) == "late"
