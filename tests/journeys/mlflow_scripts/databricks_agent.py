"""Agent Evaluation of Databricks: a model of model_input, and its evaluator configuration."""

import mlflow
import pandas as pd

asked = []


def model(model_input):
    asked.append(model_input)
    question = model_input["messages"][-1]["content"]
    return {"choices": [{"message": {"role": "assistant", "content": f"About {question}"}}]}


result = mlflow.evaluate(
    data=pd.DataFrame(
        {
            "request": [
                "What is Spark?",
                {"messages": [{"role": "user", "content": "What is wrong?"}], "custom_inputs": {"user": "7"}},
                {"query": "And now?", "history": [{"role": "assistant", "content": "Hello"}]},
            ],
            "expected_facts": [["an engine"], ["an error"], ["a reply"]],
        }
    ),
    model=model,
    model_type="databricks-agent",
    evaluator_config={
        "databricks-agent": {
            "global_guidelines": {"english": ["The response must be in English"]},
            "metrics": ["correctness", "global_guideline_adherence", "chunk_relevance_precision"],
        }
    },
)
