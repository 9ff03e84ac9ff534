from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.builders import criterion, exchange
from evalmeta import limits
from evalmeta.engine.references import compile_reference, resolve
from evalmeta.engine.scorers import score
from evalmeta.engine.scorers.comparisons import Criterion, comparison_scorer, criterion_of, json_scorer
from evalmeta.model.checks import comparison_of
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.generated_data import Action, GeneratedData, reference_root
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import Matches

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue

ACTIONS = (
    Action("Find", {"id": "001xx", "count": 3, "flags": {"b": True, "a": None}}, {"rows": [1, 2, 2]}, 120.5),
    Action("Find", {"id": "002xx", "count": 3}),
)
EXCHANGE = exchange(GeneratedData("Hello World", "Orders", ACTIONS))
OUTCOME = "$.generatedData.outcome"
FIRST = "$.generatedData.invokedActions[0][0]"
ALL = "$.generatedData.invokedActions[*][?(@.function.name == 'Find')].function.input"


def judge(name: str, operator: str, actual: str, expected: str, *, reference: bool = True) -> TestResult:
    return comparison_scorer()(criterion(name, operator, actual, expected, reference=reference), EXCHANGE)


@pytest.mark.parametrize(
    ("operator", "expected", "passed"),
    [
        ("equals", "Hello World", True),
        ("equals", "hello world", False),
        ("equals", "Hello", False),
        ("contains", "lo Wo", True),
        ("contains", "lo wo", False),
        ("startswith", "Hello", True),
        ("startswith", "World", False),
        ("endswith", "World", True),
        ("endswith", "WORLD", False),
    ],
)
def test_string_operators_are_case_sensitive(operator: str, expected: str, *, passed: bool) -> None:
    result = judge("string_comparison", operator, OUTCOME, expected)
    assert result.verdict is (Verdict.PASS if passed else Verdict.FAILURE)
    assert (result.score, result.expected, result.actual) == (float(passed), expected, "Hello World")
    assert (result.label, result.explanation.endswith(repr(expected))) == ("a label", True)


@pytest.mark.parametrize(
    ("operator", "holds_for"),
    [
        ("equals", {"120.5", "120.50", "1205e-1"}),
        ("greater_than_or_equal", {"120.5", "120.50", "1205e-1", "-7"}),
        ("greater_than", {"-7"}),
        ("less_than", {"4000"}),
        ("less_than_or_equal", {"120.5", "120.50", "1205e-1", "4000"}),
    ],
)
def test_numeric_operators_compare_numbers(operator: str, holds_for: set[str]) -> None:
    values = ["120.5", "120.50", "1205e-1", "-7", "4000"]
    results = {value: judge("numeric_comparison", operator, f"{FIRST}.executionLatency", value) for value in values}
    assert {value for value, result in results.items() if result.verdict is Verdict.PASS} == holds_for


def test_both_values_can_be_references() -> None:
    parameters = (
        Parameter("operator", "equals"),
        Parameter("actual", OUTCOME, True),
        Parameter("expected", OUTCOME, True),
    )
    assert (
        comparison_scorer()(Expectation("string_comparison", parameters=parameters), EXCHANGE).verdict is Verdict.PASS
    )


def test_both_values_can_be_literals() -> None:
    assert judge("string_comparison", "equals", OUTCOME, OUTCOME, reference=False).verdict is Verdict.PASS


def test_other_values_compare_as_canonical_json() -> None:
    assert judge("string_comparison", "equals", f"{FIRST}.function.input.flags", '{"a":null,"b":true}').score == 1.0
    assert judge("string_comparison", "equals", f"{FIRST}.function.output.rows", "[1,2,2]").score == 1.0


def test_a_reference_that_can_never_match_is_an_error_that_says_why() -> None:
    result = judge("string_comparison", "equals", "$.generatedData.latencyMs", "1")
    assert result.verdict is Verdict.ERROR
    reason = "actual: the reference can never match: $.generatedData has no member latencyMs; it has type, "
    assert (result.error or "").startswith(reason)


