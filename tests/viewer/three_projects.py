"""Three projects whose tests break in the same five ways: test specs, definitions, and evaluation sets of ADK.

On day 9, a commit makes one case fail. On day 12, a commit removes a tool from the agent and edits what a test expects;
the judge does not answer any more, the agent crashes on one question, and a case that fails now and then does so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.raters.llm.model_server import judging, ruled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EARLIER_DAY: Final = 9
LAST_DAY: Final = 12
TOOL_REMOVED: Final = "Remove tracking tool"


class Edit(NamedTuple):
    """A text in a file of a project, and what a commit writes instead."""

    file: str
    old: str
    new: str


class Broken(NamedTuple):
    """What the first page must say of a fault: a word of the cause, whose fault it is, its cases, and since when."""

    cause: str
    fault: str
    cases: str
    since: str


class ExampleProject(NamedTuple):
    """A project on its first day.

    Attributes:
        name: the name of its folder.
        files: its files by their paths.
        tests: what `evalmeta run` is called with.
        judgement: what the judge replies until it does not answer any more.
        edits: what the commits of a day change.
        broken: what broke on the last day, and `suspect` the case that fails now and then.
        missing: the call that a case has lost, as the page of the case says it.
    """

    name: str
    files: Mapping[str, str]
    tests: str
    judgement: bytes
    edits: Mapping[int, tuple[Edit, ...]]
    broken: tuple[Broken, ...]
    suspect: str
    missing: str


def settings(subject: str, target: str, url: str) -> str:
    """Return an `evalmeta.toml` that binds an agent and the judge."""
    return f"""
[subjects.{subject}]
adapter = "python"
target = "{target}"

[raters.judge]
adapter = "llm"
model = "judge-1"
url = "{url}"
cache = false
timeout = 2
"""


_DAY_OF_AGENT: Final = """
DAY = int(os.environ["DAY"])
ASKED = {}


def fails_now(utterance):
    \"\"\"Return whether this is the first time that the question is asked on the last day.\"\"\"
    ASKED[utterance] = ASKED.get(utterance, 0) + 1
    return DAY == 12 and ASKED[utterance] == 1


def said(outcome, *tools, topic="Orders"):
    tokens = {"input": 500, "output": 20}
    return {"topic": topic, "outcome": outcome, "actions": [{"name": name} for name in tools], "tokens": tokens}
"""

# Test specs: conversations with an agent that calls tools.

_SHOP_AGENT: Final = f'''
"""An agent of orders that calls tools."""

import json
import os
import re

SOLD_OUT = set()
TOOLS = ["Get_Customer", "Get_Order", "Track_Parcel"]
{_DAY_OF_AGENT}

def answer(utterance):
    """Answer one message of a conversation about an order."""
    order = re.search(r"\\d+", utterance)
    number = order[0] if order else "0"
    if "refund" in utterance:
        return said(f"I have refunded order {{number}}; the money arrives on Friday.", "Start_Refund")
    if "stock" in utterance:
        if "B-" + number in SOLD_OUT:
            return said("It is sold out.")
        return said("I do not know." if "B-2" in utterance and fails_now(utterance) else "It is in stock.")
    if "Cancel" in utterance and DAY == 12:
        return json.loads("")
    if "Where" in utterance:
        return said(f"Order {{number}} arrives on Friday.", *TOOLS)
    return said("You can return an order for 30 days.")
'''
SPEC_HEAD: Final = "name: {name}\nsubjectType: AGENT\nsubjectName: Order_Agent\ntestCases:\n"
_CONVERSATION: Final = """
- name: parcel {number}
  turns:
  - input: Hello, I ordered something.
    contains: return
  - input: Where is order {number}?
    actions: [Get_Customer, Get_Order, Track_Parcel]
    contains: Friday
  - input: Thank you.
    contains: 30 days
