"""The full-text search over the results of all runs: made of the results after a run, and made again if it is lost.

A word of a result leads to its place, a number: that of its run in the index, the iteration and the case. Newer runs
have greater numbers, so that the newest results are found first without reading the others.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import orjson

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.store.remote_runs import RemoteRuns
from evalmeta.store.runs import Runs
from evalmeta.store.search_file import discard_search_file, has_search_file, open_search_file
from evalmeta.store.searched_texts import words_of_case
from evalmeta.store.sqlite import SqliteDatabase, pause_after
from evalmeta.store.stored_cases import decode_case

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.store.database import Database

# A change of what is searched, or of how words are read, makes the index again.
_VERSION: Final = 1
# Case numbers have at most nine digits, and there are at most 1,000 iterations.
_CASE_BITS: Final = 30
_ITERATION_BITS: Final = 11
_RUN_BITS: Final = _CASE_BITS + _ITERATION_BITS
_FIRST_NUMBER: Final = 1 << 21
_FOUND_AT_ONCE: Final = 200
_MAX_STEPS: Final = 200
_OVER: Final = """
    SELECT org_url, id, status, ended, total, started FROM listed_run
    WHERE status NOT IN ('NEW', 'IN_PROGRESS') ORDER BY started DESC, id DESC
"""
_KNOWN: Final = "SELECT org_url, run_id, number, stamp, iteration, last_case, is_whole FROM searched_run"
_ADD_RUN: Final = """
    INSERT INTO searched_run (number, org_url, run_id, stamp, iteration, last_case, is_whole)
    VALUES (?, ?, ?, ?, 0, 0, 0) ON CONFLICT DO NOTHING
"""
_MOVE: Final = """
    UPDATE searched_run SET iteration = ?, last_case = ?, is_whole = ?
    WHERE number = ? AND iteration = ? AND last_case = ? AND is_whole = 0
"""
_RENEW: Final = """
    UPDATE searched_run SET number = ?, stamp = ?, iteration = 0, last_case = 0, is_whole = 0
    WHERE org_url = ? AND run_id = ?
