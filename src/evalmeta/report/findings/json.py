"""Problems as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalmeta.report.plain import escape_unsafe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.problem import Problem

__all__ = ["problem_json", "render"]


def render(problems: Sequence[Problem], *, files: int) -> str:
    """Writes `{files, problems}`, every problem with all its keys."""
    body = {"files": files, "problems": [problem_json(each) for each in problems]}
    return escape_unsafe(json.dumps(body, indent=2, ensure_ascii=False)) + "\n"


def problem_json(problem: Problem) -> JsonObject:
    """Gives a problem as JSON values; what is unknown or empty is null."""
    location = problem.location
    return {
        "code": problem.code,
        "severity": problem.severity.value,
        "file": location.path,
        "line": location.line or None,
        "column": location.column or None,
        "message": problem.message,
        "hint": problem.hint or None,
        "component": problem.component or None,
    }
