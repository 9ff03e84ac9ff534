"""Scorers as classes with fields, pass_if, and rows that have their outputs."""

import mlflow
import pandas as pd
from mlflow.genai import Scorer, scorer
from mlflow.genai.scorers import RegexMatch, ResponseLength


class MentionsAll(Scorer):
    name: str = "mentions_all"
    minimum: int = 2

    def __call__(self, outputs, expectations):
        return sum(word in outputs for word in expectations["words"]) >= self.minimum


class Shouts(Scorer):
    name: str = "shouts"

    def __call__(self, *, outputs) -> bool:
        return outputs.isupper()


@scorer(name="few_words", pass_if=lambda value: value <= 4)
def number_of_words(outputs):
    return len(outputs.split())


data = pd.DataFrame(
    [
        {"inputs": {"q": "a"}, "outputs": "Answer: red and blue", "expectations": {"words": ["red", "blue", "green"]}},
        {"inputs": {"q": "b"}, "outputs": "GREEN ONLY", "expectations": {"words": ["red", "blue", "green"]}},
    ]
)
result = mlflow.genai.evaluate(
    data=data,
    scorers=[
        MentionsAll(),
        MentionsAll(name="mentions_one", minimum=1),
        Shouts(),
        number_of_words,
        RegexMatch(pattern=r"^answer:", case_insensitive=True),
        ResponseLength(max_length=2, unit="words"),
    ],
)
