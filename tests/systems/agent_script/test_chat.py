"""A language model at an endpoint for chat completions chooses the steps of an agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from client.servers import replying_with
from engine.subjects.conversations import bodies, says
from evalmeta.errors import SubjectError
from evalmeta.model.generated_data import Tokens
from systems.agent_script.projects import SHOP, converse, write_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.json_value import JsonValue

CUSTOMER = {"CustomerId": "C1"}


def completion(message: JsonValue) -> bytes:
    usage: JsonValue = {"prompt_tokens": 10, "completion_tokens": 2}
    return says({"model": "m-1", "usage": usage, "choices": [{"message": message, "finish_reason": "stop"}]})


def call(name: str, **inputs: JsonValue) -> bytes:
    function: JsonValue = {"name": name, "arguments": json.dumps(inputs)}
    return completion({"content": None, "tool_calls": [{"id": f"id-{name}", "type": "function", "function": function}]})


def test_the_model_gets_instructions_messages_and_available_tools_and_its_calls_are_carried_out(tmp_path: Path) -> None:
    write_project(tmp_path)
    replies = (call("to_repairs"), call("look_up", number=7), completion({"content": "120 euros."}))
    with replying_with(*replies) as server:
        [answer] = converse(tmp_path, "Repair 7?", context=CUSTOMER, model="m", url=f"{server.url}/v1")

    assert (answer.outcome, answer.topic) == ("120 euros.", "repairs")
    assert answer.tokens == Tokens(30, 6, None, "m-1")
    first, second, third = bodies(server)
    assert server.requests[0].startswith(b"POST /v1/chat/completions ")
    assert first["messages"] == [
        {"role": "system", "content": "You work for a bicycle shop.\nGreet customer C1."},
        {"role": "user", "content": "Repair 7?"},
    ]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["to_repairs", "human"]
    [look_up] = [tool["function"] for tool in second["tools"] if tool["function"]["name"] == "look_up"]
    assert look_up["description"] == "Finds a ticket"
    assert look_up["parameters"] == {
        "type": "object",
        "properties": {"number": {"type": "string", "description": "The ticket's number"}},
        "required": ["number"],
    }
    called, result = third["messages"][-2:]
    assert called["tool_calls"][0]["id"] == result["tool_call_id"] == "id-look_up"
    assert json.loads(result["content"]) == {"state": "ready", "cost": 120}
    # The script says text, so the number of the model becomes one.
    assert (answer.actions or ())[1].input == {"number": "7", "detail": True}


def test_only_the_tool_of_a_run_is_offered_and_must_be_called(tmp_path: Path) -> None:
    write_project(tmp_path, script=SHOP.replace("with id=@variables.customer_id", "with id=..."))
    replies = (call("to_repairs"), call("check_customer", id="C1"), completion({"content": "Hello"}))
    with replying_with(*replies) as server:
        converse(tmp_path, "a", model="m", url=server.url)
    asked = bodies(server)[1]
    assert asked["tool_choice"] == {"type": "function", "function": {"name": "check_customer"}}
    assert len(asked["tools"]) == 1


def test_a_model_that_does_not_choose_the_inputs_of_a_run_is_an_error(tmp_path: Path) -> None:
    write_project(tmp_path, script=SHOP.replace("with id=@variables.customer_id", "with id=..."))
    with (
        replying_with(call("to_repairs"), completion({"content": "Hello"})) as server,
        pytest.raises(SubjectError, match="did not choose the inputs of check_customer"),
    ):
        converse(tmp_path, "a", model="m", url=server.url)


def test_a_call_that_an_earlier_call_of_the_same_reply_makes_unavailable_is_not_carried_out(tmp_path: Path) -> None:
    pay = "            pay: @actions.find_ticket\n"
    write_project(tmp_path, script=SHOP.replace(pay, f'{pay}                available when @variables.ticket == ""\n'))
    functions: list[JsonValue] = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in (("keep", '{"ticket": "9"}'), ("pay", "{}"))
    ]
    replies = (call("to_repairs"), completion({"tool_calls": functions}), completion({"content": "Kept."}))
    with replying_with(*replies) as server:
        [answer] = converse(tmp_path, "a", context=CUSTOMER, model="m", url=server.url)
    assert [action.name for action in answer.actions or ()] == ["check_customer"]
    assert json.loads(bodies(server)[2]["messages"][-1]["content"]) == {"error": "pay cannot be called now"}


def test_calls_after_the_one_that_ends_the_reasoning_are_not_carried_out(tmp_path: Path) -> None:
    write_project(tmp_path)
    functions: list[JsonValue] = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in ("to_repairs", "human")
    ]
    with replying_with(completion({"tool_calls": functions}), completion({"content": "Yes?"})) as server:
        [answer] = converse(tmp_path, "a", context=CUSTOMER, model="m", url=server.url)
    assert (answer.outcome, answer.handoffs) == ("Yes?", ("repairs",))
    assert [message["role"] for message in bodies(server)[1]["messages"]][-2:] == ["tool", "tool"]
