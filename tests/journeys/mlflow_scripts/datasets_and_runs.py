"""A dataset, a run with parameters, autologging, and a data frame of results."""

import mlflow
from mlflow.genai.datasets import create_dataset
from mlflow.genai.scorers import scorer

mlflow.openai.autolog()
dataset = create_dataset(name="shop_questions")
dataset.merge_records(
    [
        {"inputs": {"question": "open?"}, "expectations": {"answer": "yes"}},
        {"inputs": {"question": "closed?"}, "expectations": {"answer": "no"}},
    ]
)


@scorer
def right(outputs, expectations) -> bool:
    return outputs == expectations["answer"]


with mlflow.start_run(run_name="nightly") as run:
    mlflow.log_param("model", "small")
    mlflow.log_params({"temperature": 0.1})
    mlflow.set_tag("team", "shop")
    result = mlflow.genai.evaluate(data=dataset, predict_fn=lambda question: "yes", scorers=[right])
    mlflow.log_metric("right", result.metrics["right/mean"])
