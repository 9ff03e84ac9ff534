"""The waterfall of a case: what is drawn, where, and that no call vanishes from it."""

from __future__ import annotations

import pytest

from evalmeta import limits
from evalmeta.model.generated_data import Action, GeneratedData, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, TestResult, Verdict
from evalmeta.viewer.waterfall import MISSING, REST, Waterfall, waterfall


def answer(*actions: Action, ms: float | None = 100.0, **others: object) -> GeneratedData:
    return GeneratedData("Yes.", actions=actions, latency_ms=ms, **others)  # type: ignore[arg-type]


def case_of(*turns: GeneratedData, results: tuple[TestResult, ...] = (), error: str | None = None) -> CaseResult:
    earlier = tuple(EarlierTurn(f"question {at}", turn) for at, turn in enumerate(turns[:-1], 1))
    verdict = Verdict.ERROR if error else results[0].verdict if results else Verdict.PASS
    return CaseResult(1, 1, "question", verdict, 10.0, 10.5, results, turns[-1], error, earlier=earlier)


def failed(expected: str, actual: str, *, turn: int = 0, why: str = "") -> TestResult:
    return TestResult("action_sequence_match", Verdict.FAILURE, expected, actual, explanation=why, turn=turn)


def rows_of(drawn: Waterfall, turn: int = 1) -> list[tuple[str, str]]:
    return [(row.kind, row.name) for row in drawn.turns[turn - 1].rows]


def test_calls_stand_inside_their_turns_and_turns_follow_each_other() -> None:
    drawn = waterfall(case_of(answer(Action("A", latency_ms=40.0)), answer(Action("B", latency_ms=10.0), ms=300.0)))

    assert [turn.span for turn in drawn.turns] == [(0.0, 100.0), (100.0, 400.0)]
    assert rows_of(drawn, 2) == [("tool", "B"), (REST, "the agent itself")]
    assert drawn.turns[1].rows[0].spans == ((100.0, 110.0),)
    assert drawn.turns[1].rows[1].spans == ((110.0, 400.0),)
    assert drawn.bars([(100.0, 110.0)]) == [("25.00%", "2.50%")]
    assert [(share.name, share.share) for share in drawn.shares] == [("tools", 0.125), ("the agent itself", 0.875)]


def test_a_missing_call_stands_where_it_was_expected_and_is_as_long_as_it_last_was() -> None:
    before = case_of(answer(Action("A"), Action("Track", latency_ms=910.0), Action("B")))
    now = case_of(answer(Action("A"), Action("B")), results=(failed("['A', 'Track', 'B']", "['A', 'B']"),))

    drawn = waterfall(now, [before])

    assert rows_of(drawn) == [("tool", "A"), (MISSING, "Track"), ("tool", "B")]
    assert drawn.turns[0].rows[1].duration_ms == 910.0
    [(_, width)] = drawn.missing_bars(waterfall(now).turns[0].rows[1])
    assert width == "4.00%"


@pytest.mark.parametrize(
    ("result", "missing"),
    [
        (failed("['A', 'A', 'C', 'C']", "['A']"), ["A", "C", "C"]),
        (failed("A(id=1)\nTrack(id=2)", "A(id=1)\n-"), ["Track"]),
        (failed("A(id=1)", "A(id=2)"), []),
        (failed("['A', 'B']", "['B', 'A']", why="order: B before A"), []),
        (failed("['A', 'B']", "['A', 'X']", why="missing (allowed): B; extra: X"), []),
        (failed("['A', 'B']", "['A']")._replace(verdict=Verdict.UNDECIDED), []),
        (TestResult("contains", Verdict.FAILURE, "['A', 'B']", "['A']"), []),
    ],
)
def test_only_calls_that_are_missing_are_missing(result: TestResult, missing: list[str]) -> None:
    drawn = waterfall(case_of(answer(Action("A")), results=(result,)))

    assert [name for kind, name in rows_of(drawn) if kind == MISSING] == missing


