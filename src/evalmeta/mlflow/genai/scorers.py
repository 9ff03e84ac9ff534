"""Scorers: your own with `@scorer` or as a class, and MLflow's built-in ones."""

from __future__ import annotations

from evalmeta.systems.mlflow.builtin_scorers import (
    Completeness,
    Correctness,
    Equivalence,
    ExpectationsGuidelines,
    Fluency,
    Guidelines,
    PIIDetection,
    RegexMatch,
    RelevanceToQuery,
    ResponseLength,
    RetrievalGroundedness,
    RetrievalRelevance,
    RetrievalSufficiency,
    Safety,
    Summarization,
    ToolCallCorrectness,
    ToolCallEfficiency,
    get_all_scorers,
)
from evalmeta.systems.mlflow.delegation import member_of
from evalmeta.systems.mlflow.scorers import Scorer, scorer
from evalmeta.systems.mlflow.session_scorers import (
    ConversationalGuidelines,
    ConversationalRoleAdherence,
    ConversationalSafety,
    ConversationalToolCallEfficiency,
    ConversationCompleteness,
    KnowledgeRetention,
    UserFrustration,
)

__all__ = [
    "Completeness",
    "ConversationCompleteness",
    "ConversationalGuidelines",
    "ConversationalRoleAdherence",
    "ConversationalSafety",
    "ConversationalToolCallEfficiency",
    "Correctness",
    "Equivalence",
    "ExpectationsGuidelines",
    "Fluency",
    "Guidelines",
    "KnowledgeRetention",
    "PIIDetection",
    "RegexMatch",
    "RelevanceToQuery",
    "ResponseLength",
    "RetrievalGroundedness",
    "RetrievalRelevance",
    "RetrievalSufficiency",
    "Safety",
    "Scorer",
    "Summarization",
    "ToolCallCorrectness",
    "ToolCallEfficiency",
    "UserFrustration",
    "get_all_scorers",
    "scorer",
]


def __getattr__(name: str) -> object:
    return member_of("genai.scorers", name)
