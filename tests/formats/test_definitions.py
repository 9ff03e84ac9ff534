from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers import score
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.document import Document
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    TestCase,
)
from evalmeta.model.evaluation import Case, Evaluation, Quarantine, Turn
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.systems.adk.config import read_test_config
from evalmeta.systems.adk.reader import read_adk
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.reader import read_xml
from systems.adk.adkfiles import GREETING, MULTI_TURN, STATEFUL, case, eval_set, turn

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


def converted(data: bytes) -> tuple[Definition, list[str]]:
    definition, losses = definition_of(read_adk(data, label="t", name="Weather"), subject_name="Agent")
    return definition, [str(loss) for loss in losses]


def of_case(*turns: Turn, **more: object) -> tuple[Definition, list[str]]:
    document = Document(Evaluation("n", "s", (Case(1, turns, **more),)))  # type: ignore[arg-type]
    definition, losses = definition_of(document)
    return definition, [str(loss) for loss in losses]


def argument(name: str, path: str, value: str) -> Expectation:
    """Return the comparison that a text argument of a call becomes."""
    reference = f"$.generatedData.invokedActions[*][?(@.function.name=='{name}')].function.input.{path}"
    parameters = (
        Parameter("operator", "equals", is_reference=False),
        Parameter("actual", reference, is_reference=True),
        Parameter("expected", value, is_reference=False),
    )
    return Expectation("string_comparison", label=f"argument {path} of {name}", parameters=parameters)


def judged(expectation: Expectation, *actions: Action) -> Verdict:
    result = score(expectation, exchange(GeneratedData("x", actions=actions)))
    assert isinstance(result, TestResult)
    return result.verdict


def test_turns_become_test_cases_with_what_was_said_as_their_history() -> None:
    definition, losses = converted(eval_set(MULTI_TURN))

    assert definition == Definition(
        "Weather",
        "Agent",
        test_cases=(
            TestCase(
                Inputs("What is the weather in London?"),
                (
                    argument("get_weather", "city", "London"),
                    Expectation("action_sequence_match", "['get_weather']"),
                    Expectation("bot_response_rating", "The weather in London is sunny, 22°C."),
                ),
                1,
            ),
            TestCase(
                Inputs(
                    "What about Tokyo?",
                    (),
                    (
                        HistoryMessage("user", "What is the weather in London?", None, 0),
                        HistoryMessage("agent", "The weather in London is sunny, 22°C.", None, 1),
                    ),
                ),
                (
                    argument("get_weather", "city", "Tokyo"),
                    Expectation("action_sequence_match", "['get_weather']"),
                    Expectation("bot_response_rating", "The weather in Tokyo is cloudy, 18°C."),
                ),
                2,
            ),
        ),
    )
    assert losses == [
        "definition: that calls have no other arguments than the expected ones",
        (
            "definition: the metric 'response_match_score' and its threshold 0.8; its expected answer is judged as"
            " bot_response_rating"
        ),
        "test case 1: its name 'multi-turn-test'",
    ]


@pytest.mark.parametrize(
    ("args", "checks", "lost"),
    [
        ({"a": 1, "b": "x", "c": True}, [("a", "1"), ("b", "x"), ("c", "true")], []),
        ({"a": {"b": [1.5, {"c d": "x"}]}}, [("a.b[0]", "1.5"), ("a.b[1]['c d']", "x")], []),
        ({"a": None}, [], ["a"]),
        ({"a": "", "b": [], "c": {}}, [], ["a", "b", "c"]),
        ({"a": "x" * 101}, [], ["a"]),
        ({"a": "x\x01"}, [], ["a"]),
        ({"it's": 1}, [], ["['it's']"]),
        ({}, [], []),
    ],
)
def test_arguments_of_calls_become_comparisons_or_are_named(
    args: dict[str, object], checks: list[tuple[str, str]], lost: list[str]
) -> None:
    expected = Expectation("tool_trajectory_avg_score", terms={"calls": [{"name": "f", "args": args}]})  # type: ignore[dict-item]
    definition, losses = of_case(Turn("a", (expected,)))
    [case] = definition.test_cases
    assert [(each.label, each.parameters[2].value) for each in case.expectations[:-1]] == [
        (f"argument {path} of f", value) for path, value in checks
    ]
    assert losses == [
        "definition: that calls have no other arguments than the expected ones",
        *(f"test case 1: the argument {path} of 'f', which no comparison can hold" for path in lost),
    ]
    for expectation in case.expectations[:-1]:
        agent = Action("f", {**args, "more": 1})  # type: ignore[dict-item]
        assert judged(expectation, agent) is Verdict.PASS
        assert judged(expectation, Action("f", {"a": 2, "b": "y"})) is Verdict.FAILURE


