"""Functions that are recorded while they answer: their own trace, with the spans of an installed MLflow."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import reduce, wraps
from typing import TYPE_CHECKING, cast

from evalmeta.engine.answers import generated_data
from evalmeta.systems.databricks.traces import read_trace
from evalmeta.systems.mlflow.original_traces import original_trace, with_spans
from evalmeta.systems.mlflow.tracing import is_traced, recorded_traces, trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalmeta.engine.project_code import Function
    from evalmeta.systems.mlflow.entities import Trace


def recorded(function: Function, called: str, finish: Callable[[object, Trace], object]) -> object:
    """Return a function that calls another one in a trace of its own, and returns what `finish` makes of both."""
    traced = function if is_traced(function) else trace(name=called)(function)
    named = wraps(function) if hasattr(function, "__name__") else _unchanged
    if inspect.iscoroutinefunction(function):

        async def ask_later(*words: object, **inputs: object) -> object:
            with recorded_traces() as traces, original_trace(called) as originals:
                outputs = await cast("Awaitable[object]", traced(*words, **inputs))
            return finish(outputs, reduce(with_spans, originals, traces[-1]))

        return named(ask_later)

    def ask(*words: object, **inputs: object) -> object:
        with recorded_traces() as traces, original_trace(called) as originals:
            outputs = traced(*words, **inputs)
        return finish(outputs, reduce(with_spans, originals, traces[-1]))

    return named(ask)


def _unchanged(function: object) -> object:
    return function


def recorded_model(model: object) -> object:
    """Return a function whose answers have what its spans report, if the model is a function, and else the model."""
    if not inspect.isroutine(model) or inspect.isgeneratorfunction(model) or inspect.isasyncgenfunction(model):
        return model
    asked = recorded(cast("Function", model), model.__name__, _completed)
    # What the function takes decides how it is asked.
    asked.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]
    return asked


def _completed(answer: object, recording: Trace) -> object:
    """Return an answer, with what it does not say itself; a function without steps does not report its actions."""
    if len(recording.data.spans) == 1:
        return answer
    given, traced = generated_data(answer), read_trace(recording.to_dict()).generated
    return replace(
        given,
        actions=traced.actions if given.actions is None else given.actions,
        retrieved=traced.retrieved if given.retrieved is None else given.retrieved,
        tokens=traced.tokens if given.tokens is None else given.tokens,
    )
