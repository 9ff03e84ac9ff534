from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import exchange
from evalmeta.engine.scorers.actions import (
    action_scorer,
    common_length,
    score_max_actions,
    score_not_actions,
    similarity,
)
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import ActionMatch

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Scorer

NAMES = st.lists(st.sampled_from("ABCD"), max_size=12)


def judge(expected: str | None, *taken: str, match: ActionMatch = "exact") -> TestResult:
    generated = GeneratedData("", actions=tuple(map(Action, taken)))
    return action_scorer(match)(Expectation("action_sequence_match", expected), exchange(generated))


def test_the_same_actions_in_the_same_order_pass() -> None:
    result = judge("['A', \"B\"]", "A", "B")
    assert (result.verdict, result.score, result.detail) == (Verdict.PASS, 1.0, 1.0)
    assert result.expected == result.actual == "['A', 'B']"


def test_an_empty_list_means_that_none_were_taken() -> None:
    assert judge("[]").verdict is Verdict.PASS
    assert judge("[]", "A").verdict is Verdict.FAILURE


@pytest.mark.parametrize("match", get_args(ActionMatch))
@pytest.mark.parametrize("expected", ["[]", "['A']"])
def test_actions_that_the_agent_does_not_report_are_undecided(expected: str, match: ActionMatch) -> None:
    expectation = Expectation("action_sequence_match", expected)
    result = action_scorer(match)(expectation, exchange(GeneratedData("Sent.")))
    assert (result.verdict, result.expected, result.actual) == (Verdict.UNDECIDED, expected, "")
    assert result.explanation.startswith("the agent does not report its actions")


@pytest.mark.parametrize(
    ("taken", "explanation"),
    [
        (("A",), "missing: B, C"),
        (("A", "B", "C", "D"), "extra: D"),
        (("A", "B", "B", "C"), "extra: B"),
        (("C", "A", "D"), "missing: B; extra: D; order: C before A"),
        (("B", "A", "C"), "order: B before A"),
        ((), "missing: A, B, C"),
    ],
)
def test_a_difference_is_explained(taken: tuple[str, ...], explanation: str) -> None:
    result = judge("['A','B','C']", *taken)
    assert (result.verdict, result.score, result.explanation) == (Verdict.FAILURE, 0.0, explanation)


def test_the_detail_is_the_partial_score() -> None:
    assert judge("['A','B','C']", "A", "C").detail == 0.8
    assert judge("['A']", "B").detail == 0.0


def test_a_list_that_cannot_be_read_is_an_error() -> None:
    result = judge("A, B", "A", "B")
    assert result.verdict is Verdict.ERROR
    assert "['A', 'B']" in result.explanation


def test_without_expected_actions_nothing_is_decided() -> None:
    result = judge(None, "A")
    assert (result.verdict, result.score, result.actual) == (Verdict.UNDECIDED, None, "['A']")


@given(NAMES, NAMES)
def test_every_difference_has_an_explanation(wanted: list[str], taken: list[str]) -> None:
    result = judge(repr(wanted), *taken)
    assert (result.verdict is Verdict.PASS) == (wanted == taken)
    assert result.explanation


@pytest.mark.parametrize(
    ("taken", "modes"),
    [
        ("AB", {"exact", "in_order", "any_order", "superset", "subset"}),
        ("XAYB", {"in_order", "superset"}),
        ("BA", {"any_order", "superset", "subset"}),
        ("BAX", {"superset"}),
        ("ABB", {"in_order", "superset"}),
        ("B", {"subset"}),
        ("", {"subset"}),
        ("AX", set()),
    ],
)
def test_every_rule_passes_what_it_documents(taken: str, modes: set[str]) -> None:
    results = {match: judge("['A', 'B']", *taken, match=match) for match in get_args(ActionMatch)}
    assert {match for match, result in results.items() if result.verdict is Verdict.PASS} == modes
    assert len({result.detail for result in results.values()}) == 1


@pytest.mark.parametrize(("match", "passed"), [("in_order", True), ("superset", True), ("any_order", False)])
def test_an_empty_list_passes_if_extra_actions_are_allowed(match: ActionMatch, *, passed: bool) -> None:
    result = judge("[]", "A", match=match)
    assert result.verdict is (Verdict.PASS if passed else Verdict.FAILURE)
    assert result.explanation == ("as expected; extra (allowed): A" if passed else "extra: A")


