"""The library's functions: what the command line, the pytest plugin and other programs call.

Each module covers one kind of work, and is imported when it is first used: `api.runs.org.RunOrg` loads `runs.org`.
A program that only checks files therefore loads no HTTP client and no web framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.api.lazy_modules import module_getter

if TYPE_CHECKING:
    from evalmeta.api import (
        agent_tests,
        changes,
        convert,
        deployments,
        discovery,
        doctor,
        endpoints,
        evaluating,
        files,
        init,
        judging,
        logins,
        org_targets,
        packages,
        quarantines,
        retrievals,
        runs,
        selections,
        servers,
        specs,
        sync,
    )

__all__ = [
    "agent_tests",
    "changes",
    "convert",
    "deployments",
    "discovery",
    "doctor",
    "endpoints",
    "evaluating",
    "files",
    "init",
    "judging",
    "logins",
    "org_targets",
    "packages",
    "quarantines",
    "retrievals",
    "runs",
    "selections",
    "servers",
    "specs",
    "sync",
]

if not TYPE_CHECKING:
    __getattr__ = module_getter(__name__)
