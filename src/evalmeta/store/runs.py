"""Runs, their journals of case results, and the leases by which workers own runs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import MetadataType, hash_of
from evalmeta.model.run import CaseResult, ContentKind, Run, RunContent, RunStatus, Verdict
from evalmeta.protocol.runs import read_options, write_options
from evalmeta.store.database import Database, next_ids
from evalmeta.store.stored_cases import decode_case, encode_case
from evalmeta.store.suites import mark_started

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run_options import Origin, RunOptions
    from evalmeta.model.tally import Tally
    from evalmeta.store.sql import Row


_DAY_SECONDS: Final = 24 * 3600.0
_SELECT_RUN: Final = """
    SELECT id, definition, subject_name, status, coalesce(started_at, created_at), total, subject_version, ended_at,
      error, answers_of, options
    FROM run
"""
_RESULT_COLUMNS: Final = "run_id, iteration, number, verdict, body"
_SELECT_OWNER: Final = "SELECT worker FROM run WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Lease:
    """The worker that owns a run, and the time when its lease expires (seconds since the epoch)."""

    worker: str | None
    until: float | None


def keep_content(database: Database, content: bytes) -> bytes:
    """Save the content of a test, once for all its runs, and return its SHA-256; call it inside a transaction."""
    digest = hash_of(content)
    database.execute("INSERT INTO content VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, content))
    return digest


class Runs:
    """The runs of an org."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(  # noqa: PLR0913 - one for every column
        self,
        kind: MetadataType,
        evaluation: Evaluation,
        content: RunContent,
        options: RunOptions,
        *,
        total: int,
        now: float,
        user: User = ADMIN,
        answers_of: str | None = None,
    ) -> str:
        """Save a user's new run of a definition, and return its id, whose prefix depends on the definition's type.

        `total` is the number of its case results; `answers_of` is the run whose answers it judges again. A test of a
        suite has one run: if it has one already, because its start is repeated, that is returned.
        """
        with self._database.transaction():
            if options.origin.place and (run_id := self._at_place(options.origin, user)):
                return run_id
            return self._insert(kind, evaluation, content, options, total, now, user, answers_of)

    def keep_ended(self, kind: MetadataType, run: Run, content: RunContent, *, user: User = ADMIN) -> str:
        """Save a run that ended elsewhere, without its results, and return its new id; call it inside a transaction."""
        tested = Evaluation(run.definition, run.subject_name, (), run.subject_version)
        run_id = self._insert(kind, tested, content, run.options, run.total, run.started, user, run.answers_of)
        sql = "UPDATE run SET status = ?, started_at = ?, ended_at = ?, error = ? WHERE id = ?"
        self._database.execute(sql, (run.status.value, run.started, run.ended, run.error, run_id))
        return run_id

    def _insert(  # noqa: PLR0913, PLR0917 - one for every column
        self,
        kind: MetadataType,
        evaluation: Evaluation,
        content: RunContent,
        options: RunOptions,
        total: int,
        now: float,
        user: User,
        answers_of: str | None,
    ) -> str:
        [run_id] = next_ids(self._database, kind.run_prefix)
        sql = """
            INSERT INTO run
              (id, definition, content, content_sha256, kind, subject_name, subject_version, status, options, total,
               created_at, user_id, answers_of, suite, branch, confirms, place, title, keeps_tags)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
        """
        origin, is_file = options.origin, content.kind is ContentKind.FILE
        kept = (content.data, None) if is_file else (b"", keep_content(self._database, content.data))
        tested = (run_id, evaluation.name, *kept, content.kind, evaluation.subject_name, evaluation.subject_version)
        begun = (RunStatus.NEW.value, orjson.dumps(write_options(options)), total, now, user.id, answers_of)
        called = (origin.suite, origin.branch, options.confirms, origin.place, evaluation.title)
        self._database.execute(sql, (*tested, *begun, *called))
        mark_started(self._database, options)
        return run_id

    def _at_place(self, origin: Origin, user: User) -> str:
        """Return a user's run at a place of a suite; empty if there is none."""
        sql = "SELECT id FROM run WHERE suite = ? AND place = ? AND user_id = ?"
        return next((run_id for (run_id,) in self._database.query(sql, (origin.suite, origin.place, user.id))), "")

    def next_timestamp(self, now: float) -> float:
        """Return the time of a new run: `now`, or that of the run before if the clock was set back, up to a day."""
        sql = "SELECT started FROM listed_run WHERE org_url = '' AND started < ? ORDER BY started DESC LIMIT 1"
        return max([now, *(float(started) for (started,) in self._database.query(sql, (now + _DAY_SECONDS,)))])

    def get(self, run_id: str) -> Run | None:
        """Return a run without its cases; None if it does not exist."""
        rows = self._database.query(f"{_SELECT_RUN} WHERE id = ?", (run_id,))
        return _run(rows[0]) if rows else None

    def latest(self, kind: MetadataType, definition: str) -> Run | None:
        """Return the latest run of a definition that asked its agent, without its cases; None if there is none.

        Runs that `evalmeta test run FILE` started are left out.
        """
        sql = f"""
            {_SELECT_RUN} WHERE definition = ? AND substr(id, 1, 3) = ? AND answers_of IS NULL AND kind <> 'file'
            ORDER BY created_at DESC, id DESC LIMIT 1
        """
        rows = self._database.query(sql, (definition, kind.run_prefix))
        return _run(rows[0]) if rows else None

    def newest_asked(self) -> Iterator[Run]:
        """Yield the runs that asked their agent, without their cases, the newest first; not those that asked again."""
        sql = f"""
            {_SELECT_RUN} WHERE confirms = '' AND answers_of IS NULL
            ORDER BY coalesce(started_at, created_at) DESC, id DESC
        """
        return map(_run, self._database.rows(sql))

    def of_suite(self, suite_id: str) -> list[Run]:
        """Return all runs of a suite without their cases, also those that asked or judged again."""
        sql = f"{_SELECT_RUN} WHERE suite = ? ORDER BY place, created_at, id"
        return [_run(row) for row in self._database.query(sql, (suite_id,))]

    def is_visible_to(self, run_id: str, user: User) -> bool:
        """Return whether a user may see a run: its own user and admins may."""
        sql = "SELECT EXISTS (SELECT 1 FROM run WHERE id = ? AND (? OR user_id = ?))"
        [(is_visible,)] = self._database.query(sql, (run_id, user.is_admin, user.id))
        return bool(is_visible)

    def content(self, run_id: str) -> RunContent:
        """Return what a run stored of its test when it was created."""
        sql = "SELECT coalesce(data, content), kind FROM run LEFT JOIN content ON sha256 = content_sha256 WHERE id = ?"
        [(content, kind)] = self._database.query(sql, (run_id,))
        return RunContent(bytes(content), ContentKind(kind))

    def content_key(self, run_id: str) -> tuple[ContentKind, bytes]:
        """Return what identifies the content of a run's test: the JSON of a file, or a SHA-256 of all other kinds."""
        sql = "SELECT kind, content, content_sha256 FROM run WHERE id = ?"
        [(kind, content, digest)] = self._database.query(sql, (run_id,))
        return ContentKind(kind), bytes(content if digest is None else digest)

    def case(self, run_id: str, iteration: int, number: int) -> CaseResult | None:
        """Return one finished case; None if there is none."""
        sql = "SELECT body FROM case_result WHERE run_id = ? AND iteration = ? AND number = ?"
        rows = self._database.query(sql, (run_id, iteration, number))
        return decode_case(rows[0][0]) if rows else None

    def cases(self, run_id: str) -> tuple[CaseResult, ...]:
        """Return the finished cases of a run, ordered by iteration and number."""
        sql = "SELECT body FROM case_result WHERE run_id = ? ORDER BY iteration, number"
        return tuple(decode_case(body) for (body,) in self._database.query(sql, (run_id,)))

    def stream(self, run_id: str) -> Iterator[CaseResult]:
        """Yield the finished cases of a run like `cases`, but read one page at a time."""
        after = (0, 0)
        while page := self.page(run_id, after=after):
            yield from page
            after = (page[-1].iteration, page[-1].number)

    def page(self, run_id: str, *, after: tuple[int, int]) -> tuple[CaseResult, ...]:
        """Return the next page of finished cases after an iteration and number; empty at the end.

        A page has at most `limits.MAX_PAGE_CASES` cases and `limits.MAX_PAGE_BYTES` bytes, but at least one case.
        """
        page = self.stored_page(run_id, after=after, cases=limits.MAX_PAGE_CASES, size=limits.MAX_PAGE_BYTES)
        return tuple(decode_case(row[-1]) for row in page)

    def stored_page(self, run_id: str, *, after: tuple[int, int], cases: int, size: int) -> list[Row]:
        """Return iteration, number, verdict and JSON of the next finished cases.

        There are at most `cases` with `size` bytes, but at least one if there is any.
        """
        sql = """
            SELECT iteration, number, length(body) FROM case_result
            WHERE run_id = ? AND (iteration, number) > (?, ?) ORDER BY iteration, number LIMIT ?
        """
        left, last = size, after
        for iteration, number, length in self._database.query(sql, (run_id, *after, cases)):
            left -= length
            if left < 0 and last != after:
                break
            last = iteration, number
        sql = """
            SELECT iteration, number, verdict, body FROM case_result WHERE run_id = ? AND (iteration, number) > (?, ?)
              AND (iteration, number) <= (?, ?) ORDER BY iteration, number
        """
        return self._database.query(sql, (run_id, *after, *last))

    def count(self, run_id: str) -> Counter[Verdict]:
        """Count the finished cases of a run by their verdicts."""
        sql = "SELECT verdict, count(*) FROM case_result WHERE run_id = ? GROUP BY verdict"
        return Counter({Verdict(verdict): cases for verdict, cases in self._database.query(sql, (run_id,))})

    def lease(self, run_id: str) -> Lease:
        """Return the lease of a run."""
        [(worker, until)] = self._database.query("SELECT worker, lease_until FROM run WHERE id = ?", (run_id,))
        return Lease(worker, until)

    def unfinished(self) -> list[tuple[str, Lease]]:
        """List the unfinished runs with their leases, the oldest first."""
        sql = "SELECT id, worker, lease_until FROM run WHERE status IN ('NEW', 'IN_PROGRESS') ORDER BY created_at, id"
        return [(run_id, Lease(worker, until)) for run_id, worker, until in self._database.query(sql)]

    def stopped(self) -> list[str]:
        """List the runs that stopped at their limit of errors or cost, if they are the latest of their test."""
        sql = """
            SELECT id FROM run AS stopped
            WHERE status = 'ERROR' AND (instr(error, '(max_errors)') > 0 OR instr(error, '(max_cost)') > 0)
              AND answers_of IS NULL AND confirms = ''
              AND NOT EXISTS (
                SELECT 1 FROM run WHERE definition = stopped.definition AND status = 'COMPLETED' AND answers_of IS NULL
                  AND confirms = '' AND (created_at, id) > (stopped.created_at, stopped.id))
            ORDER BY created_at, id
        """
        return [run_id for (run_id,) in self._database.query(sql)]

    def queue(self, project: str = "") -> list[tuple[str, Lease]]:
        """List the unfinished runs with their leases: the oldest of each user, then the second of each, and so on.

        In a shared store they are only those of a project, because others have other agents of the same names.
        """
        sql = """
            SELECT id, worker, lease_until FROM run WHERE status IN ('NEW', 'IN_PROGRESS')
              AND (? = '' OR json_extract(CAST(options AS TEXT), '$.origin.project') = ?)
            ORDER BY row_number() OVER (PARTITION BY user_id ORDER BY created_at, id), created_at, id
        """
        rows = self._database.query(sql, (project, project))
        return [(run_id, Lease(worker, until)) for run_id, worker, until in rows]

    def count_waiting(self, user: User) -> tuple[int, int]:
        """Return how many runs of a user, and how many in all, wait for their first worker."""
        sql = "SELECT count(*) FILTER (WHERE user_id = ?), count(*) FROM run WHERE status = 'NEW'"
        [(own, all_runs)] = self._database.query(sql, (user.id,))
        return own, all_runs

    def claim(self, run_id: str, worker: str, *, taken_from: Lease, until: float, now: float | None = None) -> bool:
        """Lease a run whose lease is still `taken_from`; False if it was claimed or renewed meanwhile, or is over.

        The run starts with its first lease; `now` is the current time by default.
        """
        started = time.time() if now is None else now
        sql = """
            UPDATE run
            SET worker = ?, lease_until = ?, status = 'IN_PROGRESS',
                started_at = coalesce(started_at, max(created_at, ?))
            WHERE id = ? AND status IN ('NEW', 'IN_PROGRESS') AND worker IS ? AND lease_until IS ?
        """
        return self._database.execute(sql, (worker, until, started, run_id, taken_from.worker, taken_from.until)) == 1

    def renew(self, run_id: str, worker: str, *, until: float) -> bool:
        """Extend a worker's lease; False if the worker does not own the run any more."""
        sql = "UPDATE run SET lease_until = ? WHERE id = ? AND worker = ?"
        return self._database.execute(sql, (until, run_id, worker)) == 1

    def release(self, run_id: str, worker: str) -> bool:
        """Release an unfinished run to other workers; False if the worker does not own the run any more."""
        sql = "UPDATE run SET worker = NULL, lease_until = NULL WHERE id = ? AND worker = ?"
        return self._database.execute(sql, (run_id, worker)) == 1

    def cancel(self, run_id: str, *, error: str, now: float) -> bool:
        """Cancel an unfinished run and keep its finished cases; False if the run is over.

        The run's worker notices it at the next result, which is not saved.
        """
        sql = """
            UPDATE run SET status = 'TERMINATED', error = ?, ended_at = ?, worker = NULL, lease_until = NULL
            WHERE id = ? AND status IN ('NEW', 'IN_PROGRESS')
        """
        return self._database.execute(sql, (error, now, run_id)) == 1

    def extend(self, run_id: str, options: RunOptions, *, total: int) -> bool:
        """Restart a run that is over with a greater total, or with the same one if it stopped; finished cases are kept.

        Return False if the run is not over, or has all of `total` to run already.
        """
        sql = """
            UPDATE run SET options = ?, total = ?, status = 'NEW', ended_at = NULL, error = NULL,
                tally = NULL, verdict = NULL
            WHERE id = ? AND status NOT IN ('NEW', 'IN_PROGRESS') AND (total < ? OR (total = ? AND status = 'ERROR'))
        """
        return self._database.execute(sql, (orjson.dumps(write_options(options)), total, run_id, total, total)) == 1

    def record(self, run_id: str, options: RunOptions, *, total: int | None = None) -> None:
        """Save the options of a run that have changed, and the number of its results if it is given."""
        sql = "UPDATE run SET options = ?, total = coalesce(?, total) WHERE id = ?"
        self._database.execute(sql, (orjson.dumps(write_options(options)), total, run_id))

    def finish(
        self,
        run_id: str,
        worker: str,
        status: RunStatus,
        *,
        error: str | None,
        now: float,
        kept: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """End a run; `kept` has the columns of its tally, which the first list that shows it computes otherwise."""
        sql = """
            UPDATE run SET status = ?, error = ?, ended_at = ?, worker = NULL, lease_until = NULL,
                tally = ?, verdict = ?
            WHERE id = ? AND worker = ?
        """
        self._database.execute(sql, (status.value, error, now, *kept, run_id, worker))


class RunJournal:
    """A run's journal: results are on disk before `append` returns, and each case has one result.

    `tally` counts the appended results.
    """

    __slots__ = ("_database", "_run_id", "_tally", "_worker")

    def __init__(self, database: Database, run_id: str, worker: str, tally: Tally | None = None) -> None:
        self._database = database
        self._run_id = run_id
        self._worker = worker
        self._tally = tally

    def finished(self) -> frozenset[tuple[int, int]]:
        """Return iteration and number of every finished case."""
        sql = "SELECT iteration, number FROM case_result WHERE run_id = ?"
        return frozenset((iteration, number) for iteration, number in self._database.query(sql, (self._run_id,)))

    def append(self, results: Sequence[CaseResult]) -> None:
        """Commit results in one transaction.

        The first result of a case stays: to append it again, because it is not known whether it was committed, changes
        nothing. Raise StoreLocked at once while another program writes, and StoreError if another worker owns the run.
        """
        database, owner = self._database, f"{_SELECT_OWNER}{self._database.row_lock}"
        with database.waiting(0), database.transaction(is_alone=False):
            if database.query(owner, (self._run_id,)) != [(self._worker,)]:
                raise StoreError(f"run {self._run_id} was deleted, or taken over by another worker")
            new = database.insert_new("case_result", _RESULT_COLUMNS, lambda: self._rows(results), count=len(results))
            kept = results if new == len(results) else [result for result in results if self._has(result)]
        if self._tally is not None:
            for case in kept:
                self._tally.add(case)

    def _rows(self, results: Sequence[CaseResult]) -> Iterator[Row]:
        # Not a list: the results of a batch may be large, and their JSON is needed one by one.
        for result in results:
            yield self._run_id, result.iteration, result.number, str(result.verdict), encode_case(result)

    def _has(self, result: CaseResult) -> bool:
        """Return whether the result of its case is this one, not that of another answer which came first."""
        sql = "SELECT body FROM case_result WHERE run_id = ? AND iteration = ? AND number = ?"
        rows = self._database.query(sql, (self._run_id, result.iteration, result.number))
        return rows == [(encode_case(result),)]


def _run(row: Row) -> Run:
    *fields, options = row
    run_id, definition, subject_name, status, started, total, version, ended, error, answers_of = fields
    return Run(
        id=run_id,
        definition=definition,
        subject_name=subject_name,
        status=RunStatus(status),
        started=started,
        total=total,
        subject_version=version,
        ended=ended,
        error=error,
        answers_of=answers_of,
        options=read_options(orjson.loads(options)),
    )
