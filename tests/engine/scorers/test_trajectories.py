from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import exchange
from evalmeta.engine.scorers.trajectories import calls_scorer, score_trajectory
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.definition import Expectation
from evalmeta.model.expectations import render_actions
from evalmeta.model.expected_calls import ExpectedCall
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import ActionMatch

if TYPE_CHECKING:
    from collections.abc import Iterable

MODES = ("EXACT", "IN_ORDER", "ANY_ORDER")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5, "1", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
CALLS = st.lists(st.tuples(st.sampled_from("AB"), st.dictionaries(st.just("x"), JSON, max_size=1)), max_size=5)


def judge(wanted: object, *taken: tuple[str, dict[str, object]], **terms: object) -> TestResult:
    calls = [{"name": name, "args": args} for name, args in wanted] if isinstance(wanted, list) else wanted
    expectation = Expectation("tool_trajectory_avg_score", terms={"calls": calls, "threshold": 1.0, **terms})
    generated = GeneratedData("", actions=tuple(Action(name, args) for name, args in taken))
    return score_trajectory(expectation, exchange(generated))


@pytest.mark.parametrize("mode", MODES)
def test_no_calls_are_undecided_if_the_agent_does_not_report_them_and_leave_the_mean_undecided(mode: str) -> None:
    terms = {"calls": [], "threshold": 1.0, "match_type": mode}
    expectation = Expectation("tool_trajectory_avg_score", terms=terms)
    result = score_trajectory(expectation, exchange(GeneratedData("Sent.")))
    assert (result.verdict, result.score, result.threshold) == (Verdict.UNDECIDED, None, 1.0)
    assert case_verdict([result, judge([], mode=mode)]) is Verdict.UNDECIDED


@pytest.mark.parametrize("mode", MODES)
def test_expected_calls_that_the_agent_does_not_report_were_not_made(mode: str) -> None:
    terms = {"calls": [{"name": "A", "args": {}}], "threshold": 1.0, "match_type": mode}
    result = score_trajectory(Expectation("tool_trajectory_avg_score", terms=terms), exchange(GeneratedData("Sent.")))
    assert (result.verdict, result.score, result.expected) == (Verdict.FAILURE, 0.0, "[A()]")
    assert result.explanation.startswith("the agent does not report its actions")


def named(names: str) -> list[tuple[str, dict[str, object]]]:
    return [(name, {}) for name in names]


@pytest.mark.parametrize(
    ("wanted", "taken", "modes"),
    [
        ("", "", {"EXACT", "IN_ORDER", "ANY_ORDER"}),
        ("", "A", {"IN_ORDER", "ANY_ORDER"}),
        ("A", "", set()),
        ("AB", "AB", {"EXACT", "IN_ORDER", "ANY_ORDER"}),
        ("AB", "XAYBZ", {"IN_ORDER", "ANY_ORDER"}),
        ("AB", "BA", {"ANY_ORDER"}),
        ("AB", "ABB", {"IN_ORDER", "ANY_ORDER"}),
        ("ABB", "AB", set()),
        ("ABA", "AAB", {"ANY_ORDER"}),
        ("AB", "AC", set()),
    ],
)
def test_every_rule_passes_what_it_documents(wanted: str, taken: str, modes: set[str]) -> None:
    results = {mode: judge(named(wanted), *named(taken), match_type=mode) for mode in MODES}
    assert {mode for mode, result in results.items() if result.verdict is Verdict.PASS} == modes
    assert all(result.score == float(mode in modes) for mode, result in results.items())
    assert all(result.explanation for result in results.values())


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, 0, False),
        ([True], [1], False),
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ("1", 1, False),
        (None, False, False),
        ([], {}, False),
        (["list", 1], [["list", 1]], False),
    ],
)
def test_arguments_are_compared_as_json(one: object, other: object, *, are_same: bool) -> None:
    for mode in MODES:
        result = judge([("A", {"x": one})], ("A", {"x": other}), match_type=mode)
        assert result.verdict is (Verdict.PASS if are_same else Verdict.FAILURE)
        assert result.detail == float(are_same)


def test_a_missing_argument_is_not_null() -> None:
    assert judge([("A", {})], ("A", {"x": None})).explanation == "A.input.x: not expected, got null"


