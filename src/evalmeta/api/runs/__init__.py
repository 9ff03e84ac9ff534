"""Runs of agent tests: start, find, finish, check and compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.runs import (
        baselines,
        case_lines,
        changes,
        comparisons,
        finding,
        finished,
        org,
        origins,
        saved,
        selection,
        verification,
    )

__all__ = [
    "baselines",
    "case_lines",
    "changes",
    "comparisons",
    "finding",
    "finished",
    "org",
    "origins",
    "saved",
    "selection",
    "verification",
]

if not TYPE_CHECKING:
    __getattr__ = module_getter(__name__)
