"""Datasets of evaluations, kept in memory."""

from __future__ import annotations

from evalmeta.systems.mlflow.datasets import EvaluationDataset, create_dataset, delete_dataset, get_dataset
from evalmeta.systems.mlflow.delegation import member_of

__all__ = ["EvaluationDataset", "create_dataset", "delete_dataset", "get_dataset"]


def __getattr__(name: str) -> object:
    return member_of("genai.datasets", name)
