"""predict_fn, functions with @scorer that return bools, numbers, words and feedback, and aggregations."""

import mlflow
from mlflow.entities import AssessmentSource, AssessmentSourceType, Feedback
from mlflow.genai.scorers import scorer

mlflow.set_experiment("shop")


@mlflow.trace(span_type="TOOL")
def get_order(id):
    return {"state": "sent", "id": id}


@mlflow.trace(span_type="RETRIEVER")
def search(query):
    return [{"page_content": "Sent in a day", "metadata": {"doc_uri": "sending.md"}, "id": "1"}]


def predict_fn(question, style="short"):
    if "order" in question:
        get_order("10045")
        search(question)
        return "It is on its way." if style == "short" else "Your order 10045 is on its way to you."
    return "From Monday to Friday."


@scorer
def exact_match(outputs, expectations) -> bool:
    return outputs == expectations["expected_response"]


@scorer(aggregations=["min", "max", "mean", "median", "variance", "p90"])
def length(outputs) -> int:
    return len(outputs)


@scorer
def tool_calls(trace) -> int:
    return len(trace.search_spans(span_type="TOOL"))


@scorer
def tone(inputs, outputs):
    value = "formal" if inputs.get("style") == "long" else "plain"
    return Feedback(value=value, rationale="by its style", source=AssessmentSource("HUMAN", "me"))


@scorer
def polite(outputs):
    return "yes" if "your" in outputs.lower() else "no"


@scorer
def facets(outputs):
    source = AssessmentSource(source_type=AssessmentSourceType.CODE, source_id="facets")
    return [
        Feedback(name="ends_with_dot", value=outputs.endswith("."), source=source),
        Feedback(name="words", value=len(outputs.split()), rationale="counted", source=source),
    ]


@scorer
def breaks_at_long_ones(outputs):
    if len(outputs) > 30:
        raise ValueError("too long for me")
    return True


@scorer
def silent(outputs):
    return None


data = [
    {"inputs": {"question": "When are you open?"}, "expectations": {"expected_response": "From Monday to Friday."}},
    {"inputs": {"question": "Where is my order?"}, "expectations": {"expected_response": "It is lost."}},
    {
        "inputs": {"question": "Where is my order?", "style": "long"},
        "expectations": {"expected_response": "Your order 10045 is on its way to you."},
        "tags": {"topic": "orders"},
    },
]
result = mlflow.genai.evaluate(
    data=data,
    predict_fn=predict_fn,
    scorers=[exact_match, length, tool_calls, tone, polite, facets, breaks_at_long_ones, silent],
)
