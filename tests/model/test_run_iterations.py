from __future__ import annotations

from dataclasses import replace

import pytest

from evalmeta.model.run import CaseResult, Run, RunStatus, Verdict, join
from evalmeta.model.run_options import RunOptions

NEW, GOING, DONE = RunStatus.NEW, RunStatus.IN_PROGRESS, RunStatus.COMPLETED
BROKEN, CANCELED = RunStatus.ERROR, RunStatus.TERMINATED
CASES = tuple(CaseResult(number, 1, "", Verdict.PASS, 1.0, 2.0) for number in (1, 2))
PART = Run("4KB1", "", "Desk", DONE, 5.0, 2, ended=6.0, cases=CASES)
WHOLE = Run("4KB1", "Orders", "", NEW, 4.0, 0, options=RunOptions(iterations=3))


def test_results_are_numbered_by_their_iteration() -> None:
    joined = join([PART] * 3, WHOLE)
    assert [(case.iteration, case.number) for case in joined.cases] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert (joined.total, joined.started, joined.ended, joined.options) == (6, 5.0, 6.0, WHOLE.options)


def test_a_name_that_is_not_known_is_what_the_org_says() -> None:
    assert join([PART], WHOLE).definition == "Orders"
    assert join([PART], replace(WHOLE, definition="")).definition == "Desk"


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ([NEW], NEW),
        ([GOING], GOING),
        ([DONE], GOING),
        ([DONE, NEW], GOING),
        ([DONE, DONE, DONE], DONE),
        ([DONE, BROKEN], BROKEN),
        ([CANCELED], CANCELED),
    ],
)
def test_a_run_is_over_with_its_last_iteration_or_one_that_ended_early(
    statuses: list[RunStatus], status: RunStatus
) -> None:
    joined = join([replace(PART, status=each) for each in statuses], WHOLE)
    assert (joined.status, joined.ended is not None) == (status, status.is_over)


def test_iterations_that_never_began_are_missed() -> None:
    broken = replace(PART, status=BROKEN, cases=(), error="out of requests")
    joined = join([PART, broken], WHOLE)
    assert (joined.total, len(joined.cases), joined.error) == (6, 2, "out of requests")
