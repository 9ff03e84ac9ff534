"""Problems as workflow commands of GitHub Actions, which shows them beside the changed lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.problem import Problem

__all__ = ["render"]

# GitHub Actions, "Workflow commands": data escapes these, properties the colon and comma too.
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def render(problems: Sequence[Problem], *, files: int) -> str:  # noqa: ARG001 - the formats share one signature
    """Writes one command for each problem; no text of a file can begin a command of its own."""
    return "".join(f"{_command(problem)}\n" for problem in problems)


def _command(problem: Problem) -> str:
    text = f"{problem.message}. {problem.hint}".strip()
    return f"::{problem.severity} {','.join(_properties(problem))}::{text.translate(_DATA)}"


def _properties(problem: Problem) -> Iterator[str]:
    location = problem.location
    yield f"file={location.path.translate(_PROPERTY)}"
    if location.line:
        yield f"line={location.line}"
    if location.column:
        yield f"col={location.column}"
    yield f"title={problem.code.translate(_PROPERTY)}"
