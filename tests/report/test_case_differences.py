from __future__ import annotations

import pytest

import report_runs as make
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import CaseResult, EarlierTurn, TestResult, Verdict
from evalmeta.report.case_differences import reasons, score_change, turn_differences

FIND, TRACK = Action("Find_Order", {"number": 12}), Action("Track_Parcel")
PASSED = TestResult("action_sequence_match", Verdict.PASS, "['Find_Order', 'Track_Parcel']", score=1.0, turn=2)
FAILED = PASSED._replace(verdict=Verdict.FAILURE, score=0.5, explanation="Track_Parcel is missing")


def two_turns(*actions: Action, answer: str = "On Friday.", result: TestResult = PASSED) -> CaseResult:
    first = EarlierTurn("Hello", GeneratedData("Hi", actions=()))
    generated = GeneratedData(answer, "Orders", actions)
    return make.case(1, result.verdict, result)._replace(generated=generated, earlier=(first,))


def test_a_lost_call_is_a_reason_although_the_answers_are_the_same() -> None:
    before, after = two_turns(FIND, TRACK), two_turns(FIND, result=FAILED)

    turns = turn_differences(before, after)

    assert [(turn.turn, turn.is_same) for turn in turns] == [(1, True), (2, False)]
    assert [(call.name, call.change) for call in turns[1].calls] == [
        ("Find_Order", ""),
        ("Track_Parcel", "missing now"),
    ]
    assert list(reasons(before, after)) == [
        "Actions in turn 2: ok before, FAILED now; Track_Parcel is missing",
        "Track_Parcel in turn 2: missing now",
    ]


def test_calls_in_another_order_are_aligned_and_other_inputs_are_named() -> None:
    [_, turn] = turn_differences(two_turns(FIND, TRACK), two_turns(TRACK, FIND))
    assert sorted(call.change for call in turn.calls if call.change) == ["missing now", "new"]

    [_, turn] = turn_differences(two_turns(FIND), two_turns(Action("Find_Order", {"number": 13})))
    assert [call.change for call in turn.calls] == ["other inputs"]


@pytest.mark.parametrize(
    "known", [None, GeneratedData("", None, (FIND,))], ids=["nothing is known", "a trace has the first call"]
)
def test_calls_of_a_crash_are_not_known(known: GeneratedData | None) -> None:
    answered = two_turns(FIND, TRACK)
    crash = answered._replace(generated=None, unanswered=known, error="boom", results=(), verdict=Verdict.ERROR)

    for before, after, change in [(answered, crash, "not known now"), (crash, answered, "not known before")]:
        [_, turn] = turn_differences(before, after)
        changes = {call.name: call.change for call in turn.calls}
        assert changes == {"Find_Order": "" if known else change, "Track_Parcel": change}
        assert not turn.is_same
        assert not [reason for reason in reasons(before, after) if "Track_Parcel" in reason or "topic" in reason]


def test_calls_of_an_agent_that_does_not_report_them_are_not_known() -> None:
    silent = two_turns()._replace(generated=GeneratedData("On Friday.", "Orders"))
    [_, turn] = turn_differences(two_turns(FIND), silent)
    assert [call.change for call in turn.calls] == ["not known now"]


def test_an_edited_expectation_is_a_reason_even_if_both_verdicts_are_the_same() -> None:
    edited = PASSED._replace(expected="['Find_Order']")
    assert list(reasons(two_turns(FIND), two_turns(FIND, result=edited))) == [
        "Actions in turn 2: ok before, ok now; expected 'Find_Order, Track_Parcel' before"
    ]


def test_the_same_expectation_in_another_layout_is_not_an_edited_one() -> None:
    before = two_turns(FIND)._replace(checks="a1")
    after = two_turns(FIND, result=FAILED._replace(expected="Find_Order\nTrack_Parcel"))._replace(checks="a1")

    def edited(now: CaseResult) -> list[bool]:
        return [pair.expects_another for turn in turn_differences(before, now) for pair in turn.expectations]

    assert edited(after) == [False]
    assert edited(after._replace(checks="b2")) == [True]


def test_an_error_is_the_reason_and_its_missing_results_are_not() -> None:
    broken = two_turns(FIND)._replace(generated=None, error="boom\nat line 3", results=(), verdict=Verdict.ERROR)
    assert list(reasons(two_turns(FIND), broken)) == ["error now: boom at line 3"]
    assert next(reasons(broken, two_turns(FIND))) == "error before: boom at line 3"


def test_an_expectation_that_is_not_judged_any_more_is_named() -> None:
    after = two_turns(FIND)._replace(results=())
    assert list(reasons(two_turns(FIND), after)) == ["Actions in turn 2: ok before, not judged now"]


def test_results_without_any_difference_say_so() -> None:
    assert list(reasons(two_turns(FIND), two_turns(FIND))) == ["the answers, calls and verdicts are the same"]
    assert list(reasons(two_turns(FIND), two_turns(FIND, answer="On Monday."))) == []


def test_without_a_result_before_the_reason_is_that_of_the_result_now() -> None:
    assert list(reasons(None, two_turns(FIND, result=FAILED))) == [
        "action_sequence_match in turn 2: Track_Parcel is missing"
    ]
    assert list(reasons(None, two_turns(FIND))) == []


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [(PASSED, FAILED, 0.5), (PASSED, PASSED, 0.0), (PASSED, FAILED._replace(score=None), 1.0)],
)
def test_scores_differ_by_a_share_of_the_larger_one(before: TestResult, after: TestResult, change: float) -> None:
    assert score_change(two_turns(result=before), two_turns(result=after)) == change
