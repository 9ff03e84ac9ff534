from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalmeta.plugins
from evalmeta.engine.references import parse_number
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.expectations import NUMERIC_OPERATORS, OPERATORS, STRING_OPERATORS, known_names
from evalmeta.validation.case_rules import (
    find_actions_unreadable,
    find_expected_blank,
    find_number_invalid,
    find_operator_unknown,
    find_parameter_missing,
    find_parameter_twice,
    find_parameter_unknown,
    find_parameter_unused,
    find_reference_invalid,
    find_reference_unreachable,
    find_unknown_name,
    find_value_missing,
    find_value_unused,
)
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalmeta.validation.rule import Finding

VALUES = ("topic_sequence_match", "bot_response_rating", "topic_assertion", "output_validation")
ACTIONS = ("action_sequence_match", "actions_assertion")
QUALITY = ("coherence", "completeness", "conciseness", "factuality", "instruction_following", "instruction_adherence")
CUSTOM = ("string_comparison", "numeric_comparison")


def custom(name: str, *pairs: tuple[str, str], by_reference: bool | None = None) -> Expectation:
    return Expectation(name, parameters=tuple(Parameter(key, value, by_reference) for key, value in pairs))


def said(find: Callable[[Expectation], Iterator[Finding]], expectation: Expectation) -> list[str]:
    return [finding.message for finding in find(expectation)]


def hint(find: Callable[[Expectation], Iterator[Finding]], expectation: Expectation) -> str:
    (finding,) = find(expectation)
    return finding.hint


@pytest.mark.parametrize("name", known_names())
def test_every_name_of_both_vocabularies_is_known(name: str) -> None:
    assert said(find_unknown_name, Expectation(name)) == []


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("string_comparisson", "Did you mean string_comparison?"),
        ("Topic_Sequence_Match", "Did you mean topic_sequence_match?"),
        ("actions_assertions", "Did you mean actions_assertion?"),
        ("", "Known: "),
        (" ", "Known: "),
        ("x" * 5_000_000, "Known: "),
    ],
    ids=["misspelt", "case", "plural", "empty", "blank", "huge"],
)
def test_an_unknown_name_leads_to_the_nearest_one(name: str, right: str) -> None:
    assert hint(find_unknown_name, Expectation(name)).startswith(right)


@pytest.mark.parametrize("name", [*VALUES, *ACTIONS])
def test_a_comparison_needs_a_value(name: str) -> None:
    assert said(find_value_missing, Expectation(name)) == [f"{name} has no <expectedValue>"]
    assert said(find_value_missing, Expectation(name, "v")) == []


@pytest.mark.parametrize("name", VALUES)
def test_a_blank_is_nothing_to_compare_with(name: str) -> None:
    assert said(find_value_missing, Expectation(name, " \n")) == [f"{name} has an empty <expectedValue>"]


@pytest.mark.parametrize("name", ACTIONS)
def test_a_blank_list_of_actions_is_reported_once(name: str) -> None:
    assert said(find_value_missing, Expectation(name, " ")) == []
    assert said(find_actions_unreadable, Expectation(name, " ")) == ["'' is not a list of actions"]


@pytest.mark.parametrize("name", [*QUALITY, *CUSTOM, "output_latency_milliseconds", "unknown"])
def test_nothing_else_needs_a_value(name: str) -> None:
    assert said(find_value_missing, Expectation(name)) == []


@pytest.mark.parametrize("name", [*QUALITY, *CUSTOM])
def test_a_value_that_is_not_used_is_reported(name: str) -> None:
    assert said(find_value_unused, Expectation(name, "v")) == [f"{name} does not use <expectedValue>"]


@pytest.mark.parametrize("name", [*VALUES, *ACTIONS, "output_latency_milliseconds", "unknown"])
def test_a_value_that_may_be_read_is_not_reported(name: str) -> None:
    assert said(find_value_unused, Expectation(name, "v")) == []


@pytest.mark.parametrize("value", ["['A']", "[]", '["A"]', "['A','B']", "\n [ 'A' ,\n 'B' ]\n", "[&#39;A&#39;]"])
def test_every_spelling_of_a_list_of_actions_is_read(value: str) -> None:
    assert said(find_actions_unreadable, Expectation("actions_assertion", value)) == []


