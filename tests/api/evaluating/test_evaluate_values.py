from __future__ import annotations

import dataclasses
import json
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from evalmeta import evaluate
from evalmeta.cli.main import main
from evalmeta.errors import FormatError, SettingsError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.api.runs.finished import FinishedRun


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def received(value: object, *, parameters: str = "value") -> object:
    """What an agent with these parameters receives for an input."""
    names = ", ".join(name.partition("=")[0] for name in parameters.replace("*, ", "").split(", "))
    seen: list[object] = []
    agent = eval(f"lambda {parameters}: keep({names.replace('**', '')})", {"keep": lambda *given: seen.append(given)})  # noqa: S307
    evaluate([{"input": value}], agent)
    [given] = seen
    return given[0] if isinstance(given, tuple) and len(given) == 1 else given


class Order(BaseModel):
    number: int
    since: date


@dataclasses.dataclass
class Item:
    name: str


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("text", "text"),
        (5, 5),
        (2.5, 2.5),
        (1.0, 1.0),
        (True, True),
        ([1, {"a": None}], [1, {"a": None}]),
        ({"id": "1", "deep": {"b": [1.5, False]}}, {"id": "1", "deep": {"b": [1.5, False]}}),
        ({}, {}),
        (np.int64(3), 3),
        (np.array([1, 2]), [1, 2]),
        (Order(number=1, since=date(2026, 1, 2)), {"number": 1, "since": "2026-01-02"}),
        ([Item("a")], [{"name": "a"}]),
    ],
    ids=repr,
)
def test_an_agent_receives_the_value_of_an_input(value: object, kept: object) -> None:
    assert received(value, parameters="value") == kept
    assert type(received(value, parameters="value")) is type(kept)


@pytest.mark.parametrize(
    ("parameters", "given"),
    [
        ("question, style", ("Hi", "short")),
        ("style, question", ("short", "Hi")),
        ("question, style, length=3", ("Hi", "short", 3)),
        ("*, question, style, context", ("Hi", "short", {})),
        ("**members", {"question": "Hi", "style": "short"}),
        ("everything", {"question": "Hi", "style": "short"}),
        ("everything, length=3", ({"question": "Hi", "style": "short"}, 3)),
        ("everything, history", ({"question": "Hi", "style": "short"}, [])),
    ],
)
def test_the_members_of_a_mapping_are_keywords_if_the_signature_takes_them(parameters: str, given: object) -> None:
    assert received({"question": "Hi", "style": "short"}, parameters=parameters) == given


def test_a_member_of_the_input_goes_before_the_context_of_the_case() -> None:
    assert received({"question": "Hi", "context": "a passage"}, parameters="question, context") == ("Hi", "a passage")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"question": "Hi", "stile": "short"}, "cannot be called with the inputs question, stile: missing a required"),
        ({"question": "Hi", "style": "short", "mood": 1}, "got an unexpected keyword argument 'mood'"),
        ({"question": "Hi"}, "missing a required argument: 'style'"),
        ({"questions": "Hi"}, "cannot be called with the inputs questions"),
        ("Hi", "missing a required argument: 'style'"),
    ],
)
def test_unknown_parameters_are_an_error_before_the_first_question(value: object, message: str) -> None:
    asked: list[str] = []

    def agent(question: str, style: str) -> str:
        asked.append(f"{question} {style}")
        return "x"

    with pytest.raises(SettingsError, match=message):
        evaluate([{"input": {"question": "a", "style": "b"}}, {"input": value}], agent)
    assert asked == []


def test_an_agent_with_sessions_receives_the_members_too() -> None:
    class Session:
        def ask(self, question: str, number: int) -> str:
            return question * number

    class Agent:
        def open(self) -> Session:
            return Session()

    cases = [
        {
            "turns": [
                {"input": {"question": "a", "number": 2}, "equals": "aa"},
                {"input": {"number": 3, "question": "b"}, "equals": "bbb"},
            ]
        }
    ]
    assert evaluate(cases, Agent()).succeeded


def test_turns_keep_their_inputs_as_json_text_in_the_history() -> None:
    def agent(city: str, *, history: list[dict[str, str]]) -> str:
        return f"{city} after {[message['message'] for message in history]}"

    turns = [
        {"input": {"city": "Zürich"}},
        {"input": {"city": "Rom"}, "contains": """Rom after ['{"city": "Zürich"}', 'Z"""},
    ]
    assert evaluate([{"turns": turns}], agent).succeeded


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": {1}}, {1: 2}, {"a": 2**70}, {"a": "\ud800"}])
def test_an_input_that_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(FormatError, match="case 1 is not valid"):
        evaluate([{"input": value}], str.upper)


def judged(finished: FinishedRun) -> list[str]:
    return [f"{case.utterance} {case.verdict}" for case in finished.run.cases]


@dataclasses.dataclass
class Price:
    amount: float


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"latency_ms": NAN}, "'latency_ms' is nan"),
        ({"latency_ms": np.float32("nan")}, "'latency_ms' is nan"),
        ({"max_actions": INFINITY}, "'max_actions' is inf"),
        ({"max_actions": -INFINITY}, "'max_actions' is -inf"),
        ({"not_contains": NAN}, "'not_contains' is nan"),
        ({"contains": ["ok", NAN]}, "'contains[1]' is nan"),
        ({"topic": NAN}, "'topic' is nan"),
        ({"equals": NAN}, "'equals' is nan"),
        ({"json": {"a": np.array([1, NAN])}}, "'json.a[1]' is nan"),
        ({"json": {"at": date(2026, 1, 1), "none": None, "a": Price(NAN)}}, "'json.a.amount' is nan"),
        ({"actions": [{"name": "A", "error": NAN}]}, "'actions[0].error' is nan"),
        ({"actions": [{"name": "A", "output": NAN}]}, "'actions[0].output' is nan"),
        ({"actions": [{"name": "A", "input": {"a": NAN}}]}, "'actions[0].input.a' is nan"),
        ({"checks": [judged], "latency_ms": NAN}, "'latency_ms' is nan"),
    ],
)
def test_nan_and_infinity_in_a_case_are_refused(keys: dict[str, object], fault: str) -> None:
    with pytest.raises(FormatError) as caught:
        evaluate([{"input": "q"}, {"input": "q", "contains": "ok", **keys}], lambda _: "ok")
    assert str(caught.value) == f"case 2 is not valid: {fault}; expected a finite number"


