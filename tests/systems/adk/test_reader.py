from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import FormatError
from evalmeta.formats.registry import recognise
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import SessionIds
from evalmeta.systems.adk.config import DEFAULT_CONFIG, AdkConfig, read_test_config
from evalmeta.systems.adk.reader import read_adk, read_adk_file
from systems.adk.adkfiles import (
    FULL,
    GREETING,
    LEGACY_PYTHON,
    LEGACY_TS,
    LONDON,
    MULTI_TURN,
    SEARCH,
    STATEFUL,
    case,
    eval_set,
    turn,
)

if TYPE_CHECKING:
    from evalmeta.formats.document import Document
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject

TRAJECTORY = {"threshold": 1.0, "match_type": "EXACT", "ignore_args": False}
OVERLAP = {"threshold": 0.8, "tokens": "unicode"}
WEATHER = {"name": "get_weather", "args": {"city": "London"}}


def read(data: bytes, config: AdkConfig = DEFAULT_CONFIG, dialect: str = "auto") -> Document:
    return read_adk(data, label="a.test.json", name="a", config=config, dialect=dialect)  # type: ignore[arg-type]


def cases(data: bytes, config: AdkConfig = DEFAULT_CONFIG, dialect: str = "auto") -> list[Case]:
    return list(read(data, config, dialect).evaluation.cases)


def config(**criteria: object) -> AdkConfig:
    return read_test_config(json.dumps({"criteria": criteria}).encode(), label="test_config.json")


def problems(data: bytes, dialect: str = "auto") -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(data, dialect=dialect)
    return [
        f"{problem.location} {problem.message} [{problem.code}] {problem.hint}".strip()
        for problem in caught.value.problems
    ]


def notes(document: Document) -> list[str]:
    return [f"{note.location} {note.message}" for note in document.notes]


def snake_case(data: bytes) -> bytes:
    return re.sub(
        rb'"[a-z]+([A-Z][a-z]+)+":', lambda key: re.sub(rb"[A-Z]", lambda hump: b"_" + hump[0].lower(), key[0]), data
    )


def test_the_full_example_expects_its_calls_and_its_answer() -> None:
    document = read(FULL)
    [found] = document.evaluation.cases

    assert (document.evaluation.name, document.evaluation.subject_name, document.notes) == ("a", "", ())
    assert (document.iterations, document.is_answered, document.lines) == (None, False, {1: 1})
    assert (found.number, found.label, found.turns[0].utterance) == (1, "case-1", "What is the weather in London?")
    assert found.turns[0].expectations == (
        Expectation(
            "tool_trajectory_avg_score", 'get_weather(city="London")', terms={**TRAJECTORY, "calls": [WEATHER]}
        ),
        Expectation("response_match_score", "The weather in London", terms=OVERLAP),
    )


@pytest.mark.parametrize("data", [FULL, eval_set(MULTI_TURN, STATEFUL, SEARCH)])
def test_both_spellings_read_to_the_same(data: bytes) -> None:
    assert snake_case(data) != data
    assert cases(snake_case(data)) == cases(data)


def expected(found: Case, turn: int = 0) -> tuple[object, object]:
    """Returns the calls and the answer that a turn expects; None for what the file does not say."""
    calls, answer = found.turns[turn].expectations
    return calls.terms["calls"], answer.expected_value


def test_every_default_criterion_has_a_result_even_if_the_turn_does_not_say_what_is_expected() -> None:
    greeting, search = cases(eval_set(GREETING, SEARCH))

    assert expected(greeting) == (None, "Hello! How can I help you today?")
    assert expected(search) == ([{"name": "web_search", "args": {"query": "TypeScript tutorials"}}], None)


def test_a_conversation_is_one_case_with_its_turns() -> None:
    [found] = cases(eval_set(MULTI_TURN))

    assert [each.utterance for each in found.turns] == ["What is the weather in London?", "What about Tokyo?"]
    assert found.turns[1].expectations[1].expected_value == "The weather in Tokyo is cloudy, 18°C."