def test_arguments_can_be_ignored() -> None:
    result = judge([("A", {"x": 1})], ("A", {"x": 2}), ignore_args=True)
    assert (result.verdict, result.explanation) == (
        Verdict.PASS,
        "the calls are as expected; arguments are not compared",
    )


def test_ids_are_ignored_and_arguments_can_be() -> None:
    for calls in ([{"name": "A", "id": "call-1"}], [{"name": "A", "args": None}]):
        assert judge(tuple(calls), ("A", {})).verdict is Verdict.PASS


def test_calls_are_shown_as_people_write_them() -> None:
    result = judge([("roll_die", {"sides": 6, "to": "x"}), ("f", {})], ("check", {"nums": [1, {"a": True}]}))
    assert result.expected == 'roll_die(sides=6, to="x")\nf()\n-'
    assert result.actual == '-\n-\ncheck(nums=[1, {"a": true}])'
    assert len(judge([], ("A", {"x": "y" * 10_000})).actual) < 200


@pytest.mark.parametrize(
    ("wanted", "taken", "mode", "explanation"),
    [
        ("A", "A", "EXACT", "the calls are as expected"),
        ("", "", "EXACT", "no calls were expected"),
        ("", "A", "EXACT", "unexpected: A()"),
        ("", "A", "IN_ORDER", "no calls were expected; unexpected (allowed): A()"),
        ("AB", "A", "EXACT", "missing: B()"),
        ("AB", "AC", "EXACT", "missing: B(); unexpected: C()"),
        ("AB", "BA", "EXACT", "call 1 is B(), not A()"),
        ("ABC", "ACXB", "IN_ORDER", "order: C() does not come after A(), B(); unexpected (allowed): X()"),
        ("AB", "AX", "IN_ORDER", "missing: B(); unexpected (allowed): X()"),
        ("ABB", "BA", "ANY_ORDER", "missing: B()"),
        ("AB", "XBA", "ANY_ORDER", "the calls are as expected; unexpected (allowed): X()"),
    ],
)
def test_a_difference_is_explained(wanted: str, taken: str, mode: str, explanation: str) -> None:
    assert judge(named(wanted), *named(taken), match_type=mode).explanation == explanation


@pytest.mark.parametrize(
    ("wanted", "taken", "text"),
    [
        ({"sides": 6}, {"sides": 8}, "roll.input.sides: expected 6, got 8"),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, True]}}, "roll.input.a.b[1]: expected 2, got true"),
        ({"a": "1"}, {"a": 1}, 'roll.input.a: expected "1", got 1'),
        ({"a": 1}, {"b": 1}, "roll.input.a: expected 1, but it is missing; roll.input.b: not expected, got 1"),
        ({"a": [1]}, {"a": [1, 2]}, "roll.input.a: expected 1 item, got 2: [1, 2]"),
    ],
)
def test_the_argument_that_differs_is_named_and_how(wanted: object, taken: object, text: str) -> None:
    result = judge([("A", {}), ("roll", wanted)], ("A", {}), ("roll", taken))
    assert result.explanation == text
    assert judge([("roll", wanted)], ("roll", taken), match_type="ANY_ORDER").explanation == text


def test_the_detail_is_the_partial_score() -> None:
    assert judge([("A", {}), ("B", {"x": 1})], ("A", {}), ("B", {"x": 2})).detail == 0.5


def test_the_mean_of_a_case_decides() -> None:
    result = judge(named("A"), *named("B"), threshold=0.5)
    assert (result.verdict, result.score, result.threshold) == (Verdict.FAILURE, 0.0, 0.5)


def test_without_expected_calls_nothing_is_decided() -> None:
    result = judge(None, ("A", {}))
    assert (result.verdict, result.score, result.threshold) == (Verdict.UNDECIDED, None, None)
    assert (result.explanation, result.actual) == ("the turn does not say which calls are expected", "[A()]")


def test_missing_calls_count_as_none_where_the_terms_say_so() -> None:
    assert judge(None, ("A", {}), missing="empty").verdict is Verdict.FAILURE
    assert judge(None, missing="empty").verdict is Verdict.PASS


