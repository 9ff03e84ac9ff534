"""Paths as messages show them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["shown"]


def shown(path: Path) -> str:
    """Gives a path as messages show it: relative to the current folder when it is inside."""
    here = os.getcwd().replace(os.sep, "/")  # noqa: PTH109 - ten times as fast, once a file
    return path.as_posix().removeprefix(f"{here}/")