def test_arguments_of_calls_of_one_name_are_named_as_lost() -> None:
    calls: list[JsonValue] = [{"name": "f", "args": {"a": 1}}, {"name": "f", "args": {"a": 2}}]
    definition, losses = of_case(
        Turn("a", (Expectation("action_sequence_match", "['f', 'f']", terms={"calls": calls}),))
    )
    assert definition.test_cases[0].expectations == (Expectation("action_sequence_match", "['f', 'f']"),)
    assert "test case 1: the arguments of its 2 calls of 'f'; their names are kept" in losses


def test_expected_arguments_of_a_spec_become_comparisons_and_what_no_comparison_holds_is_named() -> None:
    given: JsonValue = {
        "id": 7,
        "to": {"contains": "@"},
        "amount": {"at_least": 5, "at_most": 7, "type": "integer"},
        "filter": {"equals": {"type": "x"}},
        "at": {"any": True},
    }
    calls: list[JsonValue] = [{"name": "f", "input": given, "error": False}, {"name": "g", "input": {}, "exact": True}]
    expectation = Expectation("action_sequence_match", "['f', 'g']", terms={"calls": calls, "match": "any_order"})
    definition, losses = of_case(Turn("a", (expectation,)))
    [case] = definition.test_cases
    values = [tuple(parameter.value for parameter in made.parameters) for made in case.expectations[:-1]]
    path = "$.generatedData.invokedActions[*][?(@.function.name=='f')].function.input"
    assert values == [
        ("equals", f"{path}.id", "7"),
        ("contains", f"{path}.to", "@"),
        ("greater_than_or_equal", f"{path}.amount", "5"),
        ("less_than_or_equal", f"{path}.amount", "7"),
    ]
    assert case.expectations[-1] == Expectation("action_sequence_match", "['f', 'g']")
    assert losses == [
        "definition: that calls have no other arguments than the expected ones",
        "test case 1: that the actions are matched as any_order; set it with --actions any_order",
        "test case 1: the error of 'f', which no comparison can hold",
        "test case 1: the argument amount of 'f' (type), which no comparison can hold",
        "test case 1: the argument filter of 'f', which no comparison can hold",
        "test case 1: the argument at of 'f' (any), which no comparison can hold",
    ]


def test_arguments_that_are_ignored_are_no_loss() -> None:
    expected = Expectation(
        "tool_trajectory_avg_score", terms={"calls": [{"name": "f", "args": {"a": 1}}], "ignore_args": True}
    )
    assert of_case(Turn("a", (expected,)))[1] == []


def test_the_state_of_a_session_becomes_context_variables() -> None:
    definition, losses = converted(eval_set(STATEFUL))

    assert definition.test_cases[0].inputs.context_variables == (
        ContextVariable("account_balance", "1250"),
        ContextVariable("account_type", "checking"),
    )
    assert "test case 1: the type of the state 'account_balance', which is written as text" in losses


def test_a_turn_without_an_answer_is_no_history() -> None:
    definition, losses = converted(eval_set(case("case-1", turn("a"), turn("b", "B"), turn("c", "C"))))

    assert [
        [each.message for each in test_case.inputs.conversation_history] for test_case in definition.test_cases
    ] == [[], [], ["b", "B"]]
    assert "test case 2: the turn before it, 'a', because its answer is unknown" in losses


def test_a_recorded_answer_is_history() -> None:
    definition, losses = of_case(Turn("a", recorded=GeneratedData("A")), Turn("b"))

    assert [each.message for each in definition.test_cases[1].inputs.conversation_history] == ["a", "A"]
    assert losses == ["test case 1: its recorded answer"]


def test_what_definitions_expect_too_is_kept_as_it_is() -> None:
    expected = Expectation("topic_sequence_match", "Orders", label="L")
    definition, losses = of_case(Turn("a", (expected, Expectation("coherence"))))

    assert definition.test_cases[0].expectations == (expected, Expectation("coherence"))
    assert losses == []


def calls(**terms: object) -> Expectation:
    return Expectation("tool_trajectory_avg_score", terms={"calls": [{"name": "a", "args": {}}], **terms})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expectations", "found"),
    [
        ([Expectation("safety_v1")], "definition: the metric 'safety_v1', for which definitions have no expectation"),
        (
            [calls(match_type="IN_ORDER", ignore_args=True)],
            "definition: the match type IN_ORDER of 'tool_trajectory_avg_score'; set it with --actions",
        ),
        (
            [calls(threshold=0.5, ignore_args=True)],
            "definition: the threshold 0.5 of 'tool_trajectory_avg_score'; every test case is judged on its own",
        ),
        (
            [Expectation("response/llm_judged/correctness/rating", terms={"facts": ["x"]})],
            "test case 1: the facts that 'response/llm_judged/correctness/rating' expects",
        ),
        (
            [Expectation("bot_response_rating", "a", terms={"threshold": 4.0})],
            "test case 1: the threshold 4.0 of 'bot_response_rating'; set it with --threshold",
        ),
        (
            [Expectation("action_sequence_match", "[]", terms={"match": "exact"})],
            "test case 1: that the actions must match exactly; set it with --actions exact",
        ),
        (
            [Expectation("contains", "on its way", 'contains "on its way"')],
            "test case 1: that 'contains \"on its way\"' ignores typographic signs and spaces; a definition does not",
        ),
        (
            [Expectation("equals", "Paris", "equals", terms={"empty": True})],
            "test case 1: that an empty answer is valid (empty: true)",
        ),
        (
            [Expectation("bot_response_rating", "a"), Expectation("output_validation", "b")],
            "test case 1: the expectation 'output_validation'; a test case can have only one of its kind",
        ),
    ],
)
def test_every_loss_of_an_expectation_is_named(expectations: list[Expectation], found: str) -> None:
    assert of_case(Turn("a", tuple(expectations)))[1] == [found]


