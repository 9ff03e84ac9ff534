"""Evaluations as in Google's ADK: eval sets in files, criteria next to them, an error if one fails.

    from evalmeta.adk import AgentEvaluator

    async def test_weather():
        await AgentEvaluator.evaluate(answer, "evaluation/tests")

`evaluate` does the same without `await`. Agents are the same as in `evalmeta.evaluate`.
"""

from __future__ import annotations

from evalmeta.systems.adk.evaluator import (
    NUM_RUNS,
    AgentEvaluator,
    EvaluationFailed,
    How,
    evaluate,
    evaluate_async,
    migrate_eval_data_to_new_schema,
)

__all__ = [
    "NUM_RUNS",
    "AgentEvaluator",
    "EvaluationFailed",
    "How",
    "evaluate",
    "evaluate_async",
    "migrate_eval_data_to_new_schema",
]