"""
_REFUND: Final = "- input: I want a refund for order {number}.\n  contains: Friday\n"
_STOCK: Final = "- input: Is B-{number} in stock?\n  contains: It is in\n"
_POLICY: Final = "- input: May I return order {number}?\n  expectedOutcome: 30 days\n"
_CANCEL: Final = "- input: Cancel order 10006.\n  contains: return\n"
_SPECS: Final = {
    "orders": "".join(_CONVERSATION.format(number=number) for number in range(10001, 10005)) + _CANCEL,
    "refunds": "".join(_REFUND.format(number=number) for number in range(20, 24)),
    "stock": "".join(_STOCK.format(number=number) for number in range(1, 5)),
    "policy": "".join(_POLICY.format(number=number) for number in range(30, 32)),
}
SHOP: Final = ExampleProject(
    "shop",
    {
        "agents.py": _SHOP_AGENT,
        "evalmeta.toml": settings("Order_Agent", "agents:answer", "{url}"),
        **{f"tests/{name}.yaml": SPEC_HEAD.format(name=name.capitalize()) + cases for name, cases in _SPECS.items()},
    },
    "tests",
    judging(5),
    {
        EARLIER_DAY: (Edit("agents.py", "SOLD_OUT = set()", 'SOLD_OUT = {"B-4"}'),),
        LAST_DAY: (
            Edit("agents.py", ', "Track_Parcel"]', "]"),
            Edit("tests/refunds.yaml", "contains: Friday", "contains: Thursday"),
        ),
    },
    (
        Broken("Track_Parcel", "agent", "tests/orders.yaml cases 1-4", TOOL_REMOVED),
        Broken("does not answer", "judge: judge failed", "tests/policy.yaml cases 1-2", "since"),
        Broken("JSONDecodeError", "infrastructure: agent crash", "tests/orders.yaml case 5", TOOL_REMOVED),
        Broken("Thursday", "test: expectation changed", "tests/refunds.yaml case 1", TOOL_REMOVED),
    ),
    "tests/stock.yaml case 2",
    "Track_Parcel missing",
)

# Definitions, in a Salesforce DX project.

_SERVICE_AGENT: Final = f'''
"""The service agent of a Salesforce org, as a function."""

import json
import os

CLOSED = set()
TRACKING = ["Find_Customer", "Find_Order", "Track_Shipment"]
{_DAY_OF_AGENT}

def answer(utterance):
    """Answer a customer."""
    if "refund" in utterance:
        return said("I have refunded the amount.", "Find_Order", "Issue_Refund", topic="Refunds")
    if "shipment" in utterance:
        return said("Your shipment arrives on Friday.", *TRACKING, topic="Shipments")
    if "technician" in utterance:
        if utterance[-2] in CLOSED:
            return said("This room is closed.", topic="Buildings")
        is_lost = "Room 3" in utterance and fails_now(utterance)
        return said("A technician comes today.", topic="Small_Talk" if is_lost else "Appointments")
    if "cancel" in utterance and DAY == 12:
        return json.loads("")
    if "warranty" in utterance:
        return said("The warranty ends after 24 months.", topic="Warranty")
    return said("I have cancelled it.", "Cancel_Order", topic="Orders")
'''
_DEFINITIONS_FOLDER: Final = "force-app/main/default/aiEvaluationDefinitions"
_DEFINITION: Final = """<?xml version="1.0" encoding="UTF-8"?>
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>{name}</name>
    <subjectName>Service_Agent</subjectName>
    <subjectType>AGENT</subjectType>
{cases}</AiEvaluationDefinition>
"""
_TEST_CASE: Final = """    <testCase>
{expectations}        <inputs>
            <utterance>{utterance}</utterance>
        </inputs>
        <number>{number}</number>
    </testCase>
"""
_EXPECTATION: Final = """        <expectation>
            <expectedValue>{value}</expectedValue>
            <name>{name}</name>
        </expectation>
"""


def _definition(name: str, *cases: tuple[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the file of a definition with these utterances, and what is expected of their answers."""
    parts = []
    for number, (utterance, expected) in enumerate(cases, 1):
        expectations = "".join(_EXPECTATION.format(name=key, value=value) for key, value in expected.items())
        parts.append(_TEST_CASE.format(expectations=expectations, utterance=utterance, number=number))
    text = _DEFINITION.format(name=name, cases="".join(parts))
    return {f"{_DEFINITIONS_FOLDER}/{name}.aiEvaluationDefinition-meta.xml": text}


def _topic(topic: str, *actions: str) -> dict[str, str]:
    return {"topic_sequence_match": topic, "action_sequence_match": str([*actions])}


_TRACKED: Final = _topic("Shipments", "Find_Customer", "Find_Order", "Track_Shipment")
_REFUNDED: Final = _topic("Refunds", "Find_Order", "Issue_Refund")
_WARRANTY: Final = {"bot_response_rating": "The warranty lasts for 24 months."}
SERVICE: Final = ExampleProject(
    "service",
    {
        "agent/desk.py": _SERVICE_AGENT,
        "agent/__init__.py": "",
        "evalmeta.toml": settings("Service_Agent", "agent.desk:answer", "{url}"),
        "sfdx-project.json": json.dumps({"packageDirectories": [{"path": "force-app", "default": True}]}, indent=2),
        **_definition(
            "Shipment_Tracking",
            *((f"Where is my shipment {number}?", _TRACKED) for number in range(1, 5)),
            ("Please cancel my order.", _topic("Orders", "Cancel_Order")),
        ),
        **_definition(
            "Refund_Rules", *((f"I want a refund for case {number}.", _REFUNDED) for number in range(20, 24))
        ),
        **_definition(
            "Appointments",
            *((f"Send a technician to Room {number}.", _topic("Appointments")) for number in range(1, 5)),
        ),
        **_definition("Warranty", *((f"How long is the warranty of {thing}?", _WARRANTY) for thing in ("A1", "B2"))),
    },
    "force-app",
    judging(5),
    {
        EARLIER_DAY: (Edit("agent/desk.py", "CLOSED = set()", 'CLOSED = {"4"}'),),
        LAST_DAY: (
            Edit("agent/desk.py", ', "Track_Shipment"]', "]"),
            Edit(f"{_DEFINITIONS_FOLDER}/Refund_Rules.aiEvaluationDefinition-meta.xml", ">Refunds<", ">Returns<"),
        ),
    },
    (
        Broken("Track_Shipment", "agent", "Shipment_Tracking cases 1-4", TOOL_REMOVED),
        Broken("does not answer", "judge: judge failed", "Warranty cases 1-2", "since"),
        Broken("JSONDecodeError", "infrastructure: agent crash", "Shipment_Tracking case 5", TOOL_REMOVED),
        Broken("Returns", "test: expectation changed", "Refund_Rules case 1", TOOL_REMOVED),
    ),
    "Appointments case 3",
    "Track_Shipment missing",
)