SEVERAL = "; the reference of actual has 2 matches: "


@pytest.mark.parametrize(
    ("matches", "expected", "verdict", "explanation"),
    [
        ("first", "001", Verdict.PASS, f"'001xx' starts with '001'{SEVERAL}only the first counts"),
        ("first", "002", Verdict.FAILURE, f"'001xx' does not start with '002'{SEVERAL}only the first counts"),
        ("any", "002", Verdict.PASS, f"'002xx' starts with '002'{SEVERAL}it holds for 1, one is enough"),
        ("any", "003", Verdict.FAILURE, f"'001xx' does not start with '003'{SEVERAL}it holds for 0, one is enough"),
        ("all", "00", Verdict.PASS, f"'001xx' starts with '00'{SEVERAL}it holds for 2, all must"),
        ("all", "001", Verdict.FAILURE, f"'002xx' does not start with '001'{SEVERAL}it holds for 1, all must"),
    ],
)
def test_the_setting_matches_says_which_values_must_hold(
    matches: Matches, expected: str, verdict: Verdict, explanation: str
) -> None:
    expectation = criterion("string_comparison", "startswith", f"{ALL}.id", expected)
    result = comparison_scorer(matches)(expectation, EXCHANGE)
    assert (result.verdict, result.explanation) == (verdict, explanation)
    assert repr(result.actual) == explanation.split(maxsplit=1)[0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(0, 3))
def test_any_and_all_mean_what_python_means(values: list[int], expected: int) -> None:
    made = exchange(GeneratedData("", actions=(Action("Find", {"values": values}),)))
    expectation = criterion("numeric_comparison", "equals", f"{FIRST}.function.input.values[*]", str(expected))
    passed = {
        matches: comparison_scorer(matches)(expectation, made).verdict is Verdict.PASS for matches in get_args(Matches)
    }
    holding = [value == expected for value in values]
    assert passed == {"first": holding[0], "any": any(holding), "all": all(holding)}


def test_of_several_expected_values_the_first_counts_and_is_said_to() -> None:
    parameters = (
        Parameter("operator", "equals"),
        Parameter("actual", f"{FIRST}.function.input.id", True),
        Parameter("expected", f"{ALL}.id", True),
    )
    result = comparison_scorer()(Expectation("string_comparison", parameters=parameters), EXCHANGE)
    assert result.verdict is Verdict.PASS
    assert result.explanation.endswith("; the reference of expected has 2 matches: the first counts")


def test_a_null_fails_and_is_shown() -> None:
    result = judge("string_comparison", "contains", f"{FIRST}.function.input.flags.a", "ul")
    assert (result.verdict, result.explanation) == (Verdict.FAILURE, "the actual value is null, expected 'ul'")


def expected_by_reference(reference: str, name: str = "string_comparison") -> Expectation:
    parameters = (
        Parameter("operator", "equals"),
        Parameter("actual", OUTCOME, True),
        Parameter("expected", reference, True),
    )
    return Expectation(name, parameters=parameters)


@pytest.mark.parametrize(
    ("name", "reference", "explanation"),
    [
        ("string_comparison", f"{FIRST}.function.input.flags.a", "the expected value is null: there is nothing "),
        ("numeric_comparison", f"{FIRST}.function.input.id", "the expected value is not a number: '001xx'"),
        ("string_comparison", f"{FIRST}.function.input.total", "the reference of expected matches nothing: "),
    ],
)
def test_an_expected_value_that_the_agent_did_not_supply_is_a_failure(
    name: str, reference: str, explanation: str
) -> None:
    result = comparison_scorer()(expected_by_reference(reference, name), EXCHANGE)
    assert result.verdict is Verdict.FAILURE
    assert result.explanation.startswith(explanation)


SEND = "$.generatedData.invokedActions[*][?(@.function.name == 'Send')].function"
NAMED = (Action("Send"), Action("Find"))