def test_two_expectations_that_miss_the_same_call_miss_it_once() -> None:
    both = (failed("['A', 'B']", "['A']"), failed("A()\nB()", "A()\n-"))

    assert rows_of(waterfall(case_of(answer(Action("A")), results=both)))[1:] == [(MISSING, "B")]


def test_of_an_agent_that_reports_no_actions_nothing_is_missing() -> None:
    silent = GeneratedData("Yes.", latency_ms=5.0)

    assert rows_of(waterfall(case_of(silent, results=(failed("['A']", ""),)))) == []


def test_steps_are_where_their_trace_says_and_actions_without_a_step_are_drawn_too() -> None:
    model = {"kind": "model", "name": "gpt", "start_ms": 10, "duration_ms": 30}
    tool = {"kind": "tool", "name": "A", "action": 0, "start_ms": 50, "duration_ms": 20}
    trace = {"steps": [{"kind": "agent", "name": "desk", "start_ms": 0, "duration_ms": 100, "steps": [model, tool]}]}

    drawn = waterfall(case_of(answer(Action("A"), Action("B"), trace=trace)))

    assert [(row.kind, row.name, row.level, row.spans) for row in drawn.turns[0].rows] == [
        ("agent", "desk", 1, ((0.0, 100.0),)),
        ("model", "gpt", 2, ((10.0, 40.0),)),
        ("tool", "A", 2, ((50.0, 70.0),)),
        ("tool", "B", 1, ()),
        (REST, "the agent itself", 1, ((0.0, 10.0), (40.0, 50.0), (70.0, 100.0))),
    ]
    assert not drawn.has_order_only
    assert {share.name: share.share for share in drawn.shares} == {"model": 0.3, "tools": 0.2, "the agent itself": 0.5}


def test_calls_that_overlap_leave_the_agent_no_time_of_its_own() -> None:
    drawn = waterfall(case_of(answer(Action("A", latency_ms=90.0), Action("B", latency_ms=90.0))))

    assert rows_of(drawn) == [("tool", "A"), ("tool", "B")]
    assert drawn.has_order_only


def test_steps_beyond_the_limit_are_counted_and_missing_calls_are_always_drawn() -> None:
    many = [Action("A")] * (limits.VIEW_STEPS + 3)
    turn = waterfall(case_of(answer(*many), results=(failed("['A', 'B']", "['A']"),))).turns[0]

    assert turn.left_out == 3
    assert len(turn.rows) == limits.VIEW_STEPS + 1
    assert turn.rows[1].kind == MISSING


def test_only_turns_that_did_not_pass_are_open() -> None:
    drawn = waterfall(case_of(answer(), answer(), answer(), results=(failed("['A']", "[]", turn=2),)))

    assert [(turn.is_open, turn.verdict) for turn in drawn.turns] == [
        (False, None),
        (True, Verdict.FAILURE),
        (False, None),
    ]
    assert not waterfall(case_of(answer(), answer())).has_open
    assert waterfall(case_of(answer())).has_open
    assert [turn.is_open for turn in waterfall(case_of(answer(), answer(), error="refused")).turns] == [False, True]


def test_a_turn_without_a_latency_takes_the_time_that_is_left() -> None:
    assert waterfall(case_of(answer(ms=200.0), answer(ms=None))).turns[1].span == (200.0, 500.0)
    assert waterfall(case_of(answer(ms=None), answer(ms=100.0))).turns[0].duration_ms is None


def test_tokens_are_the_sum_of_all_answers_and_unknown_if_one_lacks_them() -> None:
    known, unknown = answer(tokens=Tokens(5, 2)), answer()

    assert waterfall(case_of(known, known)).tokens == Tokens(10, 4)
    assert waterfall(case_of(known, unknown)).tokens == Tokens(None, None)
    assert waterfall(case_of(unknown)).tokens is None


def test_what_a_trace_could_not_keep_is_said() -> None:
    trace = {"steps": [{"kind": "model"}], "left_out": {"steps": 7}}

    assert waterfall(case_of(answer(trace=trace))).turns[0].not_kept == "not kept: 7 steps"