def test_nan_in_a_turn_is_refused() -> None:
    cases = [{"turns": [{"input": "q"}, {"input": "q", "latency_ms": NAN}]}]
    with pytest.raises(FormatError, match=r"case 1 is not valid: 'turns\[1\].latency_ms' is nan"):
        evaluate(cases, lambda _: "ok")


def test_null_in_a_case_is_no_fault() -> None:
    assert evaluate([{"input": "null", "contains": None, "equals": {"a": None}}], lambda _: {"a": None}).succeeded


def test_expected_is_any_value_that_checks_receive() -> None:
    cases = [
        {"input": {"a": 1, "b": 2}, "expected": {"sum": 3.0}},
        {"input": {"b": 2, "a": 1}, "expected": {"sum": 4}},
        {
            "turns": [
                {"input": {"a": 1, "b": 1}, "expected": {"sum": 2}},
                {"input": {"a": 0, "b": 0}, "expected": {"sum": 0}},
            ]
        },
    ]

    def same(answer: object, expected: object) -> bool:
        return answer == expected

    finished = evaluate(cases, lambda a, b: {"sum": a + b}, checks=[same])
    assert judged(finished) == ['{"a": 1, "b": 2} PASS', '{"b": 2, "a": 1} FAILURE', '{"a": 0, "b": 0} PASS']
    assert '"utterance": "{\\"a\\": 1, \\"b\\": 2}"' in finished.report("json")


def test_the_rows_of_a_data_frame_are_cases_without_their_missing_values() -> None:
    frame = pd.DataFrame({"input": ["a", "b"], "equals": ["A", None], "contains": [np.nan, "B"]})
    finished = evaluate(frame, str.upper)  # type: ignore[call-overload]
    assert judged(finished) == ["a PASS", "b PASS"]
    assert [len(case.results) for case in finished.run.cases] == [1, 1]
    with pytest.raises(FormatError, match="case 1 is not valid: 'max_actions' is inf"):
        evaluate(pd.DataFrame({"input": ["a"], "max_actions": [INFINITY]}), str.upper)  # type: ignore[call-overload]
    with pytest.raises(FormatError, match="a test case has no key 'question'"):
        evaluate(pd.DataFrame({"question": ["a"]}), str.upper)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="cannot evaluate int: pass a definition, a path, cases, a data frame"):
        evaluate(3, str.upper)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("columns", "name"), [(["input", "contains", "contains"], "contains"), (["input", 1, "1"], "1")]
)
def test_a_data_frame_with_two_columns_of_one_name_is_refused(columns: list[object], name: str) -> None:
    frame = pd.DataFrame([["a", "no", "A"]], columns=columns)
    with pytest.raises(FormatError, match=f"the data frame has two columns named '{name}'"):
        evaluate(frame, str.upper)  # type: ignore[call-overload]


def test_an_expected_value_that_nothing_reads_is_refused() -> None:
    with pytest.raises(FormatError, match="'expected' is read by functions only, and no function judges this answer"):
        evaluate([{"input": "a", "expected": 3}], str.upper)


def test_a_journal_knows_an_input_from_its_json_text(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for _ in range(2):
        assert evaluate([{"input": {"a": 1}, "equals": 1}], lambda a: a, journal=folder).succeeded
    with pytest.raises(UsageError, match="the cases are different"):
        evaluate([{"input": '{"a": 1}', "equals": 1}], lambda a: a, journal=folder)


SPEC = """
subject: agent:total
testCases:
- input: {price: 2, amount: 3}
  equals: {total: 6, items: [2, 2, 2]}
- input: {price: 2, amount: 1}
  expected: {least: 2}
  function: rules:at_least
"""
AGENT = "def total(price, amount):\n    return {'total': price * amount, 'items': [price] * amount}\n"


def test_a_spec_has_values_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "rules.py").write_text(
        "def at_least(answer, expected):\n    return answer['total'] >= expected['least']\n"
    )
    (tmp_path / "shop.yaml").write_text(SPEC)
    with pytest.raises(SystemExit, match="0"):
        main(["run", "shop.yaml"])
    assert "2 passed" in capsys.readouterr().out
    (tmp_path / "agent.py").write_text(AGENT.replace("amount", "count"))
    with pytest.raises(SystemExit, match="2"):
        main(["run", "shop.yaml"])
    assert "cannot be called with the inputs price, amount" in capsys.readouterr().err


def test_an_agent_that_is_not_a_function_receives_the_json_text(tmp_path: Path) -> None:
    lines = json.dumps({"utterance": '{"id": 7}', "outcome": "Sent."})
    (tmp_path / "answers.jsonl").write_text(lines)
    subject = {"adapter": "replay", "file": "answers.jsonl"}
    assert evaluate([{"input": {"id": 7}, "equals": "Sent."}], subject).succeeded
