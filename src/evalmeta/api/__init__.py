"""The library's functions: what the command line, the pytest plugin and other programs call.

Each module covers one kind of work, and is imported when it is first used: `api.runs.start_run` loads `runs`.
A program that only checks files therefore loads no HTTP client and no web framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalmeta.api import (
        acceptance,
        agent_tests,
        baselines,
        calibration,
        case_lines,
        changes,
        comparisons,
        convert,
        deployments,
        discovery,
        doctor,
        endpoints,
        evaluate,
        evaluate_inputs,
        files,
        finished_runs,
        init,
        init_agents,
        last_failed,
        logins,
        marks,
        org_targets,
        org_tests,
        packages,
        quarantines,
        retrievals,
        run_changes,
        run_location,
        run_names,
        run_selection,
        runs,
        saved_runs,
        selections,
        servers,
        specs,
        sync,
        verification,
    )

__all__ = [
    "acceptance",
    "agent_tests",
    "baselines",
    "calibration",
    "case_lines",
    "changes",
    "comparisons",
    "convert",
    "deployments",
    "discovery",
    "doctor",
    "endpoints",
    "evaluate",
    "evaluate_inputs",
    "files",
    "finished_runs",
    "init",
    "init_agents",
    "last_failed",
    "logins",
    "marks",
    "org_targets",
    "org_tests",
    "packages",
    "quarantines",
    "retrievals",
    "run_changes",
    "run_location",
    "run_names",
    "run_selection",
    "runs",
    "saved_runs",
    "selections",
    "servers",
    "specs",
    "sync",
    "verification",
]


def __getattr__(name: str) -> object:
    """Import a module of this package when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
