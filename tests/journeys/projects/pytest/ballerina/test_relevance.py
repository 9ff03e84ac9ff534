"""The second example of the proposal: a judge returns a score, and the test makes pass or fail of it."""

import pytest
from desk import run

from evalmeta import ballerina as ai
from evalmeta import evaluation


def evaluate_relevance(answer, expected_context):
    """Stand in for the judge: the share of the expected words in the answer."""
    words = expected_context.lower().split()
    return sum(word in answer.lower() for word in words) / len(words)


@evaluation(confidence=0.85)
@pytest.mark.parametrize(
    "entry",
    [
        {"input": "When do you open?", "expectedContext": "open nine close five"},
        {"input": "Do you open on Sundays?", "expectedContext": "closed sundays"},
    ],
)
def test_evaluate_answer_relevance(entry):
    answer = ai.get_final_answer(run(entry["input"]))
    relevance_score = evaluate_relevance(answer, entry["expectedContext"])
    assert relevance_score >= 0.7, f"Relevance score {relevance_score} below threshold 0.7"
