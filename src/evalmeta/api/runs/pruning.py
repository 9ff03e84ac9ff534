"""Deleting old runs of a project, and giving their room on the disk back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.errors import UsageError
from evalmeta.store.database import Database, open_database
from evalmeta.store.retention import (
    OldRun,
    delete_runs,
    forget_baseline,
    note_baseline,
    noted_baselines,
    old_runs,
    shrink,
    store_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.api.runs.baselines import TakenTest
    from evalmeta.package.project import Project


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
    in progress, in a suite that is not complete, in a baseline, or judged by people. Raise UsageError without either.
    """
    if keep is None and before is None:
        raise UsageError(
            "say which runs shall go", actions=["Keep some of each test: --keep 50", "Or: --older-than 90d"]
        )
    with open_database(project.state_dir) as database:
        for baseline in noted_baselines(database):
            if not (project.root / baseline).exists() and not is_dry_run:
                forget_baseline(database, baseline)
        old = old_runs(database, keep=keep, before=before)
        going, size = tuple(run for run in old if not run.use), store_bytes(database.path)
        if not is_dry_run:
            delete_runs(database, going)
            shrink(database)
        left = _count(database) - (len(going) if is_dry_run else 0)
        kept = tuple(run for run in old if run.use)
        return Pruned(going, kept, left, size, store_bytes(database.path))


def note_runs_of(project: Project, path: Path, taken: Sequence[TakenTest]) -> None:
    """Note from which runs a baseline was saved, so that pruning leaves them."""
    tests = {test.name: [run.id for run in test.runs] for test in taken if test.known}
    with open_database(project.state_dir) as database:
        note_baseline(database, os.path.relpath(path, project.root), tests)


def _count(database: Database) -> int:
    [(runs,)] = database.query("SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM remote_run)")
    return int(runs)
