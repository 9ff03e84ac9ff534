"""Since when cases do not pass, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from evalmeta.model.changes import Cause, ChangedCase, Fault, Moment, Onset
from evalmeta.model.comparison import CaseComparison, Standing
from evalmeta.model.run import CaseResult, ErrorOrigin, Verdict
from evalmeta.report.changes import onset_text

DAY: Final = 86_400.0
BEFORE: Final = Moment("4KB000000000001GAA", "", 1.0, "main", "aaaaaaa1", "Earlier", "", is_clean=True)
FIRST: Final = Moment("4KB000000000002GAA", "", DAY, "main", "bbbbbbb1", "Later", "aaaaaaa1", is_clean=True)
CASE: Final = ChangedCase(
    "orders.yaml",
    CaseComparison(Standing.BROKEN, 1, "Hello", None, None),
    FIRST,
    BEFORE,
    CaseResult(1, 1, "Hello", Verdict.FAILURE, 1.0, 2.0),
)


def since(fault: Fault | None, badge: str, onset: Onset | None) -> str:
    return onset_text(Cause("", fault, badge, (replace(CASE, onset=onset),)), DAY)


@pytest.mark.parametrize(
    ("fault", "badge"),
    [
        (Fault.AGENT, "agent"),
        (Fault.TEST, "expectation changed"),
        (Fault.INFRASTRUCTURE, ErrorOrigin.CRASH.value),
        (Fault.INFRASTRUCTURE, ErrorOrigin.INVALID.value),
    ],
)
def test_the_commit_is_named_that_may_be_the_reason(fault: Fault, badge: str) -> None:
    assert since(fault, badge, Onset(FIRST, BEFORE, 1)) == 'first in bbbbbbb "Later"'


@pytest.mark.parametrize(
    ("fault", "badge"),
    [(Fault.INFRASTRUCTURE, ErrorOrigin.TIME_OUT.value), (Fault.JUDGE, "judge failed"), (None, "suspect")],
)
def test_a_time_is_named_where_no_commit_is_the_reason(fault: Fault | None, badge: str) -> None:
    assert since(fault, badge, Onset(FIRST, BEFORE, 2)) == "since today 00:00, 2 runs in a row"


def test_a_case_whose_earlier_runs_are_not_known_may_have_failed_before() -> None:
    assert since(Fault.JUDGE, "judge failed", Onset(FIRST, None, 1)) == "since today 00:00 or before it"


def test_nothing_is_said_of_a_case_without_runs() -> None:
    assert since(Fault.AGENT, "agent", None) == ""
