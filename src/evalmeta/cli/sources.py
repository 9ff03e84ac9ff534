"""What is said of a file that was read as a definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.cli.output import note

if TYPE_CHECKING:
    from evalmeta.api.specs import Source

__all__ = ["show_source"]


def show_source(source: Source) -> None:
    """Shows on stderr the warnings about a file, and what a definition cannot hold of it."""
    for problem in source.notes:
        note(f"{problem} {problem.hint}".rstrip())
    for loss in source.losses:
        note(f"Lost: {loss}")