"""
_FORGET_RUN: Final = "DELETE FROM searched_run WHERE org_url = ? AND run_id = ?"


class SearchedPlace(NamedTuple):
    """Where a result is: the number of its run in the index, its iteration and its case."""

    run: int
    iteration: int
    case: int


class FoundPlaces(NamedTuple):
    """Results that a search found, the newest first, and where the next page begins; None after the last one."""

    places: tuple[SearchedPlace, ...]
    below: int | None


class SearchState(NamedTuple):
    """The numbers of runs in the index by org and id, and how many runs that are over it does not have yet."""

    numbers: Mapping[tuple[str, str], int]
    missing: int


class _Words(Protocol):
    """How one kind of database keeps words."""

    def add(self, rows: Sequence[tuple[int, str]]) -> None:
        """Add results: their places and their words."""

    def find(self, words: Sequence[str], below: int, at_least: int, *, limit: int, is_prefix: bool) -> list[int]:
        """Return the greatest places in a range whose results have all words."""

    def forget(self, number: int) -> bool:
        """Delete the results of a run; False if this needs to delete those of all runs."""

    def clear(self) -> None:
        """Delete the results of all runs."""


class SearchIndex:
    """The index of a store; use it while the store is open."""

    def __init__(self, database: Database, index: Database) -> None:
        self._database = database
        self._index = index
        self._words: _Words = _FtsWords(index) if isinstance(index, SqliteDatabase) else _VectorWords(index)

    def state(self) -> SearchState:
        """Return which runs the index has."""
        over = {(row[0], row[1]): _stamp(*row[2:5]) for row in self._database.query(_OVER)}
        known = self._index.query(_KNOWN)
        whole = sum(over.get((row[0], row[1])) == row[3] and bool(row[6]) for row in known)
        return SearchState({(row[0], row[1]): row[2] for row in known}, len(over) - whole)

    def update(self, *, seconds: float) -> bool:
        """Add the results of runs that the index lacks, the newest first; return whether it is complete now.

        It stops after about `seconds`; the next call continues. Several processes can call it at the same time.
        """
        deadline = time.monotonic() + seconds
        rows, known = self._database.query(_OVER), {(row[0], row[1]): row[2:] for row in self._index.query(_KNOWN)}
        if not self._forget_missing({(row[0], row[1]) for row in rows}, known):
            known = {}
        numbers = [row[0] for row in known.values()] or [_FIRST_NUMBER]
        least, greatest = min(numbers), max(numbers)
        oldest = min((row[5] for row in rows if (row[0], row[1]) in known), default=None)
        for url, run_id, status, ended, total, started in rows:
            key, stamp = (url, run_id), _stamp(status, ended, total)
            number, before, iteration, case, is_whole = known.get(key, (0, "", 0, 0, 0))
            if before != stamp:
                is_newer = oldest is None or started >= oldest
                least, greatest = (least, greatest + 1) if is_newer else (least - 1, greatest)
                oldest = started if oldest is None else min(oldest, started)
                old, number = number, greatest if is_newer else least
                iteration = case = is_whole = 0
                with self._index.transaction():
                    # A number is never used twice: words of FTS5 stay at the old one, where nothing is found.
                    is_known = self._index.execute(_RENEW, (number, stamp, *key)) if before else 0
                    if not is_known and not self._index.execute(_ADD_RUN, (number, *key, stamp)):
                        return False
                    self._words.forget(old)
            if not is_whole and not self._add_run(key, number, (iteration, case), deadline):
                return False
        return True

    def find(
        self,
        words: Sequence[str],
        numbers: Collection[int],
        *,
        limit: int,
        of_each: int,
        below: int | None = None,
        is_prefix: bool = False,
    ) -> FoundPlaces:
        """Return the newest results with all words, of the runs with these numbers, at most `of_each` of a run.

        `is_prefix` also finds longer words that begin with one. `below` is where an earlier page ended.
        """
        if not numbers or not words:
            return FoundPlaces((), None)
        ordered, wanted = sorted(numbers), frozenset(numbers)
        at_least, top = ordered[0] << _RUN_BITS, (ordered[-1] + 1) << _RUN_BITS
        below = top if below is None else min(below, top)
        found: list[SearchedPlace] = []
        taken = 0
        for _ in range(_MAX_STEPS):
            places = self._words.find(words, below, at_least, limit=_FOUND_AT_ONCE, is_prefix=is_prefix)
            for place in places:
                run, is_same = place >> _RUN_BITS, bool(found) and place >> _RUN_BITS == found[-1].run
                taken = taken if is_same else 0
                if run not in wanted or taken == of_each:
                    continue
                if len(found) == limit:
                    return FoundPlaces(tuple(found), place + 1)
                found.append(_place_of(place))
                taken += 1
            if len(places) < _FOUND_AT_ONCE:
                return FoundPlaces(tuple(found), None)
            below, last = places[-1], places[-1] >> _RUN_BITS
            if last not in wanted or taken == of_each:
                # The next result is at most in the run before that is wanted.
                place = bisect_left(ordered, last)
                if not place:
                    return FoundPlaces(tuple(found), None)
                below = (ordered[place - 1] + 1) << _RUN_BITS
        return FoundPlaces(tuple(found), below)

    def _forget_missing(self, over: Collection[tuple[str, str]], known: dict[tuple[str, str], tuple[int, ...]]) -> bool:
        """Forget runs that were deleted; return False if that needed to forget all."""
        gone = [key for key in known if key not in over]
        if not gone:
            return True
        with self._index.transaction():
            for key in gone:
                self._index.execute(_FORGET_RUN, key)
                if not self._words.forget(known.pop(key)[0]):
                    self._index.execute("DELETE FROM searched_run")
                    self._words.clear()
                    return False
        return True

    def forget_deleted(self) -> None:
        """Forget runs that the store does not have any more."""
        known = {(row[0], row[1]): row[2:] for row in self._index.query(_KNOWN)}
        if not self._forget_missing({(row[0], row[1]) for row in self._database.query(_OVER)}, known):
            self._index.shrink()

    def _add_run(self, key: tuple[str, str], number: int, after: tuple[int, int], deadline: float) -> bool:
        """Add the results of a run after one of them; return False if time is over, or another process adds them."""
        is_whole = False
        for last, cases in self._pages(key, after):
            with pause_after():
                rows = [(_place(number, case), " ".join(words_of_case(case))) for case in cases if _fits(case)]
                is_whole = last is None
                iteration, number_of_case = last or after
                with self._index.transaction(is_alone=False):
                    if not self._index.execute(_MOVE, (iteration, number_of_case, int(is_whole), number, *after)):
                        return False
                    self._words.add([row for row in rows if row[1]])
                after = iteration, number_of_case
            if time.monotonic() > deadline:
                break
        return is_whole

    def _pages(
        self, key: tuple[str, str], after: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, int] | None, Sequence[CaseResult]]]:
        """Yield the results of a run after one of them, some at a time, with the place of the last; at last None."""
        url, run_id = key
        if url:
            found = RemoteRuns(self._database).find(run_id, org_url=url)
            cases = {(case.iteration, case.number): case for remote in found for case in remote.run.cases}
            yield None, [case for place, case in sorted(cases.items()) if place > after]
            return
        runs = Runs(self._database)
        while page := runs.stored_page(run_id, after=after, cases=limits.SEARCHED_AT_ONCE, size=limits.MAX_PAGE_BYTES):
            after = page[-1][0], page[-1][1]
            yield after, [case for row in page if (case := _case_of(row[-1]))]
        yield None, []


class _FtsWords:
    """Words in SQLite's FTS5: without texts and positions, which cannot be deleted one by one."""

    def __init__(self, index: Database) -> None:
        self._index = index

    def add(self, rows: Sequence[tuple[int, str]]) -> None:
        self._index.execute_many("INSERT INTO searched_text (rowid, words) VALUES (?, ?)", rows)

    def find(self, words: Sequence[str], below: int, at_least: int, *, limit: int, is_prefix: bool) -> list[int]:
        sql = """
            SELECT rowid FROM searched_text WHERE searched_text MATCH ? AND rowid < ? AND rowid >= ?
            ORDER BY rowid DESC LIMIT ?
        """
        # Words have no quotes, so that none of FTS5's own syntax is left.
        wanted = " ".join(f'"{word}"{"*" if is_prefix else ""}' for word in words)
        return [place for (place,) in self._index.query(sql, (wanted, below, at_least, limit))]

    def forget(self, number: int) -> bool:  # noqa: ARG002 - as _Words
        return False

    def clear(self) -> None:
        self._index.execute("INSERT INTO searched_text (searched_text) VALUES ('delete-all')")


