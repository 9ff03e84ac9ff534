from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings

from evalmeta.model.run import Run, RunStatus
from evalmeta.store.remote_runs import RemoteRun, RemoteRuns, open_remote_runs
from evalmeta.store.sqlite import SqliteDatabase
from examples import at_most
from protocol.results import runs
from stores import store_in

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.store.database import Database

ID = "4KB5e0000000001AAA"
RUN = Run(ID, "Orders", "Desk", RunStatus.NEW, 10.0, 0)
DEV = RemoteRun("https://dev.example", "dev", RUN, (ID,))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=at_most(50))
@given(run=runs)
def test_a_run_is_read_back_unchanged(database: Database, run: Run) -> None:
    # Postgres stores no character 0; SQLite does.
    assume(SqliteDatabase is type(database) or "\\x00" not in repr(run))
    remote = replace(DEV, run=replace(run, id=ID), jobs=(ID, "4KB2"))
    RemoteRuns(database).keep(remote)
    assert RemoteRuns(database).find(ID) == [remote]


def test_only_the_last_state_of_a_run_is_kept(database: Database) -> None:
    over = replace(DEV, run=replace(RUN, status=RunStatus.COMPLETED, ended=12.0))
    for remote in (DEV, over):
        RemoteRuns(database).keep(remote)
    assert RemoteRuns(database).find(ID) == [over]


@pytest.mark.parametrize("run_id", [ID, ID[:15]])
def test_orgs_may_have_the_same_ids_and_the_latest_comes_first(database: Database, run_id: str) -> None:
    shop = replace(DEV, org_url="https://shop.example", run=replace(RUN, started=20.0))
    for remote in (DEV, shop):
        RemoteRuns(database).keep(remote)
    assert RemoteRuns(database).find(run_id) == [shop, DEV]
    assert RemoteRuns(database).find(run_id, org_url=DEV.org_url) == [DEV]


def test_a_run_that_is_not_kept_is_not_found(database: Database) -> None:
    RemoteRuns(database).keep(DEV)
    assert RemoteRuns(database).find("4KB5e0000000002AAA") == []


def test_runs_are_there_for_the_next_process(folder: Path) -> None:
    with open_remote_runs(store_in(folder)) as kept:
        kept.keep(DEV)
    with open_remote_runs(store_in(folder)) as kept:
        assert kept.find(ID) == [DEV]
