from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError, StoreFull
from evalmeta.store.spool import Spool, SpooledResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN_ID = "4KB000000000001GAA"
RESULTS = [
    SpooledResult(1, 1, "PASS", b'[1,1,"Where?"]'),
    SpooledResult(1, 2, "FAILURE", '[2,1,"Où est 1\u2028 2?"]'.encode()),
    SpooledResult(2, 1, "ERROR", b'[1,2,"a  b"]'),
]


def spool_in(folder: Path, *, identity: str = "store") -> Spool:
    return Spool(folder, RUN_ID, identity=identity)


def read(spool: Spool, *, after: int = 0) -> list[SpooledResult]:
    return [result for batch in spool.batches(after=after) for result in batch.results]


def test_results_are_read_as_they_were_added(folder: Path) -> None:
    spool = spool_in(folder)
    assert not spool.exists
    assert read(spool) == []
    spool.append(RESULTS[:2])
    spool.append(RESULTS[2:])
    assert spool.exists
    assert read(spool) == read(spool_in(folder)) == RESULTS


def test_only_their_owner_can_read_results(folder: Path) -> None:
    spool = spool_in(folder)
    spool.append(RESULTS)
    if os.name == "posix":
        assert spool.path.stat().st_mode & 0o077 == 0
        assert spool.path.parent.stat().st_mode & 0o077 == 0


def test_another_process_adds_to_what_is_there(folder: Path) -> None:
    spool_in(folder).append(RESULTS[:1])
    spool_in(folder).append(RESULTS[1:])
    assert read(spool_in(folder)) == RESULTS


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_a_crash_cut_short_is_ignored_and_then_overwritten(folder: Path, cut: int) -> None:
    spool = spool_in(folder)
    spool.append(RESULTS)
    whole = spool.path.read_bytes()
    spool.path.write_bytes(whole[:-cut])
    assert read(spool) == RESULTS[:2]
    spool_in(folder).append(RESULTS[2:])
    assert spool.path.read_bytes() == whole


def test_nothing_after_a_damaged_line_is_read(folder: Path) -> None:
    spool = spool_in(folder)
    spool.append(RESULTS)
    spool.path.write_bytes(spool.path.read_bytes().replace(b"FAILURE", b"PASS"))
    assert read(spool) == RESULTS[:1]


def test_results_are_read_in_batches_from_any_end_of_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOURNAL_BATCH", 2)
    spool = spool_in(folder)
    spool.append(RESULTS)
    first, second = spool.batches()
    assert (first.results, second.results) == (RESULTS[:2], RESULTS[2:])
    assert read(spool, after=first.end) == RESULTS[2:]
    assert read(spool, after=second.end) == []


def test_runs_with_the_same_id_in_other_stores_have_other_files(folder: Path) -> None:
    spool_in(folder).append(RESULTS)
    assert not spool_in(folder, identity="another").exists


def test_removed_results_are_gone(folder: Path) -> None:
    spool = spool_in(folder)
    spool.append(RESULTS)
    spool.remove()
    spool.remove()
    assert not spool.exists
    spool.append(RESULTS[:1])
    assert read(spool) == RESULTS[:1]


def test_the_file_has_a_limit_also_for_the_next_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = spool_in(folder)
    spool.append(RESULTS)
    monkeypatch.setattr(limits, "MAX_SPOOL_BYTES", spool.path.stat().st_size)
    for full in (spool, spool_in(folder)):
        with pytest.raises(StoreFull, match="may have"):
            full.append(RESULTS[:1])
    assert read(spool) == RESULTS


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    spool = spool_in(folder)
    spool.append([])
    spool.path.unlink()
    spool.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a link"):
        spool_in(folder)


def test_results_that_do_not_fit_on_the_disk_are_reported_and_leave_what_was_there(folder: Path) -> None:
    spool = spool_in(folder)
    spool.append(RESULTS[:1])
    with largest_file(spool.path.stat().st_size + 5), pytest.raises(StoreError, match="cannot be written: File too"):
        spool.append(RESULTS[1:2])
    assert spool.path.stat().st_size > 5 + len(RESULTS[0].body)
    assert read(spool) == RESULTS[:1]
    spool.append(RESULTS[1:])
    assert read(spool) == RESULTS


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
