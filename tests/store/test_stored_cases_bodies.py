from __future__ import annotations

import json
from types import MappingProxyType

from hypothesis import given

from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.protocol.connect import read_case, write_case
from evalmeta.store.stored_cases import decode_case, encode_case
from protocol.results import cases


@given(cases)
def test_a_case_result_is_read_back_unchanged(case: CaseResult) -> None:
    # Only runs of other orgs have the verdicts of two sides.
    case = case._replace(results=tuple(result._replace(verdicts=None) for result in case.results))
    assert decode_case(encode_case(case)) == case


def test_any_mapping_may_be_an_input() -> None:
    action = Action("GetOrder", MappingProxyType({"id": "1"}))
    case = CaseResult(3, 1, "Where is it?", Verdict.PASS, 1.0, 2.0, (), GeneratedData("Here.", actions=(action,)))
    assert decode_case(encode_case(case)).generated.actions == (Action("GetOrder", {"id": "1"}),)


def test_averaged_results_are_read_back_unchanged() -> None:
    judged = TestResult("overlap", Verdict.FAILURE, score=0.2, threshold=0.8, turn=2)
    case = CaseResult(3, 1, "Where is it?", Verdict.FAILURE, 1.0, 2.0, (judged,))
    assert decode_case(encode_case(case)) == case
    assert read_case(write_case(case)).results == (judged,)


def test_an_answer_that_was_stored_before_it_could_have_a_state_has_an_unknown_one() -> None:
    answer = GeneratedData("Here.", is_json=True, state={}, handoffs=())
    case = CaseResult(3, 1, "Where is it?", Verdict.PASS, 1.0, 2.0, (), answer)
    body = json.loads(encode_case(case))
    assert (body[7][-2:], decode_case(encode_case(case))) == ([{}, []], case)
    for length in range(7, 11):
        older = decode_case(json.dumps([*body[:7], body[7][:length], *body[8:]]).encode()).generated
        assert older is not None
        assert (older.outcome, older.state, older.handoffs) == ("Here.", None, None)


def test_the_error_of_an_action_is_kept() -> None:
    answer = GeneratedData("", actions=(Action("A", error="timed out"), Action("B")))
    case = CaseResult(3, 1, "Where is it?", Verdict.PASS, 1.0, 2.0, (), answer)
    assert decode_case(encode_case(case)) == case
