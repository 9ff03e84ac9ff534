"""Tests of the index of words over the results of all runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, Run, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.store import Store, read_store_url
from evalmeta.store import search_index
from evalmeta.store.copying import copy_store
from evalmeta.store.database import Database, delete_contents, open_database
from evalmeta.store.remote_runs import RemoteRun, RemoteRuns
from evalmeta.store.retention import delete_runs, old_runs
from evalmeta.store.runs import RunJournal, Runs
from evalmeta.store.search_index import discard_index, open_index

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

URL: Final = "https://acme.my.salesforce.com"


def result(number: int, answer: str, *, iteration: int = 1) -> CaseResult:
    return CaseResult(number, iteration, "Where is it?", Verdict.PASS, 1.0, 2.0, (), GeneratedData(answer))


def save(database: Database, cases: Sequence[CaseResult], *, test: str = "Orders", at: float = 1.0) -> str:
    """Save a run that is over."""
    runs, evaluation = Runs(database), Evaluation(test, "Desk", ())
    content, options = RunContent(b"<test/>"), RunOptions()
    run_id = runs.start(EVALUATION_DEFINITION, evaluation, content, options, total=len(cases), now=at)
    runs.claim(run_id, "w", taken_from=runs.lease(run_id), until=9e9, now=at)
    RunJournal(database, run_id, "w").append(cases)
    runs.finish(run_id, "w", RunStatus.COMPLETED, error=None, now=at + 1)
    return run_id


def find(database: Database, *words: str, is_prefix: bool = False) -> list[tuple[str, int, int]]:
    """Return run, iteration and case of all results with these words, the newest first."""
    with open_index(database) as index:
        index.update(seconds=60)
        names = {number: run_id for (_, run_id), number in index.state().numbers.items()}
        places = index.find(words, names, limit=1000, of_each=1000, is_prefix=is_prefix).places
    return [(names[place.run], place.iteration, place.case) for place in places]


def test_results_with_all_words_are_found_the_newest_first(database: Database) -> None:
    old = save(database, [result(1, "red apple"), result(2, "red pear", iteration=1000)], at=1.0)
    new = save(database, [result(999_999_999, "a red, RED apple")], at=5.0)
    assert find(database, "red") == [(new, 1, 999_999_999), (old, 1000, 2), (old, 1, 1)]
    assert find(database, "apple", "red") == [(new, 1, 999_999_999), (old, 1, 1)]
    assert find(database, "appl") == []
    assert find(database, "appl", "re", is_prefix=True) == [(new, 1, 999_999_999), (old, 1, 1)]
    assert find(database) == []


def test_runs_of_any_age_are_added_and_runs_in_progress_are_not(database: Database) -> None:
    newest = save(database, [result(1, "red")], at=9.0)
    assert find(database, "red") == [(newest, 1, 1)]
    oldest, newer = save(database, [result(1, "red")], at=2.0), save(database, [result(1, "red")], at=20.0)
    Runs(database).start(
        EVALUATION_DEFINITION, Evaluation("T", "D", ()), RunContent(b""), RunOptions(), total=1, now=99.0
    )
    assert [run for run, *_ in find(database, "red")] == [newer, newest, oldest]


def test_results_that_a_run_gets_later_are_found_once(database: Database) -> None:
    run_id = save(database, [result(1, "red"), result(3, "red")])
    find(database, "red")
    runs = Runs(database)
    assert runs.extend(run_id, RunOptions(), total=3)
    assert runs.claim(run_id, "w", taken_from=runs.lease(run_id), until=9e9)
    RunJournal(database, run_id, "w").append([result(2, "red")])
    runs.finish(run_id, "w", RunStatus.COMPLETED, error=None, now=50.0)
    assert find(database, "red") == [(run_id, 1, 3), (run_id, 1, 2), (run_id, 1, 1)]


def test_results_of_other_orgs_are_found(database: Database) -> None:
    cases = (result(2, "red"), result(1, "red"), result(10**12, "red"))
    run = Run("4KB1", "Orders", "Desk", RunStatus.COMPLETED, 1.0, 3, ended=2.0, cases=cases)
    RemoteRuns(database).keep(RemoteRun(URL, "acme", run, ("4KB1",)))
    # A number that no case can have is not found, and stops no other.
    assert find(database, "red") == [("4KB1", 1, 2), ("4KB1", 1, 1)]


def test_reading_that_was_stopped_goes_on_where_it_was(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEARCHED_AT_ONCE", 2)
    run_id = save(database, [result(number, "red") for number in range(1, 6)])
    with open_index(database) as index:
        assert not index.update(seconds=0)
        assert index.state().missing == 1
        read: list[int] = []
        real = search_index.words_of_case
        monkeypatch.setattr(search_index, "words_of_case", lambda case: [read.append(case.number), *real(case)][1:])
        assert index.update(seconds=60)
        assert index.state().missing == 0
        assert read == [3, 4, 5]
        assert index.update(seconds=60)
        assert read == [3, 4, 5]
    assert find(database, "red") == [(run_id, 1, number) for number in (5, 4, 3, 2, 1)]


def test_two_processes_read_a_run_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = save(database, [result(1, "red")])
    real, inner = search_index.words_of_case, [True]

    def read(case: CaseResult) -> list[str]:
        if inner and inner.pop():
            with open_database(database.store) as other, open_index(other) as index:
                assert index.update(seconds=60)
        return real(case)

    monkeypatch.setattr(search_index, "words_of_case", read)
    assert find(database, "red") == [(run_id, 1, 1)]


def test_a_page_has_some_results_of_each_run_and_the_next_one_follows(database: Database) -> None:
    runs = [save(database, [result(case, "red") for case in range(1, 8)], at=float(at)) for at in range(6)]
    with open_index(database) as index:
        index.update(seconds=60)
        numbers = index.state().numbers
        wanted = {numbers["", run_id]: run_id for run_id in (runs[0], runs[2], runs[5])}
        pages, below = [], None
        while not pages or below is not None:
            page = index.find(["red"], wanted, limit=3, of_each=2, below=below)
            pages.append([(wanted[place.run], place.case) for place in page.places])
            below = page.below
    assert pages == [
        [(runs[5], 7), (runs[5], 6), (runs[2], 7)],
        [(runs[2], 6), (runs[2], 5), (runs[0], 7)],
        [(runs[0], 6), (runs[0], 5)],
    ]


def test_many_results_of_other_runs_are_passed_over(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "_FOUND_AT_ONCE", 2)
    monkeypatch.setattr(search_index, "_MAX_STEPS", 3)
    first, *_ = [save(database, [result(case, "red") for case in range(1, 5)], at=float(at)) for at in range(9)]
    with open_index(database) as index:
        index.update(seconds=60)
        number = index.state().numbers["", first]
        newest = index.state().numbers
        assert len(index.find(["red"], {number}, limit=9, of_each=9).places) == 4
        # A search that takes too many steps says where it stopped.
        page = index.find(["red"], [*newest.values()], limit=99, of_each=1)
        assert len(page.places) == 3
        assert page.below is not None
        assert index.find(["red"], {max(newest.values())}, limit=9, of_each=1).below is None


def test_words_of_deleted_runs_are_deleted(database: Database) -> None:
    gone, kept = save(database, [result(1, "red secret")], at=1.0), save(database, [result(1, "red")], at=5.0)
    assert len(find(database, "red")) == 2
    delete_runs(database, [run for run in old_runs(database, keep=1, before=None) if run.id == gone])
    if not database.store.url:
        assert b"secret" not in (database.folder / "search.sqlite3").read_bytes()
    else:
        assert database.query("SELECT count(*) FROM searched_text") == [(1,)]
    assert find(database, "secret") == []
    assert find(database, "red") == [(kept, 1, 1)]


def test_a_reset_org_finds_nothing(database: Database) -> None:
    save(database, [result(1, "red")])
    assert find(database, "red")
    delete_contents(database, is_ours=lambda _: True)
    assert find(database, "red") == []


def test_a_copied_store_makes_its_own_index(database: Database, tmp_path: Path) -> None:
    run_id = save(database, [result(1, "red")])
    find(database, "red")
    with open_database(tmp_path / "target") as target:
        assert copy_store(database, target)
        assert find(target, "red") == [(run_id, 1, 1)]


def test_what_failed_is_found_by_its_reasons_and_what_passed_by_what_was_said(database: Database) -> None:
    checks = [
        TestResult("topic", verdict, f"expected{verdict}", f"actual{verdict}", explanation=f"why{verdict}")
        for verdict in (Verdict.PASS, Verdict.FAILURE)
    ]
    case = result(1, "yes")._replace(results=tuple(checks), tags=("smoke",), label="Named", error="broken")
    run_id = save(database, [case])
    for word in ("expectedfailure", "actualfailure", "whyfailure", "smoke", "named", "broken", "where", "yes"):
        assert find(database, word) == [(run_id, 1, 1)], word
    for word in ("expectedpass", "actualpass", "whypass"):
        assert find(database, word) == [], word


def test_a_result_that_cannot_be_read_keeps_no_other_from_being_found(database: Database) -> None:
    run_id = save(database, [result(1, "red"), result(2, "red"), result(3, "red")])
    database.execute("UPDATE case_result SET body = ? WHERE number = 3", (b"[1",))
    assert find(database, "red") == [(run_id, 1, 2), (run_id, 1, 1)]


def test_postgres_finds_the_same(tmp_path: Path, store_url: str) -> None:
    with open_database(Store(tmp_path / "shared", read_store_url(store_url))) as shared:
        gone = save(shared, [result(1, "ein Café"), result(2, "it's 'red' & blue")], at=1.0)
        kept = save(shared, [result(1, "cafe")], at=5.0)
        assert find(shared, "cafe") == [(kept, 1, 1), (gone, 1, 1)]
        assert find(shared, "red", "blu", is_prefix=True) == [(gone, 1, 2)]
        delete_runs(shared, old_runs(shared, keep=1, before=None))
        assert find(shared, "cafe") == [(kept, 1, 1)]
        assert shared.query("SELECT count(*) FROM searched_text") == [(1,)]
        discard_index(shared)
        assert find(shared, "cafe") == [(kept, 1, 1)]


@pytest.mark.sqlite
def test_another_layout_or_damage_makes_the_file_again(database: Database) -> None:
    run_id = save(database, [result(1, "red")])
    find(database, "red")
    path = database.folder / "search.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert find(database, "red") == [(run_id, 1, 1)]
    for suffix in ("-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    path.write_bytes(b"no database" * 1000)
    assert find(database, "red") == [(run_id, 1, 1)]


@pytest.mark.sqlite
def test_a_file_that_cannot_be_opened_is_an_error_and_deleting_runs_still_works(database: Database) -> None:
    gone, _ = save(database, [result(1, "red")], at=1.0), save(database, [result(1, "red")], at=5.0)
    (database.folder / "search.sqlite3").mkdir()
    with pytest.raises(StoreError, match="cannot be opened"), open_index(database):
        pass
    (database.folder / "search.sqlite3").rmdir()
    assert [run.id for run in delete_runs(database, old_runs(database, keep=1, before=None))] == [gone]
    assert not (database.folder / "search.sqlite3").exists()


@pytest.mark.sqlite
def test_a_file_whose_words_cannot_be_deleted_is_deleted(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    save(database, [result(1, "red")], at=1.0)
    save(database, [result(1, "red")], at=5.0)
    find(database, "red")

    def fail(*_: object) -> None:
        raise StoreError("no room")

    monkeypatch.setattr(search_index.SearchIndex, "forget_deleted", fail)
    delete_runs(database, old_runs(database, keep=1, before=None))
    assert not (database.folder / "search.sqlite3").exists()
