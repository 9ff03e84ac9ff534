from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError
from evalmeta.systems.test_tools.pydantic_evals import translate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Judge = Callable[..., dict[str, str]]

CALLS = {"response": "Done.", "actions": [{"name": "refund", "input": {"id": "1", "sum": 5}}, "mail"]}


def dataset(*evaluators: object, **case: object) -> dict[str, object]:
    return {"cases": [{"inputs": "hello", "evaluators": [*evaluators], **case}]}


@pytest.mark.parametrize(
    ("evaluator", "passes", "fails"),
    [
        ({"Equals": "HELLO"}, "HELLO", "hello"),
        ({"Equals": {"value": [1, 2]}}, "[1, 2]", "[1]"),
        ({"Contains": "ell"}, "hello", "HELLO"),
        ({"Contains": {"value": "ELL", "case_sensitive": False}}, "hello", "halo"),
        ({"Contains": {"value": 12, "as_strings": True}}, "at 12:00", "at noon"),
        ({"IsInstance": "dict"}, "{}", "[]"),
        ({"ToolCorrectness": {"expected_tools": ["mail", "refund"]}}, CALLS, {**CALLS, "actions": ["mail"]}),
        ({"ToolCorrectness": {"expected_tools": ["mail"], "allow_extra": True}}, CALLS, {**CALLS, "actions": ["x"]}),
        (
            {"TrajectoryMatch": {"expected_trajectory": ["a", "b"], "order": "exact"}},
            {**CALLS, "actions": ["a", "b"]},
            {**CALLS, "actions": ["b", "a"]},
        ),
        (
            {"ArgumentCorrectness": {"tool_name": "refund", "expected_arguments": {"id": "1"}}},
            CALLS,
            {**CALLS, "actions": [{"name": "refund", "input": {"id": "2"}}]},
        ),
        ({"MaxToolCalls": 2}, CALLS, {**CALLS, "actions": ["a", "b", "c"]}),
    ],
)
def test_an_evaluator_passes_and_fails_as_in_pydantic_evals(
    verdicts: Judge, evaluator: object, passes: object, fails: object
) -> None:
    assert set(verdicts("d.json", dataset(evaluator), passes).values()) == {"PASS"}
    assert "FAILURE" in verdicts("d.json", dataset(evaluator), fails).values()


@pytest.mark.parametrize(
    "evaluator",
    [
        "PoliteEnough",
        {"PoliteEnough": {"level": 3}},
        {"HasMatchingSpan": {"query": {"name_contains": "x"}}},
        {"Contains": {"value": {"a": 1}}},
        {"IsInstance": "Order"},
        {"LLMJudge": {"model": "x"}},
        {"MaxDuration": "soon"},
        {"ArgumentCorrectness": {"tool_name": "a", "expected_arguments": {"b": 1}, "occurrence": "last"}},
    ],
)
def test_an_evaluator_that_evalmeta_cannot_make_is_undecided(verdicts: Judge, evaluator: object) -> None:
    judged = verdicts("d.json", dataset({"Equals": "x"}, evaluator), "hello")
    assert sorted(judged.values()) == ["FAILURE", "UNDECIDED"]


def test_an_expected_output_is_compared_only_if_an_evaluator_says_so(verdicts: Judge) -> None:
    case = {"inputs": "hello", "expected_output": "HELLO"}
    shared = {"cases": [case], "evaluators": ["EqualsExpected"]}
    assert verdicts("d.json", shared, "HELLO") == {'equals "HELLO"': "PASS"}
    assert verdicts("d.json", {"cases": [case], "evaluators": [{"MaxDuration": "PT1M"}]}, "x") == {
        "latency_ms at most 60000": "PASS"
    }
    assert verdicts("d.json", dataset("EqualsExpected"), "x") == {}