@pytest.mark.parametrize("calls", ["A", 3, {"name": "A"}, (1,), ({"args": {}},), ({"name": "A", "args": [1]},)])
def test_calls_that_cannot_be_read_are_an_error(calls: object) -> None:
    result = judge(calls)
    assert result.verdict is Verdict.ERROR
    assert '"name"' in result.explanation


@pytest.mark.parametrize("match_type", ["exact", 0, None])
def test_an_unknown_way_of_matching_is_an_error(match_type: object) -> None:
    result = judge([], match_type=match_type)
    assert result.verdict is Verdict.ERROR
    assert "EXACT, IN_ORDER, ANY_ORDER" in result.explanation


def test_long_lists_are_shortened() -> None:
    explanation = judge(named("A" * 500), *named("B" * 500)).explanation
    assert explanation.count("and 490 more") == 2
    assert len(explanation) < 300


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return one == other


@given(CALLS, CALLS)
def test_every_failure_explains_the_difference(
    wanted: list[tuple[str, dict[str, object]]], taken: list[tuple[str, dict[str, object]]]
) -> None:
    results = {mode: judge(wanted, *taken, match_type=mode) for mode in MODES}
    same = len(wanted) == len(taken) and all(
        one == other and _is_same(args, others) for (one, args), (other, others) in zip(wanted, taken, strict=True)
    )
    passed = {mode for mode, result in results.items() if result.verdict is Verdict.PASS}
    assert ("EXACT" in passed) == same == (results["EXACT"].detail == 1)
    assert "EXACT" not in passed or "IN_ORDER" in passed
    assert "IN_ORDER" not in passed or "ANY_ORDER" in passed
    for result in results.values():
        text = {part.partition(":")[0] for part in result.explanation.split("; ")}
        assert result.verdict is Verdict.PASS or text - {"unexpected (allowed)", "the calls are as expected"}


def expect(calls: list[object], *made: Action, mode: ActionMatch | None = None, unknown: bool = False) -> TestResult:
    terms = {"calls": calls, **({"match": mode} if mode else {})}
    names = render_actions(str(call["name"] if isinstance(call, dict) else call) for call in calls)
    expectation = Expectation("action_sequence_match", names, terms=terms)  # type: ignore[arg-type]
    answer = GeneratedData("", actions=None if unknown else made)
    result = calls_scorer()(expectation, exchange(answer))
    assert isinstance(result, TestResult)
    return result


def a(number: int) -> Action:
    return Action("A", {"id": number})


def wanted(*numbers: int) -> list[object]:
    return [{"name": "A", "input": {"id": number}} for number in numbers]


AT_LEAST_1: dict[str, object] = {"name": "A", "input": {"id": {"at_least": 1}}}


@pytest.mark.parametrize(
    ("calls", "made", "modes"),
    [
        (wanted(1, 2), [a(1), a(2)], {"exact", "in_order", "any_order", "superset", "subset"}),
        (wanted(1, 2), [a(2), a(1)], {"any_order", "superset", "subset"}),
        (wanted(1, 2), [a(1), a(3), a(2)], {"in_order", "superset"}),
        (wanted(1, 2), [a(2)], {"subset"}),
        (wanted(1), [a(2)], set()),
        # The first call would also do for the first expected one, which leaves the second without a call.
        ([AT_LEAST_1, *wanted(1)], [a(1), a(2)], {"any_order", "superset", "subset"}),
        ([AT_LEAST_1, *wanted(1)], [a(1)], {"subset"}),
        ([AT_LEAST_1, *wanted(1)], [a(2), a(2)], set()),
        ([AT_LEAST_1, AT_LEAST_1, *wanted(2)], [a(2), a(1), a(3)], {"any_order", "superset", "subset"}),
        (["A", *wanted(2)], [a(1), a(2)], {"exact", "in_order", "any_order", "superset", "subset"}),
    ],
)
def test_calls_match_one_to_one_in_every_mode(calls: list[object], made: list[Action], modes: set[str]) -> None:
    verdicts = {mode: expect(calls, *made, mode=mode).verdict for mode in get_args(ActionMatch)}
    assert {mode for mode, verdict in verdicts.items() if verdict is Verdict.PASS} == modes
    assert {verdicts[mode] for mode in verdicts.keys() - modes} <= {Verdict.FAILURE}