def test_a_session_begins_with_its_state_and_names_the_agent() -> None:
    document = read(eval_set(STATEFUL, GREETING))
    [found, _] = document.evaluation.cases

    assert found.state == {"account_balance": 1250, "account_type": "checking"}
    assert document.evaluation.subject_name == "banking_app"


def test_cases_that_name_several_apps_name_no_agent() -> None:
    other = case("b", turn("Hi", "Hi"), session_input={"app_name": "other", "user_id": "u", "state": {}})

    assert read(eval_set(STATEFUL, other)).evaluation.subject_name == ""


def test_turns_without_an_answer_keep_the_others_with_theirs() -> None:
    mixed = case("m", turn("a"), turn("b", "B"), turn("c"), turn("d", "D"))
    [found] = cases(eval_set(mixed), config(response_match_score=0.5))

    assert [(each.utterance, each.expectations[0].expected_value) for each in found.turns] == [
        ("a", None),
        ("b", "B"),
        ("c", None),
        ("d", "D"),
    ]


def test_calls_are_read_from_events_too() -> None:
    parts = [{"text": "I look."}, {"function_call": {"id": "1", "name": "look", "args": {"at": 1}}}]
    events = {"invocation_events": [{"author": "a", "content": {"role": "model", "parts": parts}}, {"author": "a"}]}
    [found] = cases(eval_set(case("e", {**turn("Hi"), "intermediate_data": events})))

    assert found.turns[0].expectations[0].terms["calls"] == [{"name": "look", "args": {"at": 1}}]
    assert found.turns[0].expectations[0].expected_value == "look(at=1)"


def test_an_empty_list_of_tool_uses_expects_no_calls() -> None:
    [empty] = cases(eval_set(case("a", turn("Hi", "Hello", []))))

    assert empty.turns[0].expectations[0] == Expectation(
        "tool_trajectory_avg_score", "no calls", terms={**TRAJECTORY, "calls": []}
    )


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"intermediate_responses": [["agent", [{"text": "One moment."}]]]},
        {"toolUses": None, "intermediateResponses": []},
        {"invocation_events": []},
        {"invocationEvents": [{"author": "agent"}]},
    ],
)
def test_intermediate_data_without_calls_expects_no_calls(data: object) -> None:
    [found] = cases(eval_set(case("a", {**turn("Hi", "Hello"), "intermediate_data": data})))

    assert expected(found) == ([], "Hello")


def test_without_intermediate_data_the_expected_calls_are_unknown() -> None:
    without, null = turn("Hi", "Hello"), {**turn("Hi", "Hello"), "intermediateData": None}

    assert [expected(each) for each in cases(eval_set(case("a", without), case("b", null)))] == [(None, "Hello")] * 2


def test_everything_that_adk_writes_into_an_event_is_known() -> None:
    event = {"author": "a", "usage_metadata": {"total_token_count": 3}, "model_version": "m", "grounding_metadata": {}}
    measured = {**turn("Hi"), "duration": 1, "model_duration": 0.5, "tool_duration": 0.1}

    assert read(eval_set(case("a", {**measured, "intermediate_data": {"invocation_events": [event]}}))).notes == ()


def test_texts_of_parts_are_lines_and_thoughts_are_left_out() -> None:
    parts = [
        {"text": "a", "thought": None},
        {"text": "hm", "thought": True},
        {"text": "b"},
        {"inlineData": {"data": ""}},
    ]
    spoken = {**turn("x", "R"), "userContent": {"role": "user", "parts": parts}}
    document = read(eval_set(case("c", spoken)))
    [found] = document.evaluation.cases

    assert found.turns[0].utterance == "a\nb"
    assert [note.message for note in document.notes] == ["the user's message also has inlineData, which is not sent"]


def test_keys_with_null_are_as_if_they_were_not_there() -> None:
    part = {"text": "Hi", "thought": None, "video_metadata": None, "something_new": None}
    spoken = {"user_content": {"role": None, "parts": [part]}, "final_response": None, "intermediate_data": None}
    document = read(eval_set(case("n", turn("a", "b"), spoken, session_input=None, conversation_scenario=None)))

    assert document.notes == ()
    assert expected(next(iter(document.evaluation.cases)), turn=1) == (None, None)


