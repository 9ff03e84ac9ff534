"""Warnings to users who call evalmeta from Python: each has the line of their code."""

from __future__ import annotations

import inspect
import warnings


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that names the line that called evalmeta, however many calls are between, also of asyncio."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith(("evalmeta.", "asyncio.")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)
