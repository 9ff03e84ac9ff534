"""A file of somebody else's format, as what the engine runs.

What a project says of files that do not say it themselves.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.problem import Problem
    from evalmeta.model.settings import AdkDialect, MissingData, Settings


def _no_lines() -> Mapping[int, int]:
    return {}


@dataclass(frozen=True, slots=True)
class Document:
    """What a file asks, and what else it says.

    Attributes:
        evaluation: its cases; `subject_name` is empty where the file names no agent.
        iterations: how often all cases are asked; None when the file does not say.
        min_pass_rate: the share of cases that must pass, 0 to 1; None when the file does not say.
        is_answered: whether every turn has its recorded answer, so that no agent is needed.
        notes: warnings, such as an outdated form or an unknown key.
        lines: the line of each case in the file, from 1, by the case's number; empty where it is not known.
    """

    evaluation: Evaluation
    iterations: int | None = None
    min_pass_rate: float | None = None
    is_answered: bool = False
    notes: tuple[Problem, ...] = ()
    lines: Mapping[int, int] = field(default_factory=_no_lines)


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read.

    Attributes:
        is_asked: whether an agent is asked, so that answers which a file has do not matter.
        dialect: what the rows of ADK's files mean that came before eval sets.
        missing: what becomes of a turn without the data of a criterion of ADK's; None for what test_config.json says.
        global_guidelines: what every answer to an evaluation set of Databricks must keep to.
        metrics: the metrics of Databricks that are wanted; None for all.
    """

    is_asked: bool = False
    dialect: AdkDialect = "auto"
    missing: MissingData | None = None
    global_guidelines: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None

    def json(self) -> JsonObject:
        """Gives it as JSON; `reading_from` gives it back."""
        return {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def reading_from(source: JsonObject) -> Reading:
    """Gives back what `Reading.json` gave; what is not there is as it is without it."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in source.items()}
    return Reading(**cast("dict[str, str]", values))  # type: ignore[arg-type] # written by `json`


def reading_of(settings: Settings, *, is_asked: bool) -> Reading:
    """Takes from a project's settings how files are read."""
    adk, databricks = settings.adk, settings.databricks
    return Reading(is_asked, adk.dialect, adk.missing, databricks.global_guidelines, databricks.metrics)
