"""Agent Evaluation of Databricks for retrieval: recorded answers with their passages, in a notebook."""

import mlflow
import pandas as pd

eval_set = [
    {
        "request": "What is the difference between reduceByKey and groupByKey?",
        "response": "reduceByKey aggregates data before shuffling.",
        "retrieved_context": [
            {"content": "reduceByKey reduces data transfer.", "doc_uri": "docs/rdd.md"},
            {"content": "This is wrong.", "doc_uri": "docs/other.md"},
        ],
        "expected_retrieved_context": [{"doc_uri": "docs/rdd.md"}, {"doc_uri": "docs/shuffle.md"}],
        "expected_facts": ["reduceByKey aggregates data before shuffling"],
        "guidelines": {"english": ["The response must be in English"]},
    },
    {
        "request": "What is Spark?",
        "response": "This is wrong.",
        "retrieved_context": [{"content": "Spark is an engine.", "doc_uri": "docs/spark.md"}],
        "expected_retrieved_context": [{"doc_uri": "docs/spark.md"}],
        "expected_response": "Spark is an engine.",
        "guidelines": {"english": ["The response must be in English"]},
    },
]
with mlflow.start_run(run_name="rag"):
    result = mlflow.evaluate(
        data=pd.DataFrame(eval_set),
        model_type="databricks-agent",
        evaluator_config={
            "databricks-agent": {
                "metrics": ["chunk_relevance_precision", "correctness", "groundedness", "guideline_adherence"]
            }
        },
    )
display = result.tables["eval_results"]
