"""Traces of an application that ran before, searched and judged."""

import mlflow
from mlflow.entities import SpanType
from mlflow.genai.scorers import scorer


@mlflow.trace(name="look_up", span_type=SpanType.TOOL)
def look_up(city):
    if city == "Atlantis":
        raise LookupError("no such city")
    return {"degrees": 21}


@mlflow.trace(span_type=SpanType.AGENT)
def weather(city):
    with mlflow.start_span(name="plan", span_type="CHAIN") as span:
        span.set_inputs({"city": city})
        span.set_outputs(["look_up"])
    try:
        return f"{look_up(city)['degrees']} degrees"
    except LookupError:
        return "I do not know this city."


for city in ("Rome", "Atlantis"):
    weather(city)
mlflow.flush_trace_async_logging()
mlflow.log_expectation(trace_id=mlflow.get_last_active_trace_id(), name="is_known", value=False)


@scorer
def knows(outputs, trace) -> bool:
    assert trace.search_spans(name="plan")[0].inputs["city"]
    return "do not know" not in outputs


@scorer
def right_about_knowing(outputs, expectations):
    return None if not expectations else ("do not know" not in outputs) == expectations["is_known"]


@scorer
def asked_for(inputs) -> bool:
    return inputs["city"] in {"Rome", "Atlantis"}


@scorer
def tools(trace):
    return len(trace.search_spans(span_type=SpanType.TOOL))


result = mlflow.genai.evaluate(
    data=mlflow.search_traces(max_results=2), scorers=[knows, right_about_knowing, asked_for, tools]
)