@pytest.mark.parametrize(
    "check", [Expectation("contains", "Paris"), Expectation("equals", "the «way»", terms={"exact": True})]
)
def test_a_check_that_a_definition_judges_the_same_is_no_loss(check: Expectation) -> None:
    assert of_case(Turn("a", (check,)))[1] == []


def test_every_loss_of_a_case_is_named() -> None:
    same = (ContextVariable("a", "1"),)
    kept = {"tags": ("slow",), "label": "row 2", "quarantine": Quarantine("flaky", date(2027, 1, 31))}
    losses = of_case(Turn("x\x01"), context_variables=same, state={"a": "2"}, **kept)[1]

    assert losses == [
        "test case 1: its name 'row 2'",
        "test case 1: its tags slow",
        "test case 1: its quarantine until 2027-01-31; list it in evalmeta.toml: [[quarantine]]",
        "test case 1: the character U+0001, which XML cannot hold",
        "test case 1: the state 'a'; a context variable has the same name",
    ]


def test_how_often_and_what_passes_is_named() -> None:
    document = Document(Evaluation("n", "s", ()), iterations=3, min_pass_rate=0.8)

    assert [str(each) for each in definition_of(document)[1]] == [
        "definition: the number of iterations; run it with --iterations 3",
        "definition: the minimum pass rate 0.8; run it with --min-pass-rate",
    ]


def test_how_often_a_case_runs_is_named() -> None:
    cases = (Case(1, (Turn("a"), Turn("b")), iterations=5), Case(2, (Turn("c"),)))
    losses = definition_of(Document(Evaluation("n", "s", cases)))[1]
    assert "test case 1: its number of iterations; run it with --iterations 5" in map(str, losses)
    assert "iterations" not in "".join(str(loss) for loss in losses if loss.where != "test case 1")


def test_what_was_converted_is_a_definition_that_can_be_deployed() -> None:
    config = read_test_config(json.dumps({"criteria": {"response_match_score": 0.5}}).encode(), label="c")
    document = read_adk(eval_set(GREETING, STATEFUL), label="t", name="Weather", config=config)
    definition, _ = definition_of(document)
    content = write_definition(definition)

    assert read_definition(read_xml(content, label="t")) == definition
    assert list(validate_component(definition.type, content, label="t", full_name="Weather")) == []


def test_metadata_has_histories_that_keep_its_rules() -> None:
    history = tuple(
        HistoryMessage(role, text, None, place)
        for place, (role, text) in enumerate(
            [("system", "Be kind."), ("agent", "Hello!"), ("user", "a"), ("user", "b"), ("agent", "B"), ("user", "c")]
        )
    )
    document = Document(Evaluation("Weather", "Agent", (Case(1, (Turn("d", (Expectation("coherence"),)),), history),)))
    definition, losses = definition_of(document, is_metadata=True)

    assert definition.test_cases[0].inputs.conversation_history == (
        HistoryMessage("user", "b", None, 0),
        HistoryMessage("agent", "B", "unknown", 1),
    )
    assert list(validate_component(definition.type, write_definition(definition), label="t", full_name="Weather")) == []
    assert [loss.what for loss in losses] == [
        "the system message 'Be kind.' of the history, which has only pairs of question and answer",
        "the agent message 'Hello!' of the history, which has only pairs of question and answer",
        "the user message 'a' of the history, which has only pairs of question and answer",
        "the user message 'c' of the history, which has only pairs of question and answer",
        "the missing topic of an answer in the history; it is written as 'unknown'",
    ]


def test_the_topic_that_a_turn_expects_is_that_of_its_answer() -> None:
    first = Turn("a", (Expectation("topic_sequence_match", "Orders"),), GeneratedData("A"))
    definition, _ = of_case(first, Turn("b"))

    assert [each.topic for each in definition.test_cases[1].inputs.conversation_history] == [None, "Orders"]
