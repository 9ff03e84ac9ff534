from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import report_runs as make
from evalmeta.model.generated_data import Action, GeneratedData, Tokens
from evalmeta.model.run import EarlierTurn, TestResult, Verdict
from evalmeta.report import render as render_as
from evalmeta.report.text import clean

if TYPE_CHECKING:
    from evalmeta.report.report import Report

render = partial(render_as, "jsonl")

ANSWER = {"outcome", "topic", "actions", "latency_ms", "tokens"}
OWN = {"definition", "iteration", "number", "verdict", "partly_judged", "utterance", "error", "results", "label"}
KEYS = OWN | {"earlier"} | ANSWER


def test_conversations_jsonl(snapshot: str) -> None:
    assert render([make.conversations()]) == snapshot


def test_a_line_has_texts_actions_and_results() -> None:
    action = Action("FindOrder", {"id": "R-100"}, {"found": True}, 12.5)
    answer = GeneratedData("Yes.", "Returns", (action,), 300.5, tokens=Tokens(12, None), trace={"long": "story"})
    case = make.case(1, Verdict.PASS, make.TOPIC_PASSED)._replace(generated=answer)
    line = json.loads(render([make.report(case)]))
    assert {name: line[name] for name in ANSWER} == {
        "outcome": "Yes.",
        "topic": "Returns",
        "actions": [{"name": "FindOrder", "input": {"id": "R-100"}, "output": {"found": True}, "latency_ms": 12.5}],
        "latency_ms": 300.5,
        "tokens": {"input": 12, "output": None},
    }
    assert (line["verdict"], line["results"][0]["name"]) == ("PASS", "topic_sequence_match")


def test_a_streamed_answer_has_the_time_until_its_first_token() -> None:
    answer = GeneratedData("Yes.", first_token_ms=120.5)
    earlier = (EarlierTurn("Where?", answer),)
    case = make.case(1, Verdict.PASS, make.TOPIC_PASSED)._replace(generated=answer, earlier=earlier)
    line = json.loads(render([make.report(case)]))
    assert [turn["first_token_ms"] for turn in (line, *line["earlier"])] == [120.5, 120.5]


def test_a_reported_state_and_handoffs_are_in_the_line() -> None:
    answer = GeneratedData("Yes.", state={}, handoffs=())
    earlier = (EarlierTurn("Where?", GeneratedData("Here.", state={"a": [1]}, handoffs=("Orders",))),)
    case = make.case(1, Verdict.PASS, make.TOPIC_PASSED)._replace(generated=answer, earlier=earlier)
    line = json.loads(render([make.report(case)]))
    assert [(turn["state"], turn["handoffs"]) for turn in (line, *line["earlier"])] == [
        ({}, []),
        ({"a": [1]}, ["Orders"]),
    ]


def test_a_case_without_an_answer_says_why() -> None:
    line = json.loads(render([make.report(make.MIXED_CASES[2])]))
    assert (line["outcome"], line["verdict"]) == (None, "ERROR")
    assert line["error"] == "the agent did not answer within 120 s"


def test_nan_is_null_and_not_0() -> None:
    answer = GeneratedData("Yes.", actions=(Action("A", {"at": float("inf")}, [float("nan"), 0.5]),))
    result = TestResult("x", Verdict.UNDECIDED, score=float("nan"))
    line = json.loads(render([make.report(make.case(1, Verdict.UNDECIDED, result)._replace(generated=answer))]))
    assert line["results"][0]["score"] is None
    assert (line["actions"][0]["input"], line["actions"][0]["output"]) == ({"at": None}, [None, 0.5])


@given(st.lists(make.reports, max_size=2))
def test_every_case_is_one_line_with_all_keys(reports: list[Report]) -> None:
    text = render(reports)
    assert clean(text) == text
    lines = [json.loads(line) for line in text.split("\n")[:-1]]
    cases = [(report, case) for report in reports for case in report.run.cases]
    assert all(line.keys() - {"first_token_ms"} == KEYS for line in lines)
    assert [line["utterance"] for line in lines] == [case.utterance for _, case in cases]
    assert [line["verdict"] for line in lines] == [report.verdict_of(case) for report, case in cases]


def test_a_line_has_values_that_fast_encoders_refuse() -> None:
    answer = GeneratedData("lone \ud800", None, (Action("Count", {"of": 2**70}, float("nan")),))
    case = make.case(1, Verdict.PASS, make.TOPIC_PASSED)._replace(generated=answer)
    text = render([make.report(case)])
    line = json.loads(text)
    assert clean(text) == text
    assert (line["outcome"], line["actions"][0]["input"]) == ("lone \ud800", {"of": 2**70})
    assert line["actions"][0]["output"] is None
    assert ", " not in text.replace("lone ", "")
