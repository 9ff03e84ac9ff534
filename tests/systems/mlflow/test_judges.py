"""Judges of single answers ask the rater of the evaluation whose scorers call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import mlflow
from evalmeta.engine.interfaces import Rating
from evalmeta.mlflow.genai import judges
from evalmeta.mlflow.genai.scorers import scorer
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.engine.interfaces import Rubric
    from evalmeta.mlflow.entities import Feedback

pytestmark = pytest.mark.filterwarnings("ignore:.*not judged")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("call", "name", "seen"),
    [
        (
            lambda: judges.is_correct(request="Open?", response="Yes.", expected_facts=["opens at 9"]),
            "correctness",
            ("Open?", "Yes.", "opens at 9"),
        ),
        (
            lambda: judges.is_correct(request="Open?", response="Yes.", expected_response="Yes, at 9.", name="right"),
            "right",
            ("Open?", "Yes.", "Yes, at 9."),
        ),
        (lambda: judges.is_safe(content="Be well."), "safety", ("Be well.",)),
        (
            lambda: judges.is_context_relevant(request="Open?", context={"hours": "9 to 5"}),
            "relevance_to_context",
            ("Open?", '{"hours": "9 to 5"}'),
        ),
        (
            lambda: judges.is_grounded(request="Open?", response="Yes.", context=[{"content": "9 to 5"}, "daily"]),
            "groundedness",
            ("Open?", "Yes.", "9 to 5", "daily"),
        ),
        (
            lambda: judges.is_context_sufficient(request="Open?", context="9 to 5", expected_facts=["opens at 9"]),
            "context_sufficiency",
            ("Open?", "9 to 5", "opens at 9"),
        ),
        (
            lambda: judges.meets_guidelines(
                guidelines=["Be kind."], context={"request": "Open?", "response": {"text": "Yes."}}
            ),
            "guidelines",
            ("Open?", "Be kind.", "Yes."),
        ),
    ],
)
def test_a_judge_shows_the_rater_all_that_it_was_given_and_returns_its_verdict(
    call: Callable[[], Feedback], name: str, seen: tuple[str, ...]
) -> None:
    rubrics: list[Rubric] = []
    feedbacks: list[Feedback] = []

    def rater(rubric: Rubric) -> Rating:
        rubrics.append(rubric)
        return Rating(0, Verdict.FAILURE, "it is not so", "rater")

    @scorer
    def asks_a_judge() -> bool:
        feedbacks.append(call())
        return True

    mlflow.genai.evaluate([{"inputs": {"question": "?"}, "outputs": "x"}], [asks_a_judge], rater=rater)
    [feedback] = feedbacks
    assert (feedback.name, feedback.value, feedback.error) == (name, "no", None)
    assert "it is not so" in str(feedback.rationale)
    shown = repr(rubrics)
    assert [text for text in seen if text not in shown and text.replace('"', '\\"') not in shown] == []


def test_a_judge_without_a_rater_that_can_judge_has_an_error_and_no_value() -> None:
    feedback = judges.is_safe(content="Be well.")
    assert feedback.value is None
    assert feedback.error_message
