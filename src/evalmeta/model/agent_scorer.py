"""A custom scorer as a value: what rules need of an AiAgentScorerDefinition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LIGHTNING_TYPES: Final = tuple(
    f"lightning__{name}Type"
    for name in (
        "text",
        "multilineText",
        "richText",
        "number",
        "integer",
        "boolean",
        "date",
        "dateTime",
        "dateTimeString",
        "url",
        "object",
        "list",
    )
)
"""The types of scores that the sf CLI accepts (@salesforce/agents, `agentScorers/types`)."""


@dataclass(frozen=True, slots=True)
class OutputValue:
    """A label that a scorer can give."""

    value: str
    outcome: str
    is_fallback: bool = False


@dataclass(frozen=True, slots=True)
class AgentAssociation:
    """An agent whose sessions a scorer version scores; `sampling_rate` is None if the file has none."""

    agent: str
    is_active: bool
    sampling_rate: str | None = None


@dataclass(frozen=True, slots=True)
class ScorerVersion:
    """One version of a scorer; `number` is None if it is not a whole number."""

    number: int | None
    status: str
    engine: str
    engine_ref: str = ""
    outputs: tuple[OutputValue, ...] = ()
    associations: tuple[AgentAssociation, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentScorer:
    """A custom scorer of Agentforce Studio."""

    data_type: str = ""
    lightning_type: str | None = None
    versions: tuple[ScorerVersion, ...] = ()