def test_an_answer_without_a_text_is_no_answer_and_told() -> None:
    silent = {**turn("Hi"), "finalResponse": {"parts": [{"functionCall": {"name": "a"}}]}}
    document = read(eval_set(case("c", silent, turn("b", "B"))))

    assert expected(next(iter(document.evaluation.cases))) == (None, None)
    assert [note.message for note in document.notes] == [
        "the final response has functionCall and no text; no answer is compared with it"
    ]


@pytest.mark.parametrize("key", ["finalSessionState", "final_session_state"])
def test_the_final_state_is_expected_after_the_last_turn_and_has_no_matchers(key: str) -> None:
    final = {"user:name": "Ada", "cart.total": None, "filter": {"type": "open"}}
    document = read(eval_set(case("c", turn("a", "A"), turn("b", "B"), **{key: final})))
    [found] = document.evaluation.cases

    first, last = ([each for each in turn.expectations if each.name == "state"] for turn in found.turns)
    assert (document.notes, first) == ((), [])
    assert [(each.label, each.terms) for each in last] == [
        ('state user:name "Ada"', {"path": "user:name", "expected": "Ada", "literal": True}),
        ("state $['cart.total'] null", {"path": "$['cart.total']", "expected": None, "literal": True}),
        ('state filter {"type": "open"}', {"path": "filter", "expected": {"type": "open"}, "literal": True}),
    ]


@pytest.mark.parametrize("final", [{}, None])
def test_a_final_state_without_values_expects_nothing(final: JsonObject | None) -> None:
    [found] = cases(eval_set(case("c", turn("a", "A"), final_session_state=final)))
    assert {each.name for each in found.turns[0].expectations} == {"tool_trajectory_avg_score", "response_match_score"}


def test_a_final_state_alone_is_enough_to_judge_a_case() -> None:
    assert read(eval_set(case("c", turn("Hi"), finalSessionState={"greeted": True}))).notes == ()


def test_a_final_state_that_is_not_an_object_is_an_error() -> None:
    [problem] = problems(eval_set(case("c", turn("Hi"), finalSessionState=["a"])))
    assert "'finalSessionState'" in problem
    assert "not an object" in problem


def test_outputs_of_tools_are_not_replaced_and_told() -> None:
    tool = {"tool_name": "t", "tool_input": {}, "mock_tool_output": "x"}
    document = read(json.dumps([{"query": "a", "expected_tool_use": [tool]}]).encode())

    assert document.notes[-1].message == "'mock_tool_output' is ignored: evalmeta does not replace tools"


SCENARIO = {"eval_id": "sim", "conversation_scenario": {"starting_prompt": "Hi"}}


@pytest.mark.parametrize("others", [(), (GREETING,)])
def test_a_case_with_a_scenario_is_kept_and_named_but_not_run(others: tuple[JsonObject, ...]) -> None:
    document = read(eval_set(SCENARIO, *others))
    scenario, *rest = document.evaluation.cases

    why = "it has a conversation scenario, and evalmeta does not simulate users"
    assert (scenario.number, scenario.label, scenario.turns[0].utterance, scenario.not_run) == (1, "sim", "Hi", why)
    assert [each.not_run for each in rest] == [""] * len(others)
    assert [note.message for note in document.notes] == [f"case 'sim' is not run, and counts as an error: {why}"]


def test_keys_that_are_comments_are_not_reported() -> None:
    noted = {**turn("Hi", "Hello"), "_comment": "why", "//": "because"}
    assert read(eval_set(case("a", noted), **{"$schema": "x"})).notes == ()


