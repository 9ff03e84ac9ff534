"""ADK's files for tests: the shapes that its documentation shows, with contents of our own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


def content(text: str, role: str = "user") -> JsonObject:
    return {"role": role, "parts": [{"text": text}]}


def turn(utterance: str, reference: str | None = None, calls: list[tuple[str, JsonObject]] | None = None) -> JsonObject:
    """Makes a turn as adk-ts has it."""
    found: dict[str, JsonValue] = {"creationTimestamp": 0, "userContent": content(utterance)}
    if reference is not None:
        found["finalResponse"] = content(reference, "model")
    if calls is not None:
        uses: list[JsonValue] = [{"name": name, "args": args} for name, args in calls]
        found["intermediateData"] = {"toolUses": uses, "intermediateResponses": []}
    return found


def case(eval_id: str, *turns: JsonObject, **more: JsonValue) -> JsonObject:
    return {"evalId": eval_id, "conversation": list(turns), **more}


def eval_set(*cases: JsonObject, **more: JsonValue) -> bytes:
    """Makes a file of adk-ts."""
    return json.dumps({"evalSetId": "tests", "creationTimestamp": 0, "evalCases": list(cases), **more}).encode()


LONDON = turn("What is the weather in London?", "The weather in London", [("get_weather", {"city": "London"})])
FULL = eval_set(case("case-1", LONDON), name="Weather Agent Evaluation")
GREETING = case("greeting-test", turn("Hello!", "Hello! How can I help you today?"))
SEARCH = case(
    "search-test", turn("Search for TypeScript tutorials", None, [("web_search", {"query": "TypeScript tutorials"})])
)
MULTI_TURN = case(
    "multi-turn-test",
    turn(
        "What is the weather in London?", "The weather in London is sunny, 22°C.", [("get_weather", {"city": "London"})]
    ),
    turn("What about Tokyo?", "The weather in Tokyo is cloudy, 18°C.", [("get_weather", {"city": "Tokyo"})]),
)
STATEFUL = case(
    "stateful-test",
    turn("What is my account balance?", "Your account balance is $1,250."),
    sessionInput={
        "appName": "banking_app",
        "userId": "user_123",
        "state": {"account_balance": 1250, "account_type": "checking"},
    },
)
LEGACY_TS = json.dumps(
    [
        {
            "query": "What is the weather in London?",
            "reference": "The weather in London",
            "expected_tool_use": [{"name": "get_weather", "args": {"city": "London"}}],
        },
        {"query": "Hello!", "reference": "Hello!"},
    ]
).encode()
LEGACY_PYTHON = json.dumps(
    [
        {
            "query": "Turn on the lamp",
            "expected_tool_use": [{"tool_name": "switch", "tool_input": {"on": True}}],
            "expected_intermediate_agent_responses": [{"author": "home", "text": "One moment."}],
        },
        {"query": "And off", "reference": "It is off.", "expected_tool_use": []},
    ]
).encode()