@pytest.mark.parametrize("value", ["A", "[A]", "['A'", "['A' 'B']", "('A')", "['A'], []", "{}"])
def test_an_invalid_list_of_actions_is_shown(value: str) -> None:
    assert said(find_actions_unreadable, Expectation("action_sequence_match", value)) == [
        f"{value!r} is not a list of actions"
    ]


def test_only_actions_are_read_as_actions() -> None:
    assert said(find_actions_unreadable, Expectation("topic_assertion", "A")) == []
    assert said(find_actions_unreadable, Expectation("actions_assertion")) == []


@pytest.mark.parametrize("name", CUSTOM)
def test_every_missing_parameter_is_reported(name: str) -> None:
    found = said(find_parameter_missing, custom(name, ("actual", "a")))
    assert found == [f"{name} has no parameter {missing!r}" for missing in ("operator", "expected")]


def test_only_custom_criteria_need_parameters() -> None:
    assert said(find_parameter_missing, Expectation("coherence")) == []
    assert said(find_parameter_missing, Expectation("unknown")) == []


@pytest.mark.parametrize("name", [*VALUES, *ACTIONS, *QUALITY])
def test_parameters_that_is_not_used_are_reported_once(name: str) -> None:
    found = said(find_parameter_unused, custom(name, ("operator", "equals"), ("actual", "a")))
    assert found == [f"{name} does not use <parameter>"]


@pytest.mark.parametrize("name", [*CUSTOM, "unknown"])
def test_parameters_that_may_be_read_are_not_reported(name: str) -> None:
    assert said(find_parameter_unused, custom(name, ("operator", "equals"))) == []


@pytest.mark.parametrize(
    ("name", "right"), [("Operator", "Did you mean operator?"), ("", "Known: "), ("tolerance", "Known: ")]
)
def test_an_unknown_parameter_leads_to_the_nearest_one(name: str, right: str) -> None:
    assert hint(find_parameter_unknown, custom("string_comparison", ("actual", "a"), (name, "v"))).startswith(right)


def test_a_parameter_that_comes_again_is_shown() -> None:
    expectation = custom("string_comparison", ("actual", "a"), ("actual", "a"), ("operator", "o"), ("actual", "b"))
    assert [finding.steps[0] for finding in find_parameter_twice(expectation)] == [("parameter", 1), ("parameter", 3)]


@pytest.mark.parametrize(
    ("name", "operators"), [("string_comparison", STRING_OPERATORS), ("numeric_comparison", NUMERIC_OPERATORS)]
)
def test_operators_belong_to_their_comparison(name: str, operators: tuple[str, ...]) -> None:
    for operator in operators:
        assert said(find_operator_unknown, custom(name, ("operator", f" {operator}\n"))) == []


@pytest.mark.parametrize(
    ("name", "operator", "message"),
    [
        ("string_comparison", "startsWith", "'startsWith' is not an operator of string_comparison"),
        ("string_comparison", "not_equals", "'not_equals' is not an operator of string_comparison"),
        ("string_comparison", "less_than", "'less_than' is an operator of numeric_comparison, not string_comparison"),
        ("numeric_comparison", "contains", "'contains' is an operator of string_comparison, not numeric_comparison"),
        ("numeric_comparison", "", "'' is not an operator of numeric_comparison"),
    ],
)
def test_an_operator_that_does_not_belong_is_reported(name: str, operator: str, message: str) -> None:
    assert said(find_operator_unknown, custom(name, ("operator", operator))) == [message]


@pytest.mark.parametrize("operator", ["not_equals", "!=", "<>", "notContains", "does_not_contain", "ne", "isnt"])
@pytest.mark.parametrize("name", OPERATORS)
def test_no_operator_is_suggested_for_its_opposite(name: str, operator: str) -> None:
    told = hint(find_operator_unknown, custom(name, ("operator", operator)))
    assert told == f"Write what is expected instead: no operator negates. Known: {', '.join(OPERATORS[name])}."


