"""Traces and scorers of sessions of MLflow itself: the same metrics by evalmeta and by MLflow."""

import json

import mlflow as original
from mlflow.genai.scorers import scorer as original_scorer

from evalmeta import mlflow


@original.trace
def chat(message, session):
    original.update_current_trace(metadata={"mlflow.trace.session": session})
    return f"About {message}"


for session, messages in {"a": ["orders", "returns"], "b": ["hours"]}.items():
    for message in messages:
        chat(message, session)
original.flush_trace_async_logging()


@original_scorer
def turns(session):
    assert type(session[0]).__module__.startswith("mlflow."), type(session[0])
    return len(session)


@original_scorer
def newest(session):
    return "returns" in session[0].data.request


scorers = [turns, newest]
ours = mlflow.genai.evaluate(data=original.search_traces(return_type="list"), scorers=scorers)
frame = mlflow.genai.evaluate(data=original.search_traces(), scorers=scorers)
theirs = original.genai.evaluate(data=original.search_traces(return_type="list"), scorers=scorers)
print(json.dumps([{name: float(value) for name, value in got.metrics.items()} for got in (ours, frame, theirs)]))
