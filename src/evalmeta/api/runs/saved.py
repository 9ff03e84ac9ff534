"""Runs that are saved in a project: read without a request, and deleted when they are old."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.api.runs.finished import FinishedRun
from evalmeta.api.runs.origins import new_origin
from evalmeta.errors import UsageError
from evalmeta.model.aggregation import decided_by
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import ContentKind, Run, RunContent, RunStatus
from evalmeta.org.lease import is_free
from evalmeta.store.database import Database, dry_run, open_database
from evalmeta.store.kept_numbers import tallies_of
from evalmeta.store.retention import OldRun, delete_runs, forget_baseline, note_baseline, noted_baselines, old_runs
from evalmeta.store.run_lists import ListedRun, RunFilter, list_runs
from evalmeta.store.runs import Lease, Runs
from evalmeta.store.stored_cases import encode_case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.runs.baselines import TakenTest
    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.api.runs.verification import Checking
    from evalmeta.model.run_options import RunOptions
    from evalmeta.package.project import Project

_RESULT_COLUMNS: Final = ("run_id", "iteration", "number", "verdict", "body")


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
    with open_database(project.store) as database:
        leases = dict(Runs(database).unfinished())
        return [
            replace(run, is_stopped=True) if _is_stopped(run, leases, database.now()) else run
            for run in list_runs(database, RunFilter(test=definition or ""), limit=limit)
        ]


def _is_stopped(run: ListedRun, leases: Mapping[str, Lease], now: float) -> bool:
    is_begun = not run.org_url and run.status is RunStatus.IN_PROGRESS and run.id in leases
    return is_begun and is_free(leases[run.id], now=now)


def keep_runs(project: Project, runs: Sequence[Run]) -> list[str]:
    """Save runs that ended in another program, such as pytest, as one suite of a project: all of them, or none.

    Return their ids in the project.
    """
    origin = new_origin(project.root)
    if project.store.url:
        origin = origin._replace(project=project.store.project(project.root))
    saved: dict[str, RunOptions] = {}
    with open_database(project.store) as database:
        with database.transaction():
            for place, run in enumerate(runs, 1):
                options = replace(run.options, origin=origin._replace(place=place))
                content = RunContent(orjson.dumps({"cases": _digest(run)}), ContentKind.CASES)
                ended = replace(run, options=options)
                run_id = Runs(database).keep_ended(EVALUATION_DEFINITION, ended, content)
                rows = (
                    (run_id, case.iteration, case.number, str(case.verdict), encode_case(case)) for case in run.cases
                )
                database.load("case_result", _RESULT_COLUMNS, rows)
                saved[run_id] = options
        tallies_of(database, saved)
    return list(saved)


def _digest(run: Run) -> str:
    asked = sorted({(case.number, case.utterance, case.checks) for case in run.cases})
    return sha256(orjson.dumps(asked)).hexdigest()


class Pruned(NamedTuple):
    """What pruning did, or would do.

    Attributes:
        deleted: the runs that went, the oldest first.
        kept: the old runs that stay, because something needs them; each says what.
        left: the number of runs that are still there.
        bytes_before: the size of the store's files, in bytes.
        bytes_after: their size afterwards; of a dry run, that before.
    """

    deleted: tuple[OldRun, ...]
    kept: tuple[OldRun, ...]
    left: int
    bytes_before: int
    bytes_after: int


def prune_runs(
    project: Project, *, keep: int | None = None, before: float | None = None, is_dry_run: bool = False
) -> Pruned:
    """Delete the runs that are not among the latest `keep` of their test, and those that started before a time.

    With both, only runs of which both is true are deleted. `before` is in seconds since the epoch. Runs stay that are
    in progress, in a suite that is not complete, in a baseline, judged by people, or judged again by a later run. Raise
    UsageError without either.
    """
    if keep is None and before is None:
        raise UsageError(
            "choose which runs to delete", actions=["Keep some of each test: --keep 50", "Or: --older-than 90d"]
        )
    with open_database(project.store) as database:
        with database.transaction(), dry_run(database) if is_dry_run else nullcontext():
            for baseline in noted_baselines(database):
                if not (project.root / baseline).exists():
                    forget_baseline(database, baseline)
            old = old_runs(database, keep=keep, before=before)
        going, size = tuple(run for run in old if not run.use), database.size()
        kept = tuple(run for run in old if run.use)
        if not is_dry_run:
            # Another program may need one of them by now.
            known = delete_runs(database, going)
            going, kept = tuple(run for run in known if not run.use), (*kept, *(run for run in known if run.use))
            database.shrink()
        left = _count(database) - (len(going) if is_dry_run else 0)
        return Pruned(going, kept, left, size, database.size())


def note_runs_of(project: Project, path: Path, taken: Sequence[TakenTest]) -> None:
    """Note from which runs a baseline was saved, so that pruning leaves them."""
    tests = {test.name: [run.id for run in test.runs] for test in taken if test.known}
    with open_database(project.store) as database:
        note_baseline(database, os.path.relpath(path, project.root), tests)


def _count(database: Database) -> int:
    [(runs,)] = database.query("SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM remote_run)")
    return int(runs)
