"""Workflow commands of GitHub Actions, which shows them as annotations beside changed lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["workflow_command"]

# GitHub Actions, "Workflow commands": data escapes these, properties the colon and comma too.
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def workflow_command(level: str, text: str, properties: Iterable[tuple[str, str]]) -> str:
    """Writes one command on one line; no text in it can begin a command of its own.

    Args:
        level: `error`, `warning` or `notice`.
        text: what is shown.
        properties: names such as `file`, `line` and `title`, with their values.
    """
    pairs = ",".join(f"{name}={value.translate(_PROPERTY)}" for name, value in properties)
    return f"::{level} {pairs}::{text.translate(_DATA)}\n"
