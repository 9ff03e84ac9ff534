"""MLflow 3 in Python: scripts run with another import, and evalmeta's engine, rater, journal and reports.

from evalmeta import mlflow
from evalmeta.mlflow.genai.scorers import Correctness, Guidelines

result = mlflow.genai.evaluate(data=rows, predict_fn=agent, scorers=[Correctness(), Guidelines(guidelines="...")])
result.metrics["correctness/mean"]
"""

from __future__ import annotations

from evalmeta.errors import EvalmetaError as MlflowException
from evalmeta.mlflow import entities, genai
from evalmeta.systems.mlflow.agent_evaluation import evaluate
from evalmeta.systems.mlflow.delegation import member_of
from evalmeta.systems.mlflow.tracing import (
    flush_trace_async_logging,
    get_active_trace_id,
    get_current_active_span,
    get_last_active_trace_id,
    get_trace,
    log_expectation,
    log_feedback,
    search_traces,
    start_span,
    trace,
    update_current_trace,
)
from evalmeta.systems.mlflow.tracking import (
    active_run,
    autolog,
    end_run,
    get_experiment_by_name,
    get_tracking_uri,
    log_artifact,
    log_artifacts,
    log_dict,
    log_figure,
    log_input,
    log_metric,
    log_metrics,
    log_param,
    log_params,
    log_table,
    log_text,
    login,
    set_active_model,
    set_experiment,
    set_registry_uri,
    set_tag,
    set_tags,
    set_tracking_uri,
    start_run,
)

__all__ = [
    "MlflowException",
    "active_run",
    "autolog",
    "end_run",
    "entities",
    "evaluate",
    "flush_trace_async_logging",
    "genai",
    "get_active_trace_id",
    "get_current_active_span",
    "get_experiment_by_name",
    "get_last_active_trace_id",
    "get_trace",
    "get_tracking_uri",
    "log_artifact",
    "log_artifacts",
    "log_dict",
    "log_expectation",
    "log_feedback",
    "log_figure",
    "log_input",
    "log_metric",
    "log_metrics",
    "log_param",
    "log_params",
    "log_table",
    "log_text",
    "login",
    "search_traces",
    "set_active_model",
    "set_experiment",
    "set_registry_uri",
    "set_tag",
    "set_tags",
    "set_tracking_uri",
    "start_run",
    "start_span",
    "trace",
    "update_current_trace",
]


def __getattr__(name: str) -> object:
    return member_of("", name)