def test_a_case_may_have_a_description() -> None:
    assert read(eval_set(case("a", turn("Hi", "Hello"), name="Greeting", description="Greets"))).notes == ()


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("expected_tool_use", 'Write "intermediate_data": {"tool_uses": [{"name": "...", "args": {}}]}.'),
        ("reference", 'Write "final_response": {"role": "model", "parts": [{"text": "..."}]}.'),
    ],
)
def test_keys_of_the_format_before_are_reported_with_what_to_write(key: str, hint: str) -> None:
    found = read(eval_set(case("a", {**turn("Hi", "Hello", []), key: []})))
    assert [note.hint for note in found.notes] == [hint]


def test_unknown_keys_are_told_once_with_the_nearest_known_one() -> None:
    odd = {**turn("Hi", "Hello"), "finalRespons": 1}
    document = read(eval_set(case("a", odd), case("b", odd), eval_case=1))

    assert [(note.message, note.hint) for note in document.notes] == [
        ("a turn has no key 'finalRespons'; it is ignored", "Did you mean 'finalResponse'?"),
        ("an eval set has no key 'eval_case'; it is ignored", "Did you mean 'eval_cases'?"),
    ]


def test_rows_of_typescript_are_cases_of_their_own() -> None:
    document = read(LEGACY_TS)
    found = list(document.evaluation.cases)

    assert [(each.number, each.label, len(each.turns)) for each in found] == [(1, "eval-0", 1), (2, "eval-1", 1)]
    assert found[0].turns[0].expectations == cases(FULL)[0].turns[0].expectations
    assert notes(document) == [
        "a.test.json:1:1 the format of this file is deprecated; each of its rows is a case, as in TypeScript"
    ]


def test_rows_of_python_are_turns_of_one_case() -> None:
    document = read(LEGACY_PYTHON)
    [found] = document.evaluation.cases

    assert (found.label, [each.utterance for each in found.turns]) == ("a.test.json", ["Turn on the lamp", "And off"])
    assert [expected(found, turn) for turn in (0, 1)] == [
        ([{"name": "switch", "args": {"on": True}}], None),
        ([], "It is off."),
    ]
    assert notes(document) == [
        "a.test.json:1:1 the format of this file is deprecated; its rows are the turns of one case, as in Python"
    ]


def test_what_rows_mean_can_be_said() -> None:
    assert [len(each.turns) for each in cases(LEGACY_TS, dialect="python")] == [2]
    assert [len(each.turns) for each in cases(LEGACY_PYTHON, dialect="typescript")] == [1, 1]


def test_rows_without_tools_are_turns_and_a_note_says_what_else_they_could_be() -> None:
    data = b'[{"query": "a", "reference": "A"}, {"query": "b", "reference": "B"}]'
    document = read(data)

    assert [len(each.turns) for each in document.evaluation.cases] == [2]
    assert document.notes[0].hint.startswith(
        'Its content does not say which: with [adk] dialect = "typescript" in evalmeta.toml each row is a case.'
    )


def test_groups_of_rows_are_cases_with_their_sessions() -> None:
    session = {"app_name": "home", "user_id": "u", "state": {"room": "hall"}}
    groups = [
        {"name": "one", "data": json.loads(LEGACY_PYTHON), "initial_session": session},
        {"name": "two", "data": [{"query": "Hi", "reference": "Hello"}], "initial_session": {}},
    ]
    document = read(json.dumps(groups).encode())
    found = list(document.evaluation.cases)

    assert [(each.label, len(each.turns), each.state) for each in found] == [
        ("one", 2, {"room": "hall"}),
        ("two", 1, {}),
    ]
    assert document.evaluation.subject_name == "home"
    assert (
        document.notes[0].message
        == "the format of this file is deprecated; each of its items is a case, whose rows are turns"
    )


def test_what_is_said_on_the_way_is_kept_for_the_new_form() -> None:
    [found] = read_adk_file(LEGACY_PYTHON, label="a.test.json").cases

    assert found.turns[0].replies == (("home", "One moment."),)


