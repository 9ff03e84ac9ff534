"""A notebook: an application that ran is searched, its traces get expectations, and a frame of rows is judged."""

import mlflow
import pandas as pd
from mlflow.entities import AssessmentSource, AssessmentSourceType, Feedback
from mlflow.genai.datasets import create_dataset
from mlflow.genai.scorers import scorer

# Cell 1: the application runs
mlflow.set_experiment("support")


@mlflow.trace(span_type="RETRIEVER")
def retrieve(question):
    return [{"page_content": "We open at 9.", "metadata": {"doc_uri": "hours.md"}}]


@mlflow.trace
def app(question):
    return retrieve(question)[0]["page_content"] if "open" in question else "I do not know."


for question in ("When do you open?", "Who are you?"):
    app(question)
mlflow.flush_trace_async_logging()

# Cell 2: people note what they expect
traces = mlflow.search_traces()
for trace_id, expected in zip(traces["trace_id"], ["I do not know.", "We open at 9."], strict=True):
    source = AssessmentSource(source_type=AssessmentSourceType.HUMAN, source_id="me@example.com")
    mlflow.log_expectation(trace_id=trace_id, name="expected_response", value=expected, source=source)

# Cell 3: a dataset, and the traces themselves
dataset = create_dataset(name="support_questions")
dataset.merge_records(mlflow.search_traces())


@scorer
def exact(outputs, expectations) -> bool:
    return outputs == expectations["expected_response"]


@scorer
def passages(trace):
    found = [document for span in trace.search_spans(span_type="RETRIEVER") for document in span.outputs]
    return Feedback(value=len(found), rationale=", ".join(one["metadata"]["doc_uri"] for one in found))


recorded = mlflow.genai.evaluate(data=mlflow.search_traces(), scorers=[exact, passages])

# Cell 4: the application is asked again
result = mlflow.genai.evaluate(data=dataset, predict_fn=app, scorers=[exact, passages])
frame = result.tables["eval_results"]
best = frame.sort_values("passages/value", ascending=False).iloc[0]

# Cell 5: rows of a frame
rows = pd.DataFrame({"inputs": [{"question": "open?"}], "outputs": ["We open at 9."]})
again = mlflow.genai.evaluate(data=rows.assign(expectations=[{"expected_response": "We open at 9."}]), scorers=[exact])
