"""Agents that return objects: scorers receive them as they were returned."""

from dataclasses import dataclass

import mlflow
from mlflow.genai.scorers import scorer


@dataclass
class Ticket:
    title: str
    priority: int


async def predict_fn(message, labels):
    return {"ticket": Ticket(message.title(), len(labels)), "labels": labels}


@scorer
def has_priority(outputs, expectations) -> bool:
    return outputs["ticket"].priority == expectations["priority"]


@scorer
def keeps_labels(inputs, outputs) -> bool:
    return inputs["labels"] == outputs["labels"]


result = mlflow.genai.evaluate(
    data=[
        {"inputs": {"message": "lost parcel", "labels": ["a", "b"]}, "expectations": {"priority": 2}},
        {"inputs": {"message": "broken cup", "labels": []}, "expectations": {"priority": 1}},
    ],
    predict_fn=predict_fn,
    scorers=[has_priority, keeps_labels],
)
