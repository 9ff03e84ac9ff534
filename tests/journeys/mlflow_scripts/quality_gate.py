"""A gate in CI: the run must pass, or the reasons are printed."""

import mlflow
from mlflow.genai.scorers import PIIDetection, RegexMatch, ResponseLength, scorer


@mlflow.trace(span_type="TOOL")
def find_order(id):
    return {"state": "sent"}


def predict_fn(question):
    return f"Your order is {find_order(10045)['state']}."


@scorer
def looks_the_order_up(trace) -> bool:
    calls = trace.search_spans(name="find_order", span_type="TOOL")
    return [call.inputs for call in calls] == [{"id": 10045}]


result = mlflow.genai.evaluate(
    data=[{"inputs": {"question": "Where is order 10045?"}}, {"inputs": {"question": "Is 10045 sent?"}}],
    predict_fn=predict_fn,
    scorers=[looks_the_order_up, PIIDetection(), RegexMatch(pattern="sent"), ResponseLength(max_length=60)],
)
assert result.passed, result.reason
