from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.builders import exchange
from evalmeta.engine.scorers.answer_json import json_scorer
from evalmeta.engine.scorers.comparisons import comparison_scorer
from evalmeta.engine.scorers.registry import score
from evalmeta.model.checks import comparison_of
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run_options import Matches

ANSWER = '{"city": "Paris", "people": 2100000, "tags": ["old", "big"], "mayor": null, "open": true}'


def check(path: str, **operator: object) -> Expectation:
    [(name, expected)] = operator.items() or [("", None)]
    terms = {"path": path, **({"operator": name, "expected": expected} if name else {})}
    return Expectation("json", label=f"json {path} {name} {expected}", terms=terms)  # type: ignore[arg-type]


def judge(expectation: Expectation, answer: str = ANSWER, actions: tuple[Action, ...] | None = None) -> TestResult:
    result = score(expectation, exchange(GeneratedData(answer, actions=actions)))
    assert isinstance(result, TestResult)
    return result


@pytest.mark.parametrize(
    ("expectation", "verdict"),
    [
        (check("$.city", equals="Paris"), Verdict.PASS),
        (check("$.city", equals="Rome"), Verdict.FAILURE),
        (check("$.city", contains="ari"), Verdict.PASS),
        (check("$.people", equals=2_100_000), Verdict.PASS),
        (check("$.people", equals="2100000"), Verdict.PASS),
        (check("$.people", at_least=3_000_000), Verdict.FAILURE),
        (check("$.people", less_than=3_000_000), Verdict.PASS),
        (check("$.people", greater_than=2_100_000), Verdict.FAILURE),
        (check("$.people", at_most=2_100_000), Verdict.PASS),
        (check("$.city", at_most=1), Verdict.FAILURE),
        (check("$.tags", contains="old"), Verdict.PASS),
        (check("$.tags", contains="ol"), Verdict.FAILURE),
        (check("$.tags", equals=["old", "big"]), Verdict.PASS),
        (check("$.tags[0]", equals="old"), Verdict.PASS),
        (check("$.open", equals=True), Verdict.PASS),
        (check("$.mayor", equals=None), Verdict.PASS),
        (check("$.city", equals=None), Verdict.FAILURE),
        (check("$.city"), Verdict.PASS),
        (check("$.country"), Verdict.FAILURE),
        (check("$.country", equals="France"), Verdict.FAILURE),
    ],
    ids=lambda value: value.label if isinstance(value, Expectation) else str(value),
)
def test_a_value_in_the_answer_is_compared(expectation: Expectation, verdict: Verdict) -> None:
    assert judge(expectation).verdict is verdict


def test_the_whole_answer_is_compared_as_json_and_not_as_text() -> None:
    assert judge(check("$", equals={"a": 1, "b": [2]}), '{"b": [2],\n "a": 1}').verdict is Verdict.PASS


def test_json_in_a_code_block_is_not_json_and_the_failure_says_so() -> None:
    result = judge(check("$.a", equals=1), '```json\n{"a": 1}\n```\n')
    assert result.verdict is Verdict.FAILURE
    assert result.explanation == "the answer is not valid JSON: it is in a code block of Markdown"


VALUES = st.one_of(st.text(max_size=3), st.integers(-9, 9), st.booleans(), st.lists(st.integers(0, 2), max_size=2))


@given(VALUES, VALUES, st.sampled_from(["equals", "at_least", "less_than"]))
def test_a_definition_made_from_a_check_judges_the_same(actual: JsonValue, expected: JsonValue, operator: str) -> None:
    assume(operator == "equals" or type(expected) is int)
    expectation = check("$.a", **{operator: expected})
    answer = exchange(GeneratedData(json.dumps({"a": actual})))
    comparison = comparison_of(expectation)
    assert comparison is not None
    assert json_scorer()(expectation, answer).verdict is comparison_scorer()(comparison, answer).verdict  # type: ignore[union-attr]


def test_an_answer_that_is_not_json_fails_and_says_so() -> None:
    result = judge(check("$.a", equals=1), "Paris")
    assert (result.verdict, result.actual) == (Verdict.FAILURE, "Paris")
    assert result.explanation.startswith("the answer is not valid JSON: ")


def test_an_answer_that_is_nested_too_deep_fails_and_says_so() -> None:
    result = judge(check("$[0]"), f"{'[' * 300}{']' * 300}")
    assert (result.verdict, result.explanation) == (Verdict.FAILURE, "the answer is JSON that is nested too deep")


def test_a_path_that_matches_nothing_is_named_as_it_was_written() -> None:
    assert judge(check("$.country", equals="x")).explanation == "$.country matches nothing in the answer"


def test_a_path_into_all_that_the_agent_returned_needs_what_it_reports() -> None:
    expectation = check("$.generatedData.actionsSequence", contains="Find")
    assert judge(expectation, "text").verdict is Verdict.UNDECIDED
    assert judge(expectation, "text", (Action("Find"),)).verdict is Verdict.PASS


def test_which_of_several_values_counts_is_chosen_as_for_custom_criteria() -> None:
    answer = exchange(GeneratedData('{"prices": [5, 1]}'))
    expectation = check("$.prices[*]", at_least=2)
    assert json_scorer("first")(expectation, answer).verdict is Verdict.PASS
    assert json_scorer("all")(expectation, answer).verdict is Verdict.FAILURE


@pytest.mark.parametrize(
    ("expectation", "matches", "verdict", "end"),
    [
        (check("$.a[*]", at_least=2), "first", Verdict.PASS, "; the path has 2 matches: only the first counts"),
        (check("$.a[*]", at_least=2), "all", Verdict.FAILURE, "; the path has 2 matches: it holds for 1, all must"),
        (check("$.a[*]"), "first", Verdict.PASS, "$.a[*] is 5; the path has 2 matches: only the first counts"),
        (check("$.n[*]", equals=None), "first", Verdict.PASS, "; the path has 2 matches: only the first counts"),
        (
            check("$.n[*]", equals=None),
            "all",
            Verdict.FAILURE,
            "is 1; the path has 2 matches: it holds for 1, all must",
        ),
        (check("$.l[*]", contains="x"), "first", Verdict.FAILURE, "; the path has 2 matches: only the first counts"),
        (check("$.l[*]", contains="x"), "any", Verdict.PASS, "; the path has 2 matches: it holds for 1, one is enough"),
        (check("$.a[0]", at_least=2), "all", Verdict.PASS, "'5' is at least '2'"),
    ],
)
def test_a_path_with_several_values_says_which_of_them_count(
    expectation: Expectation, matches: Matches, verdict: Verdict, end: str
) -> None:
    answer = exchange(GeneratedData('{"a": [5, 1], "n": [null, 1], "l": [["y"], ["x"]]}'))
    found = json_scorer(matches)(expectation, answer)
    assert isinstance(found, TestResult)
    assert (found.verdict, found.explanation.endswith(end)) == (verdict, True), found.explanation