def test_strict_takes_missing_data_as_adk_does() -> None:
    strict = read_test_config(
        b'{"criteria": {"tool_trajectory_avg_score": 1, "response_match_score": 0.8}, "evalmeta": {"missing": "adk"}}',
        label="c",
    )
    [found] = cases(eval_set(case("a", turn("Hi"))), strict)

    assert found.turns[0].expectations == (
        Expectation("tool_trajectory_avg_score", terms={**TRAJECTORY, "calls": None, "missing": "empty"}),
        Expectation("response_match_score", terms={**OVERLAP, "missing": "zero"}),
    )


def test_a_criterion_that_was_asked_for_says_that_no_case_has_its_data() -> None:
    asked = config(tool_trajectory_avg_score=1.0, response_match_score=0.8, final_response_match_v2=0.5)
    document = read(eval_set(GREETING), asked)

    assert [(note.code, note.message) for note in document.notes] == [
        (
            "adk-missing",
            (
                "no case has expected tool calls (intermediateData), which 'tool_trajectory_avg_score' needs;"
                " it judges nothing"
            ),
        )
    ]
    assert [expectation.name for expectation in list(document.evaluation.cases)[0].turns[0].expectations] == [  # noqa: RUF015
        "tool_trajectory_avg_score",
        "response_match_score",
        "final_response_match_v2",
    ]


def test_a_case_without_any_data_is_told() -> None:
    document = read(eval_set(GREETING, case("idle", turn("Hi"))))

    assert [note.message for note in document.notes] == [
        "case 'idle' runs but is not judged: it has no data for any criterion"
    ]
    assert read(eval_set(case("idle", turn("Hi"))), config(safety_v1=1.0)).notes == ()


def test_criteria_of_a_config_judge_every_turn() -> None:
    chosen = config(
        tool_trajectory_avg_score={"threshold": 0.5, "match_type": "in-order", "ignore_args": True},
        final_response_match_v2={"threshold": 0.8, "judge_model_options": {"num_samples": 3}},
        safety_v1=0.9,
    )
    [found] = cases(eval_set(case("a", LONDON)), chosen)

    assert [(expectation.name, dict(expectation.terms)) for expectation in found.turns[0].expectations] == [
        (
            "tool_trajectory_avg_score",
            {"threshold": 0.5, "match_type": "IN_ORDER", "ignore_args": True, "calls": [WEATHER]},
        ),
        ("final_response_match_v2", {"threshold": 0.8, "num_samples": 3, "aggregate": "majority"}),
        ("safety_v1", {"threshold": 0.9}),
    ]


def test_a_function_of_ones_own_judges_the_conversation_at_its_end() -> None:
    custom = {"criteria": {"tone": 0.5}, "custom_metrics": {"tone": {"code_config": {"name": "checks.tone"}}}}
    [found] = cases(eval_set(MULTI_TURN), read_test_config(json.dumps(custom).encode(), label="c"))

    assert [len(each.expectations) for each in found.turns] == [0, 1]
    terms = found.turns[1].expectations[0].terms
    assert (terms["function"], terms["threshold"], terms["conversation"]) == ("checks.tone", 0.5, True)


def test_the_ids_of_a_session_reach_the_agent() -> None:
    ids = {"app_name": "bank", "user_id": "u7", "session_id": "pinned", "state": {"balance": 3}}
    with_ids, without = cases(eval_set({**GREETING, "session_input": ids}, SEARCH))

    assert (with_ids.session, with_ids.state) == (SessionIds("bank", "u7", "pinned"), {"balance": 3})
    assert without.session is None


def test_metrics_of_whole_conversations_are_judged_once_at_the_end() -> None:
    polite = {"rubric_id": "polite", "rubric_content": {"text_property": "It is polite."}, "type": "TRAJECTORY_QUALITY"}
    chosen = config(
        multi_turn_task_success_v1=0.5,
        multi_turn_trajectory_quality_v1=0.5,
        multi_turn_tool_use_quality_v1=0.5,
        rubric_based_multi_turn_trajectory_quality_v1={"threshold": 0.5, "judge_model_options": {"num_samples": 3}},
    )
    [found] = cases(eval_set({**MULTI_TURN, "rubrics": [polite]}), chosen)

    first, last = (turn.expectations for turn in found.turns)
    assert first == ()
    assert [expectation.name for expectation in last] == [criterion.name for criterion in chosen.criteria]
    assert last[3].terms == {"threshold": 0.5, "num_samples": 3, "rubrics": [{"id": "polite", "text": "It is polite."}]}