@pytest.mark.parametrize(
    ("reference", "actions", "verdict", "explanation"),
    [
        (f"{SEND}.input.to", (), Verdict.FAILURE, f"{SEND}.input.to; the agent took no action"),
        (f"{SEND}.input.to", ACTIONS, Verdict.FAILURE, f"{SEND}.input.to; the agent took Find"),
        (f"{SEND}.input.to", (Action("Send", {"cc": "x"}),), Verdict.FAILURE, "; the agent took Send"),
        ("$.generatedData.actionsSequence[2]", NAMED, Verdict.FAILURE, "; the agent took Send, Find"),
        (f"{SEND}.input.to", NAMED, Verdict.UNDECIDED, "does not report more than the names of its actions"),
        (
            f"{SEND}.output.id",
            (Action("Send", {"to": "x"}),),
            Verdict.UNDECIDED,
            "not report the output of its actions",
        ),
        (f"{SEND}.input.output", (Action("Send", {"to": "x"}),), Verdict.FAILURE, "; the agent took Send"),
        (f"{SEND}.output.id", (Action("Send", {}, {"a": 1}),), Verdict.FAILURE, "; the agent took Send"),
        (f"{FIRST}.executionLatency", NAMED, Verdict.UNDECIDED, "does not report the latency of its actions"),
        (f"{FIRST}.executionLatency", (), Verdict.FAILURE, "; the agent took no action"),
    ],
)
def test_a_reference_that_matches_nothing_fails_unless_the_agent_does_not_report_it(
    reference: str, actions: tuple[Action, ...], verdict: Verdict, explanation: str
) -> None:
    expectation = criterion("string_comparison", "equals", reference, "me")
    result = comparison_scorer()(expectation, exchange(GeneratedData("", actions=actions)))
    assert (result.verdict, result.expected, result.error) == (verdict, "me", None)
    assert result.explanation.endswith(explanation)


@pytest.mark.parametrize(("member", "words"), [("topic", "its topic"), ("sessionId", "its session id")])
def test_a_member_that_the_agent_does_not_report_is_undecided(member: str, words: str) -> None:
    expectation = criterion("string_comparison", "equals", f"$.generatedData.{member}", "x")
    result = comparison_scorer()(expectation, exchange(GeneratedData("")))
    assert (result.verdict, result.explanation) == (Verdict.UNDECIDED, f"the agent does not report {words}")


@pytest.mark.parametrize(("actions", "text"), [((), "[]"), (NAMED, "['Send', 'Find']")])
def test_the_list_of_actions_compares_as_the_text_that_orgs_return(actions: tuple[Action, ...], text: str) -> None:
    expectation = criterion("string_comparison", "equals", "$.generatedData.actionsSequence", text)
    assert comparison_scorer()(expectation, exchange(GeneratedData("", actions=actions))).verdict is Verdict.PASS


def test_actions_can_be_counted() -> None:
    assert judge("numeric_comparison", "equals", "$.generatedData.actionsSequence.length()", "2").score == 1.0


def test_a_reference_that_matches_too_much_is_an_error() -> None:
    many = Action("Find", {"rows": list(range(limits.MAX_REFERENCE_MATCHES + 1))})
    expectation = criterion("numeric_comparison", "equals", f"{FIRST}.function.input.rows[*]", "1")
    result = comparison_scorer()(expectation, exchange(GeneratedData("", actions=(many,))))
    assert (result.error or "").startswith("actual: the reference matches more than")


@given(st.builds(GeneratedData, st.text(), st.text(), session_id=st.text()))
def test_members_that_are_read_directly_are_what_the_reference_matches(generated: GeneratedData) -> None:
    for member in ("outcome", "generatedResponse", "topic", "sessionId"):
        text = f"$.generatedData.{member}"
        ready = criterion_of("string_comparison", criterion("string_comparison", "equals", text, "").parameters)
        assert isinstance(ready, Criterion)
        assert ready.actual(generated) == resolve(compile_reference(text), reference_root(generated))


