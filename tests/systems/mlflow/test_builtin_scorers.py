"""Built-in scorers of single answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import mlflow
from evalmeta.errors import UsageError
from evalmeta.mlflow.genai import scorers
from evalmeta.systems.mlflow.tracing import recorded_traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.model.json_value import JsonValue
    from evalmeta.systems.mlflow.builtin_scorers import JudgedScorer


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("judge", "expectations", "seen"),
    [
        (scorers.Fluency(), {}, "The answer is fluent"),
        (scorers.Summarization(), {}, "The answer is a summary of the text in the question"),
        (scorers.ToolCallEfficiency(), {}, "No action is redundant"),
        (scorers.ToolCallCorrectness(), {}, "The actions and their inputs are the right ones"),
        (
            scorers.ToolCallCorrectness(),
            {"expected_tool_calls": [{"name": "find"}]},
            "The actions are these, with inputs that mean the same",
        ),
        (scorers.Equivalence(), {"expected_response": {"open": True}}, '{"open": true}'),
        (scorers.Correctness(), {"expected_response": ["Yes."]}, '["Yes."]'),
        (scorers.Correctness(), {"expected_facts": "opens at 9"}, "opens at 9"),
        (scorers.ExpectationsGuidelines(), {"guidelines": "Be kind."}, "Be kind."),
        (scorers.Guidelines(guidelines="Be short."), {}, "Be short."),
    ],
)
def test_a_judged_scorer_asks_the_rater_for_what_its_arguments_and_its_row_say(
    judge: JudgedScorer, expectations: dict[str, JsonValue], seen: str
) -> None:
    asked = judge.expectation(expectations)
    assert asked.label == judge.name
    assert any(seen in text for text in (asked.expected_value or "", *_texts_in(asked.terms)))


def _texts_in(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts_in(part)]
    if isinstance(value, list):
        return [text for part in value for text in _texts_in(part)]
    return [str(value)]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: scorers.RegexMatch(pattern="("), "'(' is not a regular expression"),
        (scorers.ResponseLength, "ResponseLength needs min_length or max_length"),
        (lambda: scorers.ResponseLength(min_length=3, max_length=2), "min_length 3 is more than max_length 2"),
    ],
)
def test_a_scorer_that_can_never_be_right_is_refused_when_it_is_made(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize(
    ("judge", "passes", "fails"),
    [
        (scorers.RegexMatch(pattern="yes", match_type="fullmatch"), "yes", "yes."),
        (scorers.RegexMatch(pattern="YES", case_insensitive=True), "oh yes", "no"),
        (scorers.ResponseLength(min_length=2, unit="words"), "two words", "longword"),
        (scorers.ResponseLength(min_length=2, max_length=3), "abc", "abcd"),
        (scorers.ResponseLength(max_length=3), "", "abcd"),
    ],
)
def test_a_text_scorer_passes_and_fails_by_the_text_alone(judge: scorers.RegexMatch, passes: str, fails: str) -> None:
    assert (judge(outputs=passes).value, judge(outputs=fails).value) == ("yes", "no")


def test_a_text_scorer_reads_the_answer_of_a_trace_and_a_missing_answer_fails() -> None:
    judge = scorers.RegexMatch(pattern="Yes")
    with recorded_traces() as traces, mlflow.start_span("agent") as span:
        span.set_outputs("Yes.")
    assert judge(trace=traces[0]).value == "yes"
    missing = judge()
    assert (missing.value, missing.rationale) == ("no", "there is no answer")


def test_all_scorers_that_need_no_arguments_are_made_once_each() -> None:
    names = [made.name for made in scorers.get_all_scorers()]
    assert len(names) == len({*names}) == 14
    assert {"safety", "correctness", "pii_detection", "tool_call_correctness"} <= {*names}


def test_a_scorer_cannot_be_registered_and_says_where_to_keep_it() -> None:
    for refuse in (scorers.Safety().register, scorers.Safety().start):
        with pytest.raises(UsageError, match="the scorer 'safety' cannot be registered") as caught:
            refuse(name="x")
        assert caught.value.actions == ("Keep the scorer in your code, and pass it to evaluate.",)