def test_rubrics_of_criterion_case_and_turn_are_asked_together() -> None:
    def rubric(name: str, kind: str | None = None) -> dict[str, object]:
        return {"rubric_id": name, "rubric_content": {"text_property": f"It is {name}."}, "type": kind}

    chosen = config(rubric_based_tool_use_quality_v1={"threshold": 0.5, "rubrics": [rubric("quick")]})
    asked = {**turn("Hi"), "rubrics": [rubric("kind"), rubric("polite", "FINAL_RESPONSE_QUALITY")]}
    [found] = cases(eval_set(case("a", asked, rubrics=[rubric("short", "tool_use_quality")])), chosen)

    assert found.turns[0].expectations[0].terms["rubrics"] == [
        {"id": "quick", "text": "It is quick."},
        {"id": "short", "text": "It is short."},
        {"id": "kind", "text": "It is kind."},
    ]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"evalSetId": "x",\n "evalCases": ]}', "a.test.json:2:15 this is not valid JSON: "),
        (b"7", "a.test.json:1:1 an eval set is a number, not an object [json-type]"),
        (b"[]", "a.test.json:1:1 the array is empty: add at least one row [adk-empty]"),
        (b"[7]", "a.test.json:1:2 a row is a number, not an object [json-type]"),
        (b'[{"reference": "x"}]', "a.test.json:1:2 a row needs 'query' [json-missing]"),
        (b'[{"query": ""}]', "a.test.json:1:12 the query of a row is empty [adk-empty]"),
        (b'[{"query": "a"},\n {"data": []}]', "a.test.json:1:2 a case needs 'name' [json-missing]"),
        (b'{"evalSetId": "x"}', "a.test.json:1:1 an eval set needs 'evalCases' [json-missing]"),
        (b'{"evalSetId": "x", "evalcases": []}', "'evalCases' [json-missing] There is 'evalcases'; write 'evalCases'."),
        (eval_set({"evalId": "a", "conversations": []}), "There is 'conversations'; write 'conversation'."),
        (b'{"evalCases": [{}]}', "a.test.json:1:1 an eval set needs 'evalSetId' [json-missing]"),
        (
            b'{"evalSetId": "x", "evalCases": []}',
            "a.test.json:1:33 'evalCases' is empty: add at least one case [adk-empty]",
        ),
        (
            b'{"evalSetId": "x", "evalCases": {}}',
            "a.test.json:1:33 'evalCases' of an eval set is an object, not a list [json-type]",
        ),
        (
            json.dumps(GREETING).encode(),
            "a.test.json:1:1 this is a case alone, not an eval set [adk-form] Put it into the list 'evalCases'.",
        ),
        (eval_set({"conversation": [turn("Hi")]}), "a case needs 'evalId' [json-missing]"),
        (eval_set(case(" ", turn("Hi"))), "the id of a case is empty [adk-id]"),
        (eval_set({"evalId": "a"}), "a case needs 'conversation' [json-missing]"),
        (eval_set(case("a")), "the conversation of case 'a' is empty: add at least one turn [adk-empty]"),
        (
            eval_set(case("a", {"userContent": {"parts": [{"inlineData": {"mimeType": "image/png"}}]}})),
            (
                "the user's message has inlineData and no text; only text is sent [adk-media]"
                ' Write {"role": "user", "parts": [{"text": "..."}]}.'
            ),
        ),
        (eval_set(case("a", {"userContent": {"parts": []}})), "the user's message has no text [adk-media]"),
        (eval_set(case("a", {})), "a turn needs 'userContent' [json-missing]"),
        (eval_set(case("a", {"userContent": "Hi"})), "the user's message is a text, not an object [json-type]"),
        (
            eval_set(case("a", {**turn("Hi"), "intermediateData": {"toolUses": [{"args": {}}]}})),
            "a tool use needs 'name' [json-missing]",
        ),
        (
            eval_set(case("a", {**turn("Hi"), "intermediateData": {"toolUses": [], "invocationEvents": []}})),
            "the expected tool calls are given twice, in 'toolUses' and in 'invocationEvents' [adk-form] Keep one of",
        ),
        (
            eval_set(case("a", turn("Hi"), sessionInput={"state": []})),
            "'state' of a session's input is a list, not an object [json-type]",
        ),
        (
            b'{"eval_cases": [{"eval_case_id": "a", "prompt": {"parts": [{"text": "Hi"}]}}]}',
            "a.test.json:1:1 this is a dataset of agents-cli, not an eval set of ADK [adk-form] Run: evalmeta run",
        ),
        (
            b'{"evalSetId": "x",\n "eval_set_id": "y", "evalCases": []}',
            "a.test.json:2:17 an eval set has 'evalSetId' and 'eval_set_id', which are one key [adk-key] Keep one",
        ),
        (
            b'{"evalSetId": "x", "evalCases": [{"evalId": "a",\n "evalId": "b"}]}',
            "a.test.json:2:2 the key 'evalId' is repeated in one object",
        ),
        (
            eval_set(GREETING, SEARCH, GREETING),
            "two cases have the id 'greeting-test'; the other one begins in line 1 [adk-id]",
        ),
        (
            b'[{"query": "a", "expected_tool_use": [{"tool_name": "t"}, {"name": "t"}]}]',
            "some tools of the array have 'tool_name', and some have 'name': rows may be turns or cases [adk-dialect]",
        ),
        (
            b'[{"name": "x", "data": [{"query": "a"}]}, {"name": "x", "data": [{"query": "a"}]}]',
            "two cases have the id 'x'; the other one begins in line 1 [adk-id]",
        ),
        (b'[{"name": "x", "data": []}]', "a.test.json:1:2 case 'x' has no rows in 'data': add at least one row"),
    ],
)
def test_what_could_not_be_evaluated_as_it_was_meant_is_an_error_with_its_place(data: bytes, found: str) -> None:
    assert any(found in problem for problem in problems(data)), problems(data)


