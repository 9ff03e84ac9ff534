"""`mlflow.evaluate` for agents: evaluation sets of Databricks, with functions that are recorded while they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.event_loop import run_to_end
from evalmeta.systems.databricks import evaluation
from evalmeta.systems.mlflow.recorded_agents import recorded_model

if TYPE_CHECKING:
    from typing import Unpack

    from evalmeta.systems.databricks.evaluation import EvaluationResult, How


def evaluate(**how: Unpack[How]) -> EvaluationResult:
    """Judge the answers of an evaluation set, or ask an agent for them, as `mlflow.evaluate` does.

    Args:
        how: See `How`.

    Raises:
        FormatError: The data does not match the schema; `problems` has every reason with its row.
        UsageError: A keyword or another argument is not valid, or answers are missing and there is no model.
        NotFound: The file cannot be found.
        SettingsError: The model or the rater cannot be used.
    """
    return run_to_end(evaluate_async(**how))


async def evaluate_async(**how: Unpack[How]) -> EvaluationResult:
    """Do what `evaluate` does, in the running event loop."""
    if "model" in how:
        how["model"] = recorded_model(how["model"])
    return await evaluation.evaluate_async(**how)