@pytest.mark.parametrize("reference", [OUTCOME, f"{FIRST}.function.input.flags.b", f"{FIRST}.function.output.rows"])
def test_an_actual_value_that_is_not_a_number_fails_and_is_shown(reference: str) -> None:
    result = judge("numeric_comparison", "equals", reference, "1")
    assert result.verdict is Verdict.FAILURE
    assert "the actual value is not a number" in result.explanation


@pytest.mark.parametrize(
    ("name", "operator", "actual", "expected", "complaint"),
    [
        ("numeric_comparison", "equals", OUTCOME, "many", "the expected value is not a number: 'many'"),
        ("numeric_comparison", "contains", OUTCOME, "1", "'contains' is not a valid operator of numeric_comparison"),
        ("string_comparison", "startsWith", OUTCOME, "x", "Did you mean startswith?"),
        ("numeric_comparison", ">=", OUTCOME, "1", "Did you mean greater_than_or_equal?"),
        ("string_comparison", "==", OUTCOME, "x", "Did you mean equals?"),
        ("string_comparison", "not_equals", OUTCOME, "x", "Write what is expected instead: no operator negates."),
        ("string_comparison", "!=", OUTCOME, "x", "Write what is expected instead: no operator negates."),
        ("string_comparison", "equals", "$.outcome.max()", "x", "actual: the reference uses the function `.max()`"),
    ],
)
def test_an_invalid_criterion_is_an_error(name: str, operator: str, actual: str, expected: str, complaint: str) -> None:
    result = judge(name, operator, actual, expected)
    assert result.verdict is Verdict.ERROR
    assert complaint in result.explanation


@pytest.mark.parametrize("reference", ["$.generatedData['outcome','topic']", "$.generatedData[*]"])
def test_references_to_several_members_at_once_are_followed(reference: str) -> None:
    result = judge("string_comparison", "equals", reference, "x")
    assert "matches: only the first counts" in result.explanation


def test_a_missing_parameter_is_an_error_that_names_it() -> None:
    result = comparison_scorer()(Expectation("string_comparison", parameters=(Parameter("actual", "x"),)), EXCHANGE)
    assert result.error == "the parameter operator and expected is missing"


@given(st.text(), st.text())
def test_string_operators_agree_with_each_other(actual: str, expected: str) -> None:
    def holds(operator: str) -> bool:
        return judge("string_comparison", operator, actual, expected, reference=False).verdict is Verdict.PASS

    assert holds("equals") <= (holds("startswith") and holds("endswith"))
    assert (holds("startswith") or holds("endswith")) <= holds("contains")


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
def test_numbers_of_any_size_are_compared_exactly(actual: int, expected: int) -> None:
    def holds(operator: str) -> bool:
        return (
            judge("numeric_comparison", operator, str(actual), str(expected), reference=False).verdict is Verdict.PASS
        )

    assert [holds("less_than"), holds("equals"), holds("greater_than")] == [
        actual < expected,
        actual == expected,
        actual > expected,
    ]


@pytest.mark.parametrize(
    "reference",
    [
        "$.generatedData.actionsSequence",
        "$.generatedData.invokedActions",
        "$.generatedData.invokedActions[*][?(@.function.name == 'Find')].function.input.id",
        "$.generatedData..executionLatency",
    ],
)
def test_a_reference_into_actions_that_the_agent_does_not_report_is_undecided(reference: str) -> None:
    expectation = criterion("string_comparison", "equals", reference, "[]")
    result = comparison_scorer()(expectation, exchange(GeneratedData("Sent.")))
    assert (result.verdict, result.explanation) == (Verdict.UNDECIDED, "the agent does not report its actions")


ANSWER = '{"city": "Paris", "people": 2100000, "tags": ["old", "big"], "mayor": null, "open": true}'


def check(path: str, **operator: object) -> Expectation:
    [(name, expected)] = operator.items() or [("", None)]
    terms = {"path": path, **({"operator": name, "expected": expected} if name else {})}
    return Expectation("json", label=f"json {path} {name} {expected}", terms=terms)  # type: ignore[arg-type]


def judge_json(expectation: Expectation, answer: str = ANSWER, actions: tuple[Action, ...] | None = None) -> TestResult:
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
    assert judge_json(expectation).verdict is verdict


