"""Evaluations of agents: `evaluate`, scorers, judges and datasets."""

from __future__ import annotations

from evalmeta.mlflow.genai import datasets, judges, scorers
from evalmeta.systems.mlflow.datasets import create_dataset, delete_dataset, get_dataset
from evalmeta.systems.mlflow.delegation import member_of
from evalmeta.systems.mlflow.evaluation import EvaluationResult, evaluate, evaluate_async
from evalmeta.systems.mlflow.instructions import make_judge
from evalmeta.systems.mlflow.scorers import Scorer, scorer

__all__ = [
    "EvaluationResult",
    "Scorer",
    "create_dataset",
    "datasets",
    "delete_dataset",
    "evaluate",
    "evaluate_async",
    "get_dataset",
    "judges",
    "make_judge",
    "scorer",
    "scorers",
]


def __getattr__(name: str) -> object:
    return member_of("genai", name)
