"""A file of somebody else's format, as what the engine runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.problem import Problem

__all__ = ["Document"]


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