def test_mappings_reach_an_agent_as_keywords(tmp_path_factory: pytest.TempPathFactory) -> None:
    from evalmeta import evaluate

    path = tmp_path_factory.mktemp("d") / "d.yaml"
    path.write_text("cases:\n- inputs: {a: 1, b: x}\n  expected_output: 1x\nevaluators: [EqualsExpected]\n")
    assert evaluate(path, lambda *, a, b: f"{a}{b}").succeeded


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"cases": [{"inputs": "a", "evaluators": [["Contains"]]}]}, "an evaluator is not a name"),
        ({"cases": [{"inputs": "a", "evaluators": "Contains"}]}, "'evaluators' is not a list"),
        ({"cases": [{"inputs": "a", "evaluators": []}, {"name": "b"}]}, "a case has no 'inputs'"),
        ({"cases": [{"inputs": "a", "evaluators": []}, "b"]}, "a case is not a mapping"),
        ({"cases": [{"inputs": "a", "evaluators": []}, {"inputs": "b", "evaluator": []}]}, "no key 'evaluator'"),
    ],
)
def test_a_dataset_that_cannot_be_read_says_why(verdicts: Judge, content: object, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        verdicts("d.json", content, "a")


@pytest.mark.parametrize(
    ("evaluator", "left_out"),
    [
        ({"IsInstance": "str"}, "the evaluator IsInstance: str, which every answer as text passes"),
        ({"LLMJudge": {"rubric": "Be kind", "assertion": False}}, "the score of LLMJudge for 'Be kind'"),
        ({"GEval": {"criteria": "kindness"}}, "the score of GEval for 'kindness'"),
        ({"TrajectoryMatch": {"expected_trajectory": ["a"]}}, 'the score of TrajectoryMatch for ["a"]'),
    ],
)
def test_an_evaluator_that_decides_nothing_is_named_and_makes_no_check(
    verdicts: Judge, tmp_path: Path, evaluator: object, left_out: str
) -> None:
    assert verdicts("d.json", dataset({"Equals": "x"}, evaluator), "x") == {'equals "x"': "PASS"}
    [case] = translate(tmp_path / "d.json", label="d.json").cases
    assert (case.unjudged, len(case.left_out)) == ((), 1)
    assert left_out in case.left_out[0]


def test_a_judge_has_its_rubric_with_the_expected_output_and_its_model_is_named(tmp_path: Path) -> None:
    judge = {"LLMJudge": {"rubric": "Is it kind?", "include_expected_output": True, "model": "openai:gpt-5"}}
    (tmp_path / "d.json").write_text(json.dumps(dataset(judge, expected_output="Hello!")))
    [case] = translate(tmp_path / "d.json", label="d.json").cases
    assert case.values["rubric"] == "Is it kind?\nThe expected output is: Hello!"
    assert case.left_out == ("the model openai:gpt-5 of LLMJudge; the project's rater judges",)


@pytest.mark.parametrize(
    ("seconds", "milliseconds"), [(1.5, 1500), ("PT1H2M3.5S", 3_723_500), ("PT2M", 120_000), (0.0001, 1)]
)
def test_a_duration_is_a_number_of_seconds_or_as_pydantic_writes_it(
    tmp_path: Path, seconds: object, milliseconds: int
) -> None:
    (tmp_path / "d.json").write_text(json.dumps(dataset({"MaxDuration": seconds})))
    [case] = translate(tmp_path / "d.json", label="d.json").cases
    assert case.values["latency_ms"] == milliseconds


def test_report_evaluators_are_named_and_a_file_without_cases_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("name: Orders\nreport_evaluators: [ConfusionMatrix]\ncases: [{inputs: a}]\n")
    translation = translate(path, label="d.yaml")
    assert translation.left_out == ("the report evaluator ConfusionMatrix",)
    assert (translation.head, translation.cases[0].line) == ({"name": "Orders"}, 3)
    path.write_text("case: []\n")
    with pytest.raises(FormatError, match=r"d\.yaml is not a dataset of pydantic-evals"):
        translate(path, label="d.yaml")