@pytest.mark.parametrize(
    ("name", "operator", "right"),
    [
        ("string_comparison", "==", "Did you mean equals?"),
        ("string_comparison", "starts_with", "Did you mean startswith?"),
        ("numeric_comparison", ">=", "Did you mean greater_than_or_equal?"),
        ("numeric_comparison", "lessThan", "Did you mean less_than?"),
        ("string_comparison", ">", "Use numeric_comparison with greater_than, or one of equals, "),
        ("numeric_comparison", "contains", "Use string_comparison with contains, or one of equals, "),
        ("string_comparison", "matches", "Known: equals, "),
    ],
)
def test_an_operator_of_another_language_leads_to_ours(name: str, operator: str, right: str) -> None:
    assert hint(find_operator_unknown, custom(name, ("operator", operator))).startswith(right)


def test_no_operator_is_missed_where_none_belongs() -> None:
    assert said(find_operator_unknown, custom("coherence", ("operator", "x"))) == []
    assert said(find_operator_unknown, custom("string_comparison", ("actual", "x"))) == []


@pytest.mark.parametrize("number", ["5", " -0.25\n", "+1", "1e3", ".5", "5."])
def test_numbers_are_numbers(number: str) -> None:
    assert said(find_number_invalid, custom("numeric_comparison", ("actual", number), ("expected", number))) == []


@pytest.mark.parametrize(
    "number", ["", "four", "1_0", "1,5", "NaN", "inf", "0x1", "\uff11", "$.x", "5 %", f"1e{10**20}"]
)
def test_an_invalid_number_is_shown(number: str) -> None:
    found = said(find_number_invalid, custom("numeric_comparison", ("operator", "x"), ("expected", number)))
    assert found == [f"the parameter 'expected' is {number!r}, which is not a number"]


def test_texts_and_references_need_not_be_numbers() -> None:
    assert said(find_number_invalid, custom("string_comparison", ("expected", "four"))) == []
    assert said(find_number_invalid, custom("numeric_comparison", ("actual", "$.x"), by_reference=True)) == []


@given(st.text(st.sampled_from("0123456789.+-eE_ ,infa\u0661"), max_size=30))
def test_the_rule_and_the_engine_read_the_same_numbers(text: str) -> None:
    refused = bool(said(find_number_invalid, custom("numeric_comparison", ("expected", text))))
    assert refused is (parse_number(text) is None)


def test_only_references_are_read_as_references() -> None:
    assert said(find_reference_invalid, custom("string_comparison", ("actual", "$.a["))) == []
    assert said(find_reference_invalid, custom("string_comparison", ("actual", "$.a["), by_reference=False)) == []


@pytest.mark.parametrize("reference", ["", "outcome", "{gs.response}", "$.a.max()", "$.a[?(@.b =~ 'x')]", "$.a["])
def test_a_reference_that_cannot_be_followed_is_reported_at_its_value(reference: str) -> None:
    pairs = (("actual", "$.generatedData.outcome"), ("expected", reference))
    (finding,) = find_reference_invalid(custom("string_comparison", *pairs, by_reference=True))
    assert finding.steps == (("parameter", 1), ("value", 0))


@pytest.mark.parametrize("operator", ["contains", "startswith", "endswith", "equals"])
@pytest.mark.parametrize("expected", ["", "x"])
def test_an_operator_that_always_holds_is_reported(operator: str, expected: str) -> None:
    found = said(find_expected_blank, custom("string_comparison", ("operator", operator), ("expected", expected)))
    always = operator != "equals" and not expected
    assert found == [f"{operator} with an empty expected value always passes"] * always


def test_a_reference_that_can_never_match_is_reported_with_the_wrong_step() -> None:
    wrong = custom("string_comparison", ("actual", "$.generatedData.latencyMs"), by_reference=True)
    (message,) = said(find_reference_unreachable, wrong)
    assert message.startswith("the reference can never match: $.generatedData has no member latencyMs; it has ")
    for other in ("$.generatedData.outcome", "$.outcome", "$.a["):
        assert said(find_reference_unreachable, custom("string_comparison", ("actual", other), by_reference=True)) == []


def test_names_of_scorers_that_packages_add_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "scorers", "Courtesy = acme:courtesy", "")
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - what is installed does not change otherwise
    try:
        assert said(find_unknown_name, Expectation("Courtesy")) == []
    finally:
        evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - likewise
