from __future__ import annotations

import pytest

from engine.builders import result
from evalmeta.model.run import Verdict, case_verdict

PASS, FAILURE, ERROR, UNDECIDED = Verdict.PASS, Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], UNDECIDED),
        ([UNDECIDED], UNDECIDED),
        ([UNDECIDED, PASS], PASS),
        ([PASS, ERROR, UNDECIDED], ERROR),
        ([PASS, ERROR, FAILURE], FAILURE),
    ],
)
def test_the_worst_result_is_the_verdict_of_the_case(verdicts: list[Verdict], expected: Verdict) -> None:
    assert case_verdict(result(verdict) for verdict in verdicts) is expected