class _VectorWords:
    """Words in a tsvector of Postgres."""

    def __init__(self, index: Database) -> None:
        self._index = index

    def add(self, rows: Sequence[tuple[int, str]]) -> None:
        sql = """
            INSERT INTO searched_text
            SELECT CAST(pair ->> 0 AS BIGINT), array_to_tsvector(string_to_array(pair ->> 1, ' '))
            FROM json_array_elements(CAST(? AS JSON)) AS pair ON CONFLICT DO NOTHING
        """
        if rows:
            self._index.execute(sql, (orjson.dumps(rows).decode(),))

    def find(self, words: Sequence[str], below: int, at_least: int, *, limit: int, is_prefix: bool) -> list[int]:
        sql = """
            SELECT place FROM searched_text WHERE words @@ CAST(? AS TSQUERY) AND place < ? AND place >= ?
            ORDER BY place DESC LIMIT ?
        """
        wanted = " & ".join(f"'{word}'{':*' if is_prefix else ''}" for word in words)
        return [place for (place,) in self._index.query(sql, (wanted, below, at_least, limit))]

    def forget(self, number: int) -> bool:
        sql = "DELETE FROM searched_text WHERE place >= ? AND place < ?"
        self._index.execute(sql, (number << _RUN_BITS, (number + 1) << _RUN_BITS))
        return True

    def clear(self) -> None:
        self._index.execute("DELETE FROM searched_text")


@contextmanager
def open_index(database: Database) -> Iterator[SearchIndex]:
    """Open the index of a store; raise StoreError if it cannot be used."""
    if isinstance(database, SqliteDatabase):
        with open_search_file(database.folder) as index:
            yield SearchIndex(database, index)
    else:
        yield SearchIndex(database, database)


def discard_index(database: Database) -> None:
    """Delete the index of a store that is damaged, if it has a file of its own."""
    if isinstance(database, SqliteDatabase):
        discard_search_file(database.folder)


def forget_deleted_runs(database: Database) -> None:
    """Delete the words of runs that were deleted from a store, if it has an index."""
    if isinstance(database, SqliteDatabase) and not has_search_file(database.folder):
        return
    try:
        with open_index(database) as index:
            index.forget_deleted()
    except StoreError:
        if not isinstance(database, SqliteDatabase):
            raise
        discard_search_file(database.folder)


def _stamp(status: str, ended: float | None, total: int) -> str:
    return f"{_VERSION} {status} {ended} {total}"


def _case_of(body: bytes) -> CaseResult | None:
    """Return a stored result; None if it cannot be read, which must not keep the others from being found."""
    try:
        return decode_case(body)
    except (ValueError, TypeError):
        return None


def _fits(case: CaseResult) -> bool:
    """Return whether a case has a place: results of other orgs can have any numbers."""
    return 0 <= case.number < 1 << _CASE_BITS and 0 <= case.iteration < 1 << _ITERATION_BITS


def _place(number: int, case: CaseResult) -> int:
    return (number << _ITERATION_BITS | case.iteration) << _CASE_BITS | case.number


def _place_of(place: int) -> SearchedPlace:
    iteration = place >> _CASE_BITS & (1 << _ITERATION_BITS) - 1
    return SearchedPlace(place >> _RUN_BITS, iteration, place & (1 << _CASE_BITS) - 1)