def test_every_problem_of_a_file_is_told() -> None:
    data = eval_set(case("a"), case("b", {}), {"conversation": [turn("Hi")]})

    assert len(problems(data)) == 3


def test_cases_have_the_lines_that_they_begin_at() -> None:
    data = json.dumps(json.loads(eval_set(GREETING, SEARCH)), indent=1).encode()
    lines = data.decode().split("\n")

    assert [lines[line].strip() for line in read(data).lines.values()] == [
        '"evalId": "greeting-test",',
        '"evalId": "search-test",',
    ]


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (json.loads(FULL), True),
        (json.loads(snake_case(FULL)), True),
        (json.loads(LEGACY_TS), True),
        (json.loads(LEGACY_PYTHON), True),
        ([{"name": "one", "data": json.loads(LEGACY_PYTHON)}], True),
        ({"threads": []}, False),
        ([{"request": "Hi"}], False),
        ([], False),
        ([1], False),
        ("x", False),
    ],
)
def test_an_eval_set_is_known_by_its_keys(value: object, answer: bool) -> None:  # noqa: FBT001 - a row of the table
    assert (recognise(json.dumps(value).encode()) == "adk") is answer


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "evalSetId",
                        "eval_cases",
                        "evalId",
                        "conversation",
                        "userContent",
                        "final_response",
                        "parts",
                        "text",
                    ),
                    *("intermediateData", "tool_uses", "name", "args", "query", "expected_tool_use", "data", "rubrics"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(junk)
def test_any_json_is_read_or_refused_with_problems(value: object) -> None:
    data = json.dumps(value).encode()
    try:
        found = cases(data)
    except FormatError:
        assert problems(data)
    else:
        assert all(each.turns for each in found)
