from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings

from definitions import alike_definitions, mutations
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
)
from evalmeta.model.difference import Change, ChangeKind, compare
from evalmeta.model.registry import TESTING_DEFINITION

CASES = tuple(TestCase(Inputs(f"Question {number}"), number=number) for number in (1, 2, 3))
EXCHANGED = {ChangeKind.ADDED: "removed", ChangeKind.REMOVED: "added", ChangeKind.CHANGED: "changed"}


def of(*cases: TestCase) -> Definition:
    return Definition("A", "B", test_cases=cases)


def expecting(*expectations: Expectation) -> Definition:
    return of(replace(CASES[0], expectations=expectations))


def told(before: Definition, after: Definition) -> list[tuple[str, int | None, tuple[str, ...]]]:
    return [(change.kind.value, change.case, change.what) for change in compare(before, after)]


@settings(deadline=None)
@given(alike_definitions())
def test_a_definition_does_not_differ_from_itself(definition: Definition) -> None:
    assert compare(definition, replace(definition)) == ()


@settings(deadline=None)
@given(alike_definitions(), alike_definitions())
def test_no_difference_means_equal(before: Definition, after: Definition) -> None:
    assert (compare(before, after) == ()) == (before == after)


@settings(deadline=None)
@given(alike_definitions(), alike_definitions())
def test_swapping_the_definitions_reverses_the_changes(before: Definition, after: Definition) -> None:
    there = Counter(EXCHANGED[change.kind] for change in compare(before, after))
    back = Counter(change.kind.value for change in compare(after, before))

    assert there == back


@settings(deadline=None)
@given(alike_definitions())
def test_a_change_of_one_field_is_one_change_that_names_it(definition: Definition) -> None:
    for field, changed in mutations(definition):
        [change] = compare(definition, changed)

        assert change.what[-1] == field


def test_a_case_put_in_between_is_one_change() -> None:
    new = TestCase(Inputs("New"))
    cases = tuple(replace(case, number=None) for case in CASES)

    assert told(of(*cases), of(cases[0], new, *cases[1:])) == [("added", 2, ())]


def test_a_case_that_got_a_number_is_still_the_same() -> None:
    before = of(*(replace(case, number=None) for case in CASES))

    assert told(before, of(*CASES)) == [("added", number, ("number",)) for number in (1, 2, 3)]


def test_cases_are_the_same_by_number() -> None:
    after = (CASES[0], replace(CASES[1], inputs=Inputs("Other")), CASES[2])

    assert compare(of(*CASES), of(*after)) == (Change(ChangeKind.CHANGED, 2, ("utterance",), "Question 2", "Other"),)


def test_a_removed_case_is_reported_with_its_utterance() -> None:
    assert compare(of(*CASES), of(*CASES[:2])) == (Change(ChangeKind.REMOVED, 3, (), "Question 3", None),)


def test_a_different_order_alone_is_reported_as_such() -> None:
    assert compare(of(*CASES), of(*reversed(CASES))) == (
        Change(ChangeKind.CHANGED, None, ("order of test cases",), "1, 2, 3", "3, 2, 1"),
    )


def test_expectations_are_the_same_by_name_label_and_occurrence() -> None:
    one, two = (Expectation("string_comparison", label=label, expected_value=label) for label in ("one", "two"))
    again = replace(two, expected_value="again")

    changes = told(expecting(one, two, two), expecting(one, two, again))

    assert changes == [("changed", 1, ("expectation string_comparison 'two' #2", "expectedValue"))]


def test_the_later_name_of_an_expectation_is_the_same_expectation() -> None:
    before, after = (Expectation(name, name) for name in ("topic_sequence_match", "topic_assertion"))

    assert told(expecting(before), expecting(after)) == [
        ("changed", 1, ("expectation topic_sequence_match", field)) for field in ("expectedValue", "name")
    ]


def test_an_added_criterion_is_reported_with_its_parameters() -> None:
    parameters = (Parameter("operator", "equals"), Parameter("expected", "5"))
    new = Expectation("numeric_comparison", label="Five", parameters=parameters)

    [change] = compare(expecting(), expecting(new))

    assert change.what == ("expectation numeric_comparison 'Five'",)
    assert change.after == "operator equals, expected 5"


def test_a_changed_parameter_is_named() -> None:
    before, after = (Expectation("numeric_comparison", parameters=(Parameter("expected", text),)) for text in "56")

    assert compare(expecting(before), expecting(after)) == (
        Change(ChangeKind.CHANGED, 1, ("expectation numeric_comparison", "parameter expected", "value"), "5", "6"),
    )


def test_a_message_put_before_others_is_one_change_although_they_move() -> None:
    def after(*texts: str) -> Definition:
        history = tuple(HistoryMessage("user", text, index=place) for place, text in enumerate(texts))
        return of(TestCase(Inputs("Hi", conversation_history=history)))

    assert told(after("b", "c"), after("a", "b", "c")) == [("added", 1, ("conversationHistory 0",))]


def test_a_changed_context_variable_is_named() -> None:
    before, after = (of(TestCase(Inputs("Hi", (ContextVariable("Tier", tier),)))) for tier in ("Gold", "Silver"))

    assert compare(before, after) == (
        Change(ChangeKind.CHANGED, 1, ("contextVariable Tier", "variableValue"), "Gold", "Silver"),
    )


def test_changes_use_the_name_that_the_type_has_for_expectations() -> None:
    before, after = (
        replace(expecting(Expectation("response_match", value)), type=TESTING_DEFINITION) for value in ("one", "two")
    )
    assert told(before, after) == [("changed", 1, ("scorer response_match", "expectedValue"))]


def test_another_type_is_a_difference() -> None:
    assert told(of(), replace(of(), type=TESTING_DEFINITION)) == [("changed", None, ("type",))]


def test_a_case_of_a_prompt_template_is_reported_with_its_inputs() -> None:
    new = TestCase(Inputs("", prompt_inputs=(PromptInput("Input:Year", "1887"),)), number=4)
    [change] = compare(of(), of(new))
    assert (change.kind, change.after) == (ChangeKind.ADDED, "Input:Year 1887")