def test_an_agent_that_does_not_report_its_actions_is_undecided_in_every_mode() -> None:
    for mode in get_args(ActionMatch):
        assert expect(wanted(1), mode=mode, unknown=True).verdict is Verdict.UNDECIDED


def test_arguments_that_an_agent_does_not_report_are_undecided_unless_the_failure_is_certain() -> None:
    unreported = expect(wanted(1), Action("A"))
    assert unreported.verdict is Verdict.UNDECIDED
    assert unreported.explanation == "the agent does not report A.input, so the calls cannot be compared"
    assert expect(wanted(1), Action("B")).verdict is Verdict.FAILURE
    assert expect(wanted(1, 2), Action("A"), a(3)).verdict is Verdict.FAILURE
    assert expect(wanted(1, 2), Action("A"), a(2)).verdict is Verdict.UNDECIDED
    assert expect([{"name": "A", "output": 1}], a(1)).verdict is Verdict.UNDECIDED


def test_a_failure_shows_each_call_beside_the_expected_one() -> None:
    calls: list[object] = ["Login", *wanted(10045), {"name": "Send", "input": {"to": {"matches": "@"}}}]
    result = expect(calls, Action("Login"), a(10046), Action("Log_Out"))
    assert result.expected.splitlines() == ["Login()", "A(id=10045)", "Send(to=a text that matches @)", "-"]
    assert result.actual.splitlines() == ["Login()", "A(id=10046)", "-", "Log_Out()"]
    assert result.explanation == (
        "A.input.id: expected 10045, got 10046; missing: Send(to=a text that matches @); unexpected: Log_Out()"
    )


def test_calls_that_are_made_in_another_order_are_named() -> None:
    result = expect(wanted(1, 2), a(2), a(1))
    assert result.explanation == "call 1 is A(id=2), not A(id=1)"
    assert (result.expected, result.actual) == ("A(id=1)\nA(id=2)", "A(id=2)\nA(id=1)")


def test_calls_of_terms_that_cannot_be_compared_are_an_error() -> None:
    result = expect([{"name": "A", "input": {"x": {"type": "y"}}}], a(1))
    assert (result.verdict, '"y" is not a type of JSON' in result.explanation) == (Verdict.ERROR, True)


def test_many_calls_are_matched_in_time() -> None:
    result = expect([AT_LEAST_1] * 200, *map(a, range(200)), mode="any_order")
    assert (result.verdict, result.explanation) == (Verdict.FAILURE, "A.input.id: expected at least 1, got 0")


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often calls are compared (`fits`), and how often their differences are written (`differences`)."""
    counts: Counter[str] = Counter()

    def counted(name: str) -> None:
        method = getattr(ExpectedCall, name)

        def counting(self: ExpectedCall, call: Action, *, is_known: bool) -> object:
            counts[name] += 1
            return method(self, call, is_known=is_known)

        monkeypatch.setattr(ExpectedCall, name, counting)

    counted("fits")
    counted("differences")
    return counts


@pytest.mark.parametrize("mode", ["EXACT", "IN_ORDER", "ANY_ORDER"])
@pytest.mark.parametrize("numbers", [[1] * 300, range(300)], ids=["equal", "different"])
def test_as_many_recorded_calls_are_compared_as_were_made(
    numbers: Iterable[int], mode: str, compared: Counter[str]
) -> None:
    calls = [("A", {"x": number}) for number in numbers]
    result = judge(calls, *calls, match_type=mode)
    assert (result.verdict, result.detail, result.explanation) == (Verdict.PASS, 1.0, "the calls are as expected")
    assert compared == {"fits": 300}


@pytest.mark.parametrize("mode", get_args(ActionMatch))
def test_as_many_calls_are_compared_as_were_made(mode: ActionMatch, compared: Counter[str]) -> None:
    result = expect([AT_LEAST_1] * 300, *map(a, range(1, 301)), mode=mode)
    assert (result.verdict, result.detail) == (Verdict.PASS, 1.0)
    assert compared == {"fits": 300}


def test_differences_are_written_only_for_the_calls_that_are_shown(compared: Counter[str]) -> None:
    result = expect(wanted(*range(30)), *map(a, range(100, 130)))
    assert result.explanation.count("expected") == compared["differences"] == 10