def test_the_whole_answer_is_compared_as_json_and_not_as_text() -> None:
    assert judge_json(check("$", equals={"a": 1, "b": [2]}), '{"b": [2],\n "a": 1}').verdict is Verdict.PASS


def test_json_in_a_code_block_is_not_json_and_the_failure_says_so() -> None:
    result = judge_json(check("$.a", equals=1), '```json\n{"a": 1}\n```\n')
    assert result.verdict is Verdict.FAILURE
    assert result.explanation == "the answer is not valid JSON: it is in a code block of Markdown (fenced: true)"


VALUES = st.one_of(st.text(max_size=3), st.integers(-9, 9), st.booleans(), st.lists(st.integers(0, 2), max_size=2))


@given(VALUES, VALUES, st.sampled_from(["equals", "at_least", "less_than"]))
def test_a_definition_made_from_a_check_judges_the_same(actual: JsonValue, expected: JsonValue, operator: str) -> None:
    assume(operator == "equals" or type(expected) is int)
    expectation = check("$.a", **{operator: expected})
    answer = exchange(GeneratedData(json.dumps({"a": actual})))
    comparison = comparison_of(expectation)
    assert comparison is not None
    assert json_scorer()(expectation, answer).verdict is comparison_scorer()(comparison, answer).verdict  # type: ignore[union-attr]


ORDER: JsonValue = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("answer", "path", "explanation"),
    [
        ('{"id": 7}', "$", "$ is as the schema requires"),
        ('{"id": "7"}', "$", '$.id: expected type "integer", got "7"'),
        ('{"order": {}}', "$.order", "$.order: expected the key 'id', got {}"),
        ('{"order": []}', "$.order", '$.order: expected type "object", got []'),
    ],
)
def test_a_schema_names_the_path_and_what_was_expected_there(answer: str, path: str, explanation: str) -> None:
    result = judge_json(check(path, schema=ORDER), answer)
    assert result.explanation == explanation
    assert result.verdict is (Verdict.PASS if "requires" in explanation else Verdict.FAILURE)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ('{"a": 1}', Verdict.PASS),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', Verdict.PASS),
        ('```\n{"a": 1}\n```', Verdict.PASS),
        ('```json\n{"a": 2}\n```', Verdict.FAILURE),
        ('```python\na = 1\n```\n```json\n{"a": 1}\n```', Verdict.PASS),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', Verdict.FAILURE),
        ("```python\na = 1\n```", Verdict.FAILURE),
        ("Paris", Verdict.FAILURE),
    ],
)
def test_json_in_a_code_block_is_read_on_request(answer: str, verdict: Verdict) -> None:
    expectation = check("$.a", equals=1)
    fenced = replace(expectation, terms={**expectation.terms, "fenced": True})
    assert judge_json(fenced, answer).verdict is verdict
    assert comparison_of(fenced) is None


def test_an_answer_that_is_not_json_fails_and_says_so() -> None:
    result = judge_json(check("$.a", equals=1), "Paris")
    assert (result.verdict, result.actual) == (Verdict.FAILURE, "Paris")
    assert result.explanation.startswith("the answer is not valid JSON: ")


def test_an_answer_that_is_nested_too_deep_fails_and_says_so() -> None:
    result = judge_json(check("$[0]"), f"{'[' * 300}{']' * 300}")
    assert (result.verdict, result.explanation) == (Verdict.FAILURE, "the answer is JSON that is nested too deep")


def test_a_path_that_matches_nothing_is_named_as_it_was_written() -> None:
    assert judge_json(check("$.country", equals="x")).explanation == "$.country matches nothing in the answer"


def test_a_path_into_all_that_the_agent_returned_needs_what_it_reports() -> None:
    expectation = check("$.generatedData.actionsSequence", contains="Find")
    assert judge_json(expectation, "text").verdict is Verdict.UNDECIDED
    assert judge_json(expectation, "text", (Action("Find"),)).verdict is Verdict.PASS


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
