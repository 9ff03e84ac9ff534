"""Runs of agent tests: start, find, finish, check and compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api.runs import (
        baselines,
        calls,
        case_lines,
        changes,
        comparisons,
        confirmation,
        finding,
        finished,
        observer,
        org,
        origins,
        reruns,
        saved,
        selection,
        starting,
        verification,
        waiting,
    )

__all__ = [
    "baselines",
    "calls",
    "case_lines",
    "changes",
    "comparisons",
    "confirmation",
    "finding",
    "finished",
    "observer",
    "org",
    "origins",
    "reruns",
    "saved",
    "selection",
    "starting",
    "verification",
    "waiting",
]

if not TYPE_CHECKING:
    __getattr__ = module_getter(__name__)
