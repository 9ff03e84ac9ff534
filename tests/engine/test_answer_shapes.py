from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from evalmeta.engine.answers import generated_data
from evalmeta.errors import SubjectError
from evalmeta.model.generated_data import Action, Tokens


class City(BaseModel):
    name: str
    founded: date | None = None


@dataclasses.dataclass
class Order:
    number: int
    city: City


class Colour(enum.Enum):
    RED = "red"


VALUES = [
    (City(name="Zürich"), {"name": "Zürich", "founded": None}),
    (
        Order(7, City(name="Rom", founded=date(1, 2, 3))),
        {"number": 7, "city": {"name": "Rom", "founded": "0001-02-03"}},
    ),
    ({"city": "Paris", "answers": [1, 2.5, None, True]}, {"city": "Paris", "answers": [1, 2.5, None, True]}),
    ([1, "a"], [1, "a"]),
    ((1, 2, 3), [1, 2, 3]),
    (42, 42),
    (False, False),
    (np.bool_(True), True),
    (np.int64(7), 7),
    (np.float64(0.5), 0.5),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (pd.DataFrame({"id": [1, 2], "name": ["a", None]}), [{"id": 1, "name": "a"}, {"id": 2, "name": None}]),
    ({"colour": Colour.RED, "price": Decimal("1.10")}, {"colour": "red", "price": "1.10"}),
    ({"outcome": {"city": "Paris"}, "actions": []}, {"city": "Paris"}),
    (({"city": "Paris"}, [{"name": "find", "args": {}}]), {"city": "Paris"}),
    (([1], [2]), [[1], [2]]),
]


@pytest.mark.parametrize(("returned", "value"), VALUES, ids=lambda value: type(value).__name__)
def test_a_structured_answer_is_kept_as_json(returned: object, value: object) -> None:
    data = generated_data(returned)
    assert data.is_json
    assert data.value == value
    assert type(data.value) is type(value)


def test_a_text_that_looks_like_json_stays_text() -> None:
    data = generated_data('{"city": "Paris"}')
    assert (data.is_json, data.value) == (False, '{"city": "Paris"}')


def test_the_outcome_of_a_structured_answer_is_its_json_text_in_the_order_of_its_keys() -> None:
    assert generated_data({"zeta": "é", "alpha": [1]}).outcome == '{"zeta": "é", "alpha": [1]}'


@pytest.mark.parametrize("returned", [object(), b"bytes", float("nan"), {"a": {1, 2}}, lambda: 1, iter("ab")])
def test_an_object_that_cannot_be_read_gets_an_error_that_says_what_is_read(returned: object) -> None:
    with pytest.raises(SubjectError, match=r"which is not valid JSON .*; expected its answer as text, a mapping, a "):
        generated_data(returned)


CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": 7}'}}
COMPLETION: dict[str, Any] = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Sent.", "tool_calls": [CALL]},
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}
RESPONSE: dict[str, Any] = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "function_call", "name": "get_order", "arguments": '{"id": 7}', "call_id": "c1"},
        {
            "type": "message",
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Sent.", "annotations": []}],
        },
    ],
    "usage": {
        "input_tokens": 5,
        "output_tokens": 2,
        "total_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
LANGCHAIN = [
    {"type": "human", "content": "An earlier question"},
    {"type": "ai", "content": "An earlier answer", "tool_calls": [{"name": "old", "args": {}, "id": "c0"}]},
    {"type": "human", "content": "Where is order 7?"},
    {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": "get_order", "args": {"id": 7}, "id": "c1", "type": "tool_call"}],
    },
    {"type": "tool", "content": '{"state": "sent"}', "tool_call_id": "c1"},
    {
        "type": "ai",
        "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Sent."}],
        "tool_calls": [],
        "usage_metadata": {"input_tokens": 5, "output_tokens": 2},
    },
]
BEDROCK = [
    {"role": "user", "content": [{"text": "Where is order 7?"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "get_order", "input": {"id": 7}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": '{"state": "sent"}'}]}}]},
    {"role": "assistant", "content": [{"text": "Sent."}]},
]
EVENTS = [
    {
        "author": "orders",
        "invocation_id": "i",
        "content": {
            "role": "model",
            "parts": [{"function_call": {"id": "c1", "name": "get_order", "args": {"id": 7}}}],
        },
    },
    {
        "author": "orders",
        "invocation_id": "i",
        "content": {
            "role": "user",
            "parts": [{"function_response": {"id": "c1", "name": "get_order", "response": {"state": "sent"}}}],
        },
    },
    {"author": "orders", "invocation_id": "i", "partial": True, "content": {"parts": [{"text": "Se"}]}},
    {
        "author": "orders",
        "invocation_id": "i",
        "content": {"role": "model", "parts": [{"text": "I think", "thought": True}, {"text": "Sent."}]},
        "usage_metadata": {"prompt_token_count": 5, "candidates_token_count": 2},
    },
]
CALLED = Action("get_order", {"id": 7})
SENT = Action("get_order", {"id": 7}, {"state": "sent"})
TOKENS = Tokens(5, 2)


@pytest.mark.parametrize(
    ("returned", "action", "tokens"),
    [
        (COMPLETION, CALLED, Tokens(5, 2, model="m")),
        (ChatCompletion.model_validate(COMPLETION), CALLED, Tokens(5, 2, model="m")),
        (ChatCompletion.model_validate(COMPLETION).choices[0].message, CALLED, None),
        (RESPONSE, CALLED, Tokens(5, 2, 0, "m")),
        (Response.model_validate(RESPONSE), CALLED, Tokens(5, 2, 0, "m")),
        (LANGCHAIN, SENT, TOKENS),
        ({"messages": LANGCHAIN}, SENT, TOKENS),
        (BEDROCK, SENT, None),
        (EVENTS, SENT, TOKENS),
        (("Sent.", [CALL]), CALLED, None),
        (("Sent.", [{"name": "get_order", "args": {"id": 7}}]), CALLED, None),
        ({"outcome": "Sent.", "actions": [CALL]}, CALLED, None),
        (("Sent.", ChatCompletion.model_validate(COMPLETION).choices[0].message.tool_calls), CALLED, None),
    ],
)  # fmt: skip
def test_shapes_of_libraries_give_the_answer_and_its_calls(
    returned: object, action: Action, tokens: Tokens | None
) -> None:
    data = generated_data(returned)
    assert (data.outcome, data.actions, data.tokens, data.is_json) == ("Sent.", (action,), tokens, False)


def test_replies_of_openai_say_their_model_and_how_many_tokens_were_cached() -> None:
    completion = {
        **COMPLETION,
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 2,
            "total_tokens": 1002,
            "prompt_tokens_details": {"cached_tokens": 900},
        },
    }
    details = {"cached_tokens": 900, "cache_write_tokens": 0}
    response = {**RESPONSE, "usage": {**RESPONSE["usage"], "input_tokens": 1000, "input_tokens_details": details}}
    for reply in (completion, ChatCompletion.model_validate(completion), response, Response.model_validate(response)):
        assert generated_data(reply).tokens == Tokens(1000, 2, 900, "m")
    assert generated_data({**COMPLETION, "usage": None}).tokens is None


def test_the_author_of_the_last_event_is_the_topic() -> None:
    assert generated_data(EVENTS).topic == "orders"


def event(*parts: dict[str, object], **more: object) -> dict[str, object]:
    return {"author": "orders", "invocation_id": "i", "content": {"parts": parts}, **more}


def test_the_events_of_a_function_are_read_as_those_of_an_agent_of_adk() -> None:
    failed = {"id": "1", "name": "get_order", "response": {"error": "no such order"}}
    usage = {"prompt_token_count": 9, "candidates_token_count": 3, "thoughts_token_count": 4}
    data = generated_data(
        [
            event({"text": "Ord"}, partial=True),
            event({"text": "One moment."}, {"function_call": {"id": "1", "name": "get_order", "args": {}}}),
            event({"function_response": failed}, actions={"transfer_to_agent": "desk"}),
            event({"text": "Hm", "thought": True}, {"text": "It is lost."}, {"text": "Sorry."}, usage_metadata=usage),
            event({"function_call": {"id": "2", "name": "close", "args": None}}),
        ]
    )

    assert (data.outcome, data.handoffs, data.tokens) == ("It is lost.\nSorry.", ("desk",), Tokens(9, 7))
    assert data.actions == (Action("get_order", {}, {"error": "no such order"}, None, "no such order"), Action("close"))
    assert generated_data([event({"text": "One moment."}, {"function_call": {"name": "close"}})]).outcome == ""


TEXT = {"text": "no such order"}
ASKED_TWICE = [("get_order", {"id": 7}), ("get_order", {"id": 8}), ("get_time", {})]
RETURNED = [{"state": "sent"}, {"state": "lost"}, {"hour": 9}]
CHAT = [
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": name, "arguments": given}} for name, given in ASKED_TWICE],
    },
    *({"role": "tool", "content": json.dumps(output)} for output in RETURNED),
    {"role": "assistant", "content": "Sent."},
]
CONVERSE = [
    {"role": "assistant", "content": [{"toolUse": {"name": name, "input": given}} for name, given in ASKED_TWICE]},
    {"role": "user", "content": [{"toolResult": {"content": [{"json": output}]}} for output in RETURNED]},
    {"role": "assistant", "content": [{"text": "Sent."}]},
]
STEPS = [
    *({"function_call": {"id": None, "name": name, "args": given}} for name, given in ASKED_TWICE),
    # ADK's responses have names, and come in the order in which the tools end.
    {"function_response": {"id": None, "name": "get_time", "response": RETURNED[2]}},
    *({"function_response": {"id": None, "name": "get_order", "response": output}} for output in RETURNED[:2]),
    {"text": "Sent."},
]
ITEMS = [
    *({"type": "function_call", "name": name, "arguments": json.dumps(given)} for name, given in ASKED_TWICE),
    *({"type": "function_call_output", "output": json.dumps(output)} for output in RETURNED),
    {"type": "message", "content": [{"type": "output_text", "text": "Sent."}]},
]


@pytest.mark.parametrize(
    "returned",
    [CHAT, CONVERSE, [{"author": "orders", "invocation_id": "i", "content": {"parts": STEPS}}], {"output": ITEMS}],
    ids=["chat", "converse", "events", "response"],
)
def test_calls_without_ids_get_the_results_without_ids_in_order(returned: object) -> None:
    called = [Action(name, given, output) for (name, given), output in zip(ASKED_TWICE, RETURNED, strict=True)]
    assert generated_data(returned).actions == tuple(called)


def test_a_call_without_an_id_does_not_get_the_result_of_another_call() -> None:
    calls = [{"name": "get_time", "args": {}}, CALL]
    returned = [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": '{"state": "sent"}', "tool_call_id": "c1"},
        {"role": "tool", "content": "9", "tool_call_id": None, "name": "get_date"},
        {"role": "assistant", "content": "Sent."},
    ]
    assert generated_data(returned).actions == (Action("get_time"), SENT)


@pytest.mark.parametrize(
    "result",
    [
        {"role": "tool", "content": "no such order", "tool_call_id": "c1", "status": "error"},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "status": "error", "content": [TEXT]}}]},
    ],
    ids=["langchain", "bedrock"],
)
def test_a_result_that_is_an_error_is_the_error_of_its_call(result: object) -> None:
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        result,
        {"role": "assistant", "content": "."},
    ]
    (action,) = generated_data(messages).actions or ()
    assert (action.name, action.error, action.output) == ("get_order", "no such order", None)


