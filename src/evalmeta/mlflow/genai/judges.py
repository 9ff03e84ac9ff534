"""Judges of single answers, and judges by instructions of your own."""

from __future__ import annotations

from evalmeta.systems.mlflow.delegation import member_of
from evalmeta.systems.mlflow.instructions import make_judge
from evalmeta.systems.mlflow.judges import (
    CategoricalRating,
    is_context_relevant,
    is_context_sufficient,
    is_correct,
    is_grounded,
    is_safe,
    meets_guidelines,
)

__all__ = [
    "CategoricalRating",
    "is_context_relevant",
    "is_context_sufficient",
    "is_correct",
    "is_grounded",
    "is_safe",
    "make_judge",
    "meets_guidelines",
]


def __getattr__(name: str) -> object:
    return member_of("genai.judges", name)
