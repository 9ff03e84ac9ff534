"""The arguments of ADK's custom metrics, which functions of users receive.

Source: google-adk 2.13, custom_metric_evaluator.py, eval_case.py and eval_metrics.py. The objects are mappings whose
keys are attributes too, so that ADK's models accept them: `PerInvocationResult(actual_invocation=...)`. If a function's
module has imported google-adk, the function receives ADK's own objects.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue


class AdkObject(dict[str, "JsonValue"]):
    """A mapping whose keys are attributes too."""

    def __getattr__(self, name: str) -> JsonValue:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def metric(name: str, criterion: JsonObject) -> AdkObject:
    """Return the metric to compute; the threshold is in the criterion, as in ADK."""
    return AdkObject(metric_name=name, threshold=None, criterion=AdkObject(criterion))


def invocation(
    number: int, utterance: str, response: str | None, calls: Iterable[tuple[str, JsonObject]] | None
) -> AdkObject:
    """Return one turn; None stands for an answer or calls that are unknown or not expected."""
    return AdkObject(
        invocation_id=str(number),
        user_content=_content(utterance, "user"),
        final_response=None if response is None else _content(response, "model"),
        intermediate_data=None if calls is None else _intermediate_data(calls),
    )


def _content(text: str, role: str) -> AdkObject:
    return AdkObject(parts=[AdkObject(text=text)], role=role)


def _intermediate_data(calls: Iterable[tuple[str, JsonObject]]) -> AdkObject:
    uses: list[JsonValue] = [AdkObject(id=None, name=name, args=dict(args)) for name, args in calls]
    return AdkObject(tool_uses=uses, tool_responses=[], intermediate_responses=[])


_METRICS: Final = "google.adk.evaluation.eval_metrics"
_CASES: Final = "google.adk.evaluation.eval_case"


class _Model(Protocol):
    """A model of pydantic."""

    def model_validate(self, value: object) -> object:
        """Return an instance of the model."""


def as_adk_has_them(metric: AdkObject, *invocations: Sequence[AdkObject]) -> tuple[object, ...]:
    """Return the arguments as ADK's own objects if google-adk is imported, else as they are; never import it."""
    if _METRICS not in sys.modules or _CASES not in sys.modules:
        return metric, *invocations
    models = getattr(sys.modules[_METRICS], "EvalMetric", None), getattr(sys.modules[_CASES], "Invocation", None)
    metric_model, invocation_model = (cast("_Model", model) for model in models)
    try:
        return (
            metric_model.model_validate(metric),
            *([invocation_model.model_validate(turn) for turn in turns] for turns in invocations),
        )
    except (AttributeError, ValueError):
        # Another version of google-adk has other keys; its models may still accept the mappings.
        return metric, *invocations