def test_names_are_calls_without_input() -> None:
    assert generated_data(("Sent.", ["get_order"])).actions == (Action("get_order"),)
    assert generated_data(("Sent.", None)).actions is None


def test_calls_are_unknown_if_no_message_reports_them() -> None:
    assert generated_data({"role": "assistant", "content": "Hello!"}).actions is None
    assert generated_data([{"role": "assistant", "content": "Hello!", "tool_calls": []}]).actions == ()


def test_a_single_message_or_event_without_calls_does_not_say_that_there_were_none() -> None:
    assert generated_data(LANGCHAIN[-1]).actions is None
    assert generated_data(EVENTS[-1]).actions is None


def test_a_run_of_pydantic_ai_has_its_output_calls_and_tokens() -> None:
    agent = Agent(TestModel(call_tools=["get_order"], custom_output_text="Sent."))

    @agent.tool_plain
    def get_order(number: int) -> dict[str, str]:
        return {"state": f"sent {number}"}

    data = generated_data(asyncio.run(agent.run("Where is order 7?")))
    assert (data.outcome, data.actions) == ("Sent.", (Action("get_order", {"number": 0}, {"state": "sent 0"}),))
    assert data.tokens is not None
    assert data.tokens.total


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        ({**RESPONSE, "status": "failed", "error": {"message": "overloaded"}}, "has the status failed: .*overloaded"),
        ({"messages": LANGCHAIN, "__interrupt__": ["approve?"]}, "waits for a person"),
        ([{"author": "a", "invocation_id": "i", "content": None, "error_code": "SAFETY"}], "an error: SAFETY"),
        (LANGCHAIN[:3], "without one of its own after the user's"),
    ],
)
def test_what_is_not_an_answer_is_an_error(returned: object, error: str) -> None:
    with pytest.raises(SubjectError, match=error):
        generated_data(returned)


@pytest.mark.parametrize(
    "value", [{"messages": 3}, {"choices": []}, {"output": [{"type": "text"}]}, {"content": "x", "type": "memo"}, ["a"]]
)
def test_values_that_only_look_like_a_shape_are_structured_answers(value: object) -> None:
    assert generated_data(value).value == value