# Evaluation sets of ADK.

_WEATHER_AGENT: Final = f'''
"""An agent that knows the weather."""

import json
import os
import re

DRY = set()
TOOLS = ["find_city", "read_station", "read_radar"]
{_DAY_OF_AGENT}

def answer(utterance):
    """Answer one message of a conversation about the weather."""
    city = re.search(r" in (\\w+)", utterance)
    name = city[1] if city else "Lisbon"
    if "warm" in utterance:
        return said(f"It is 24 degrees in {{name}}.", "read_station")
    if "rain" in utterance:
        return said(f"It will rain in {{name}}.", *TOOLS)
    if "umbrella" in utterance:
        is_lost = name == "Oslo" and fails_now(utterance)
        if name in DRY:
            return said("No, the sky is clear.", "find_city")
        return said("I cannot say." if is_lost else f"Take an umbrella in {{name}}.", "find_city")
    if "storm" in utterance and DAY == 12:
        return json.loads("")
    return said("Have a nice day.")
'''


def _turn(asked: str, answer: str, *tools: str) -> dict[str, object]:
    return {
        "user_content": {"role": "user", "parts": [{"text": asked}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": [{"name": name, "args": {}} for name in tools]},
    }


def _eval_set(path: str, cases: Iterable[tuple[str, list[dict[str, object]]]]) -> dict[str, str]:
    """Return the file of an evaluation set with these conversations."""
    user = {"app_name": "weather_desk", "user_id": "ann", "state": {}}
    listed = [{"eval_id": name, "session_input": user, "conversation": turns} for name, turns in cases]
    value = {"eval_set_id": path.rpartition("/")[2], "eval_cases": listed}
    return {f"{path}.evalset.json": json.dumps(value, indent=2)}


_THANKS: Final = _turn("Thank you!", "Have a nice day.")
_CITIES: Final = ("Lisbon", "Bergen", "Oslo", "Quito")
WEATHER: Final = ExampleProject(
    "weather",
    {
        "weather_desk.py": _WEATHER_AGENT,
        "evalmeta.toml": settings("weather_desk", "weather_desk:answer", "{url}"),
        **_eval_set(
            "evals/rain",
            [
                *(
                    (
                        f"rain_{city}",
                        [
                            _turn(
                                f"Will it rain in {city}?",
                                f"It will rain in {city}.",
                                "find_city",
                                "read_station",
                                "read_radar",
                            ),
                            _THANKS,
                        ],
                    )
                    for city in _CITIES
                ),
                ("storm", [_turn("Is a storm coming?", "Have a nice day.")]),
            ],
        ),
        **_eval_set(
            "evals/warmth",
            (
                (
                    f"warm_{city}",
                    [_turn(f"How warm is it in {city}?", f"It is 24 degrees in {city}.", "read_station"), _THANKS],
                )
                for city in _CITIES
            ),
        ),
        **_eval_set(
            "evals/umbrellas",
            (
                (
                    f"umbrella_{city}",
                    [_turn(f"Do I need an umbrella in {city}?", f"Take an umbrella in {city}.", "find_city")],
                )
                for city in _CITIES
            ),
        ),
        **_eval_set("evals/judged/wishes", ((f"wish_{name}", [_THANKS]) for name in ("ann", "bob"))),
        "evals/judged/test_config.json": json.dumps({"criteria": {"final_response_match_v2": 0.8}}),
    },
    "evals",
    ruled("yes"),
    {
        EARLIER_DAY: (Edit("weather_desk.py", "DRY = set()", 'DRY = {"Quito"}'),),
        LAST_DAY: (
            Edit("weather_desk.py", ', "read_radar"]', "]"),
            Edit("evals/warmth.evalset.json", "It is 24 degrees in Lisbon.", "In Lisbon, the sun is shining."),
        ),
    },
    (
        Broken("read_radar", "agent", "evals/rain.evalset.json cases 1-4", TOOL_REMOVED),
        Broken("does not answer", "judge: judge failed", "evals/judged/wishes.evalset.json cases 1-2", "since"),
        Broken("JSONDecodeError", "infrastructure: agent crash", "evals/rain.evalset.json case 5", TOOL_REMOVED),
        Broken("response_match_score", "test: expectation changed", "evals/warmth.evalset.json case 1", TOOL_REMOVED),
    ),
    "evals/umbrellas.evalset.json case 3",
    "read_radar missing",
)
PROJECTS: Final = (SHOP, SERVICE, WEATHER)
