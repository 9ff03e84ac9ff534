"""Judges with numbers, labels and lists, and an own scorer that calls one."""

from typing import Literal

import mlflow
from mlflow.genai import make_judge
from mlflow.genai.scorers import scorer

quality = make_judge(
    name="quality",
    instructions="Rate from 1 to 5 how well {{ outputs }} answers {{ inputs }}.",
    feedback_value_type=int,
)
tone = make_judge(
    name="tone",
    instructions="Name the tone of {{ outputs }}, compared with {{ expectations }}.",
    feedback_value_type=Literal["formal", "casual"],
)
topics = make_judge(name="topics", instructions="List the topics of {{ outputs }}.", feedback_value_type=list[str])


@scorer(pass_if=lambda value: value >= 4)
def length(outputs):
    return len(outputs)


data = [
    {"inputs": {"question": "Where?"}, "outputs": "In Bonn.", "expectations": {"tone": "formal"}},
    {"inputs": {"question": "When?"}, "outputs": "This is wrong.", "expectations": {"tone": "formal"}},
]
result = mlflow.genai.evaluate(data=data, scorers=[quality, tone, topics, length])
