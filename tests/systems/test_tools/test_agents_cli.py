from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta import evaluate
from evalmeta.errors import FormatError
from evalmeta.formats.files import kind_of_file
from evalmeta.systems.test_tools.agents_cli import translate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject

    Judge = Callable[..., dict[str, str]]


def content(*texts: str, role: str = "user") -> JsonObject:
    return {"role": role, "parts": [{"text": text} for text in texts]}


def dataset(*cases: object) -> JsonObject:
    return {"description": "for agents-cli", "eval_cases": list(cases)}


def events(*parts: object) -> JsonObject:
    return {"agents": {}, "turns": [{"turn_index": place, "events": [part]} for place, part in enumerate(parts)]}


def said(author: str, text: str) -> JsonObject:
    return {"author": author, "content": content(text)}


REFERENCE = {"response": content("It costs 1250 EUR.", role="model")}


def test_the_rater_compares_with_the_reference(verdicts: Judge) -> None:
    priced = dataset({"eval_case_id": "price", "prompt": content("How much?"), "reference": REFERENCE})

    assert verdicts("a-dataset.json", priced, "It costs 1250 EUR.") == {"bot_response_rating": "PASS"}
    assert verdicts("a-dataset.json", priced, "It costs 12500 EUR.") == {"bot_response_rating": "FAILURE"}


def test_turns_are_in_the_order_of_their_indices(tmp_path: Path) -> None:
    turns = events(said("user", "A table"), said("desk", "Which day?"), said("user", "Friday"))
    turns["turns"] = [*reversed(turns["turns"])]  # type: ignore[misc, arg-type] # a list
    path = tmp_path / "a-dataset.json"
    path.write_text(json.dumps(dataset({"agent_data": turns, "reference": REFERENCE})))
    asked: list[object] = []

    def answer(utterance: str, *, history: list[dict[str, object]]) -> str:
        asked.extend([utterance, *(entry["message"] for entry in history)])
        return "It costs 1250 EUR."

    assert evaluate(path, answer).succeeded
    assert asked == ["Friday", "A table", "Which day?"]


def test_the_agent_is_asked_the_last_message_with_the_history_and_the_state_before_it(tmp_path: Path) -> None:
    calls = {"author": "desk", "content": {"parts": [{"function_call": {"name": "find", "args": {}}}]}}
    recorded = [said("desk", "Which day?"), said("user", "Friday"), said("desk", "Booked.")]
    path = tmp_path / "a-dataset.json"
    path.write_text(
        json.dumps(
            dataset(
                {
                    "eval_case_id": "dates",
                    "agent_data": events(
                        {"author": "user", "state_delta": {"vip": True}}, said("user", "A table"), calls, *recorded
                    ),
                    "reference": REFERENCE,
                }
            )
        )
    )
    asked: list[object] = []

    def answer(utterance: str, *, history: list[object], context: dict[str, object]) -> str:
        asked.extend([utterance, history, context])
        return "It costs 1250 EUR."

    assert evaluate(path, answer).succeeded
    assert asked == [
        "Friday",
        [
            {"role": "user", "message": "A table", "topic": None},
            {"role": "agent", "message": "Which day?", "topic": "desk"},
        ],
        {"vip": "true"},
    ]


@pytest.mark.parametrize(
    "judged",
    [
        {},
        {"reference": {"response": {"parts": []}}},
        {"rubric_groups": {"a": {"rubrics": []}}},
        {"rubric_groups": {"a": {"rubrics": [{"rubric_id": "x", "content": {"text": "?"}}]}}},
        {"rubric_groups": {"a": {"rubrics": [{"content": {"property": {"description": "Is polite."}}}]}}},
    ],
)
def test_a_case_that_nothing_can_judge_is_undecided_and_never_passes(verdicts: Judge, judged: JsonObject) -> None:
    assert {*verdicts("a.json", dataset({"prompt": content("Hi"), **judged}), "Hello").values()} == {"UNDECIDED"}


@pytest.mark.parametrize(
    ("case", "error"),
    [
        ({"prompt": content("Hi"), "agent_data": events(said("user", "Hi"))}, "1: a case has a prompt and turns of"),
        ({"agent_data": events(said("desk", "Hi"))}, "1: a case has neither a prompt nor a message of the user"),
        (
            {"prompt": {"parts": [{"text": "What is it?"}, {"inline_data": {}}]}},
            "1: a case has a message of the user that",
        ),
        ({"prompt": {"parts": []}}, "1: a case has a message of the user that is not"),
        ({"eval_case_id": "price"}, "1: the case 'price' has neither a prompt nor"),
        ({"eval_case_id": "price", "prompt": {"parts": []}}, "1: the case 'price' has a message of the user that"),
    ],
)
def test_a_case_that_cannot_be_asked_is_an_error_with_its_line_and_name(
    verdicts: Judge, case: JsonObject, error: str
) -> None:
    with pytest.raises(FormatError, match=error):
        verdicts("a.json", dataset({**case, "reference": REFERENCE}), "Hello")


def test_an_empty_dataset_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a-dataset.json"
    path.write_text('{"eval_cases": []}')

    with pytest.raises(FormatError):
        evaluate(path, lambda _: "Hello")


def test_an_eval_set_of_adk_is_not_taken_for_a_dataset(tmp_path: Path) -> None:
    path = tmp_path / "a.test.json"
    path.write_text('{"eval_set_id": "a", "eval_cases": [{"eval_id": "a", "conversation": []}]}')

    assert kind_of_file(path).format == "adk"


def test_what_a_case_has_beside_its_checks_is_named(tmp_path: Path) -> None:
    case = {
        "prompt": content("How much?"),
        "reference": REFERENCE,
        "responses": [{"response": content("5 EUR.", role="model")}],
        "context": "a price list",
    }
    (tmp_path / "d.json").write_text(json.dumps(dataset(case)))
    [translated] = translate(tmp_path / "d.json", label="d.json").cases
    assert translated.values["expectedOutcome"] == "It costs 1250 EUR."
    assert [text.partition(",")[0] for text in translated.left_out] == ["responses", "context"]
    assert translated.unjudged == ()


def test_a_dataset_without_cases_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(json.dumps(dataset()))
    with pytest.raises(FormatError, match=r"d\.json has no test cases"):
        translate(tmp_path / "d.json", label="d.json")
