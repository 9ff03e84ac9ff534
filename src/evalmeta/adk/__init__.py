"""Evaluations as Google's ADK has them: eval sets in files, criteria beside them, an error when one is missed.

    from evalmeta.adk import AgentEvaluator

    async def test_weather():
        await AgentEvaluator.evaluate(answer, "evaluation/tests")

`evaluate` does the same without an event loop. Agents are those that `evalmeta.evaluate` takes.
"""

from __future__ import annotations

from evalmeta.adk.evaluator import NUM_RUNS, AgentEvaluator, How, evaluate, evaluate_async
from evalmeta.adk.failures import EvaluationFailed
from evalmeta.adk.migration import migrate_eval_data_to_new_schema

__all__ = [
    "NUM_RUNS",
    "AgentEvaluator",
    "EvaluationFailed",
    "How",
    "evaluate",
    "evaluate_async",
    "migrate_eval_data_to_new_schema",
]
