"""Documents of every format as the engine runs them, and the settings for reading them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.problem import Problem
    from evalmeta.model.settings import AdkDialect, MissingData, Settings


@dataclass(frozen=True, slots=True)
class Document:
    """A file's cases, and its run settings.

    Attributes:
        evaluation: its cases; `subject_name` is empty where the file names no agent.
        iterations: how often all cases run; None when the file does not say.
        min_pass_rate: the share of cases that must pass, 0 to 1; None when the file does not say.
        is_answered: whether every turn has a recorded answer, so that no agent is needed.
        notes: warnings, such as an outdated form or an unknown key.
        lines: the line of each case by its number; empty when lines are not known.
    """

    evaluation: Evaluation
    iterations: int | None = None
    min_pass_rate: float | None = None
    is_answered: bool = False
    notes: tuple[Problem, ...] = ()
    lines: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings for reading files.

    Attributes:
        is_asked: whether an agent is called, so that recorded answers are ignored.
        dialect: what the rows of ADK's deprecated arrays mean.
        missing: how ADK's criteria count a turn without their data; None for what test_config.json says.
        global_guidelines: the guidelines for every answer to an evaluation set of Databricks.
        metrics: the metrics of Databricks to compute; None for all.
    """

    is_asked: bool = False
    dialect: AdkDialect = "auto"
    missing: MissingData | None = None
    global_guidelines: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None

    def json(self) -> JsonObject:
        """Return it as JSON for `reading_from`."""
        return {name: [*value] if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def reading_from(source: JsonObject) -> Reading:
    """Return a reading from what `Reading.json` returned; missing keys have their defaults."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in source.items()}
    return Reading(**cast("dict[str, str]", values))  # type: ignore[arg-type] # written by `json`


def reading_of(settings: Settings, *, is_asked: bool) -> Reading:
    """Return how a project's settings say that files are read."""
    adk, databricks = settings.adk, settings.databricks
    return Reading(is_asked, adk.dialect, adk.missing, databricks.global_guidelines, databricks.metrics)
