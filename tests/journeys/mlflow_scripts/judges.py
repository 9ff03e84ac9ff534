"""Built-in scorers, guidelines, a judge by instructions, and a scorer that calls a judge."""

import mlflow
from mlflow.genai import make_judge
from mlflow.genai.judges import meets_guidelines
from mlflow.genai.scorers import (
    Correctness,
    ExpectationsGuidelines,
    Guidelines,
    RelevanceToQuery,
    RetrievalGroundedness,
    Safety,
    scorer,
)


@mlflow.trace(span_type="RETRIEVER")
def retrieve(question):
    return [{"page_content": "Spark is an engine.", "metadata": {"doc_uri": "spark.md"}, "id": "1"}]


@mlflow.trace
def predict_fn(question):
    retrieve(question)
    return "Spark is an engine." if "Spark" in question else "This is wrong."


@scorer
def friendly(inputs, outputs):
    return meets_guidelines(guidelines="Be friendly.", context={"request": inputs, "response": outputs})


english = Guidelines(name="english", guidelines=["The response must be in English"])
concise = make_judge(
    name="concise", instructions="{{ outputs }} answers {{ inputs }} in one sentence.", feedback_value_type=bool
)
feedback = Correctness()(
    inputs={"question": "What is Spark?"}, outputs="Spark is an engine.", expectations={"expected_facts": ["an engine"]}
)
result = mlflow.genai.evaluate(
    data=[
        {
            "inputs": {"question": "What is Spark?"},
            "expectations": {"expected_facts": ["an engine"], "guidelines": ["Names Spark."]},
        },
        {
            "inputs": {"question": "What is RDD?"},
            "expectations": {"expected_response": "A dataset.", "guidelines": ["Names RDD."]},
        },
    ],
    predict_fn=predict_fn,
    scorers=[
        *(Correctness(), RelevanceToQuery(), Safety(), RetrievalGroundedness(), ExpectationsGuidelines()),
        *(english, concise, friendly),
    ],
)