@pytest.mark.parametrize(
    ("match", "taken", "explanation"),
    [
        ("in_order", "CAD", "missing: B; extra (allowed): D; order: C before A"),
        ("in_order", "ABXC", "as expected; extra (allowed): X"),
        ("any_order", "CAD", "missing: B; extra: D; order (allowed): C before A"),
        ("any_order", "CAB", "as expected; order (allowed): C before A"),
        ("superset", "CAD", "missing: B; extra (allowed): D; order (allowed): C before A"),
        ("superset", "XCAB", "as expected; extra (allowed): X; order (allowed): C before A"),
        ("subset", "CAD", "missing (allowed): B; extra: D; order (allowed): C before A"),
        ("subset", "C", "as expected; missing (allowed): A, B"),
    ],
)
def test_allowed_differences_are_marked(match: ActionMatch, taken: str, explanation: str) -> None:
    assert judge("['A','B','C']", *taken, match=match).explanation == explanation


def test_repeated_actions_in_the_wrong_order_have_their_position() -> None:
    assert judge("['A','B','A']", *"AAB").explanation == "order: action 2 is A, not B"
    assert judge("['A','B','A']", *"XAAB", match="in_order").explanation == (
        "extra (allowed): X; order: A does not come after A, B"
    )


@given(NAMES, NAMES)
def test_the_ways_of_matching_agree_with_each_other(wanted: list[str], taken: list[str]) -> None:
    results = {match: judge(repr(wanted), *taken, match=match) for match in get_args(ActionMatch)}
    passed = {match for match, result in results.items() if result.verdict is Verdict.PASS}
    assert ("exact" in passed) == (wanted == taken)
    assert ("any_order" in passed) == ({"superset", "subset"} <= passed)
    assert ("in_order" in passed) == (common_length(wanted, taken) == len(wanted))
    assert "in_order" not in passed or "superset" in passed
    for result in results.values():
        counts = any(f"{word}: " in result.explanation for word in ("missing", "extra", "order"))
        assert (result.verdict is Verdict.FAILURE) == counts


def _table(left: list[str], right: list[str]) -> int:
    row = [0] * (len(right) + 1)
    for one in left:
        previous = row[:]
        for place, other in enumerate(right, 1):
            row[place] = previous[place - 1] + 1 if one == other else max(previous[place], row[place - 1])
    return row[-1]


@given(NAMES, NAMES)
def test_the_common_length_is_that_of_the_textbook(left: list[str], right: list[str]) -> None:
    assert common_length(left, right) == _table(left, right)


@given(NAMES, NAMES)
def test_similarity_is_symmetric_and_between_0_and_1(left: list[str], right: list[str]) -> None:
    assert 0 <= similarity(left, right) == similarity(right, left) <= 1
    assert (similarity(left, right) == 1) == (left == right)


def test_an_expectation_can_have_its_own_rule() -> None:
    generated = GeneratedData("", actions=(Action("A"), Action("B")))
    superset = Expectation("action_sequence_match", "['B']", terms={"match": "superset"})
    assert action_scorer("exact")(superset, exchange(generated)).verdict is Verdict.PASS


def limited(scorer: Scorer, value: str, *names: str, unknown: bool = False) -> TestResult:
    answer = GeneratedData("", actions=None if unknown else tuple(map(Action, names)))
    result = scorer(Expectation("a", value), exchange(answer))
    assert isinstance(result, TestResult)
    return result


@pytest.mark.parametrize(
    ("pattern", "names", "explanation"),
    [
        ("Delete_*", ("Get", "delete_all"), ""),
        ("Delete_*", ("Get", "Delete_A", "Delete_B", "Delete_A"), "the agent took Delete_A, Delete_B"),
        ("Get", ("Get_Order",), ""),
        ("Get_?", ("Get_1",), "the agent took Get_1"),
        ("*", (), ""),
    ],
)
def test_forbidden_actions_are_patterns_of_names(pattern: str, names: tuple[str, ...], explanation: str) -> None:
    result = limited(score_not_actions, pattern, *names)
    assert (result.verdict is Verdict.FAILURE) == bool(explanation)
    assert result.explanation == (explanation or f"the agent took no action {pattern}")


def test_actions_are_counted() -> None:
    assert limited(score_max_actions, "2", "A", "A").verdict is Verdict.PASS
    result = limited(score_max_actions, "2", "A", "A", "B")
    assert (result.verdict, result.explanation) == (Verdict.FAILURE, "3 actions, at most 2 expected")


def test_forbidden_and_counted_actions_that_are_not_reported_are_undecided() -> None:
    for scorer, value in ((score_not_actions, "A"), (score_max_actions, "0")):
        assert limited(scorer, value, unknown=True).verdict is Verdict.UNDECIDED
