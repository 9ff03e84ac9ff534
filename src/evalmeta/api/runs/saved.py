"""Runs that are saved in a project, its own org's and those of other orgs, read without a request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalmeta.api.runs.finished import FinishedRun
from evalmeta.model.aggregation import decided_by
from evalmeta.model.run import Run, RunStatus
from evalmeta.org.lease import is_free
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import ListedRun, RunFilter, list_runs
from evalmeta.store.runs import Lease, Runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.api.runs.verification import Checking
    from evalmeta.package.project import Project


def load_finished(handle: RunHandle, checking: Checking) -> FinishedRun | None:
    """Return a run of another org that was saved when it was over, without a request; None for other runs.

    A run whose verdicts were not checked yet must be fetched again if evalmeta's verdicts shall count.
    """
    remote = handle.remote
    if remote is None or not remote.run.status.is_over:
        return None
    if checking.decides not in {None, "org"} and not _is_checked(remote.run):
        return None
    return FinishedRun.of(decided(remote.run, checking))


def _is_checked(run: Run) -> bool:
    has_failed = any(doubt.code == "not-checked" for doubt in run.doubts)
    return not has_failed and any(result.verdicts for case in run.cases for result in case.results)


def decided(run: Run, checking: Checking) -> Run:
    """Return a run whose results count with the verdicts that its options or the caller's choice say."""
    whose = checking.decides or run.options.decides
    return decided_by(replace(run, options=replace(run.options, decides=whose)), whose)


def history(project: Project, *, definition: str | None = None, limit: int | None = None) -> list[ListedRun]:
    """List the runs of a definition, or of all, in the project's own org and in others, the oldest first.

    With a `limit`, only that many of the latest runs are listed.
    """
    with open_database(project.state_dir) as database:
        leases = dict(Runs(database).unfinished())
        return [
            replace(run, is_stopped=True) if _is_stopped(run, leases) else run
            for run in list_runs(database, RunFilter(test=definition or ""), limit=limit)
        ]


def _is_stopped(run: ListedRun, leases: Mapping[str, Lease]) -> bool:
    is_begun = not run.org_url and run.status is RunStatus.IN_PROGRESS and run.id in leases
    return is_begun and is_free(leases[run.id])
