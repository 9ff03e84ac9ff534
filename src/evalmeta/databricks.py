"""Databricks Agent Evaluation in Python: evaluation sets judged on this machine, with Databricks' names.

from evalmeta import databricks

result = databricks.evaluate(
    data=pd.DataFrame(eval_set),
    evaluator_config={"databricks-agent": {"global_guidelines": ["The response must be in English"]}},
)
result.metrics["response/llm_judged/correctness/rating/percentage"]
result.tables["eval_results"]
"""

from __future__ import annotations

from evalmeta.systems.databricks.evaluation import EvaluationResult, evaluate, evaluate_async

__all__ = ["EvaluationResult", "evaluate", "evaluate_async"]
