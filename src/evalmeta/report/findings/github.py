"""Problems as workflow commands of GitHub Actions, which shows them beside the changed lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.report.workflowcommands import workflow_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.problem import Problem

__all__ = ["render"]


def render(problems: Sequence[Problem], *, files: int) -> str:  # noqa: ARG001 - the formats share one signature
    """Writes one command for each problem; no text of a file can begin a command of its own."""
    return "".join(map(_command, problems))


def _command(problem: Problem) -> str:
    text = f"{problem.message}. {problem.hint}".strip()
    return workflow_command(problem.severity, text, _properties(problem))


def _properties(problem: Problem) -> Iterator[tuple[str, str]]:
    location = problem.location
    yield "file", location.path
    if location.line:
        yield "line", f"{location.line}"
    if location.column:
        yield "col", f"{location.column}"
    yield "title", problem.code
