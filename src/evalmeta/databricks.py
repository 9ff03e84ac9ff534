"""Databricks Agent Evaluation in Python: evaluation sets judged on this machine, with Databricks' names.

from evalmeta import databricks

result = databricks.evaluate(
    data=pd.DataFrame(eval_set),
    evaluator_config={"databricks-agent": {"global_guidelines": ["The response must be in English"]}},
)
result.metrics["response/llm_judged/correctness/rating/percentage"]
result.tables["eval_results"]

Scripts with `import mlflow` need only another import: `from evalmeta import databricks as mlflow`.
"""

from __future__ import annotations

from evalmeta.systems.databricks.evaluation import EvaluationResult
from evalmeta.systems.mlflow.agent_evaluation import evaluate, evaluate_async
from evalmeta.systems.mlflow.delegation import member_of
from evalmeta.systems.mlflow.tracing import search_traces, start_span, trace
from evalmeta.systems.mlflow.tracking import (
    active_run,
    autolog,
    end_run,
    log_artifact,
    log_dict,
    log_metric,
    log_metrics,
    log_param,
    log_params,
    log_table,
    log_text,
    login,
    set_experiment,
    set_registry_uri,
    set_tag,
    set_tags,
    set_tracking_uri,
    start_run,
)

__all__ = [
    "EvaluationResult",
    "active_run",
    "autolog",
    "end_run",
    "evaluate",
    "evaluate_async",
    "log_artifact",
    "log_dict",
    "log_metric",
    "log_metrics",
    "log_param",
    "log_params",
    "log_table",
    "log_text",
    "login",
    "search_traces",
    "set_experiment",
    "set_registry_uri",
    "set_tag",
    "set_tags",
    "set_tracking_uri",
    "start_run",
    "start_span",
    "trace",
]


def __getattr__(name: str) -> object:
    return member_of("", name)
