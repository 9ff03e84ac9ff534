"""The journal of a run in a store that can be out of reach: results then wait in a file of this machine."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreError, StoreLocked, StoreUnreachable
from evalmeta.model.run import RunStatus
from evalmeta.store.database import Database, open_database
from evalmeta.store.runs import RunJournal, Runs
from evalmeta.store.spool import Spool, SpooledResult, spooled_files
from evalmeta.store.stored_cases import encode_case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.model.run import CaseResult, Run
    from evalmeta.store.runs import Lease

_LOG: Final = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.05
_STATUS: Final = "SELECT status FROM run WHERE id = ?"


class SpooledJournal:
    """Passes results on to the journal of a run; while its store cannot be reached, they wait in a file.

    A thread sends them as soon as it can, while the run goes on. `has_waited` says whether there were some: the store
    may have other results of these cases, if another worker took the run over meanwhile.
    """

    def __init__(self, journal: RunJournal, database: Database, run: Run) -> None:
        self._journal = journal
        self._database = database
        self._run_id = run.id
        # In another store, or in this one after it was emptied, another run can have this id.
        self._spool = Spool(database.folder, run.id, identity=f"{database.name} {run.started!r}")
        self._lock = threading.Lock()
        self._sender: threading.Thread | None = None
        self._stopped = threading.Event()
        self._failure: StoreError | None = None
        self.has_waited = False

    def send_earlier(self) -> None:
        """Send the results that an earlier worker has left."""
        if self._spool.exists:
            self.has_waited = True
            self._send_after(self._database, 0)
            self._spool.remove()

    def finished(self) -> frozenset[tuple[int, int]]:
        """Return (iteration, case number) of every result that the store has."""
        return self._journal.finished()

    def append(self, results: Sequence[CaseResult]) -> None:
        """Commit results to the store, or to the file; raise like `RunJournal.append` otherwise."""
        with self._lock:
            if self._failure:
                raise self._failure
            if self._sender is None:
                try:
                    self._journal.append(results)
                except StoreUnreachable as error:
                    self._begin(error)
                else:
                    return
            self._spool.append(_spooled(result) for result in results)

    async def delivered(self) -> None:
        """Wait until the store has all results; raise StoreError if it refuses them."""
        while self._sender:
            await asyncio.sleep(_POLL_SECONDS)
        if self._failure:
            raise self._failure

    def close(self) -> None:
        """Send no more results; those that are left are sent by the next worker of the run on this machine."""
        self._stopped.set()
        if sender := self._sender:
            sender.join(limits.SHUTDOWN_SECONDS)

    def _begin(self, error: StoreUnreachable) -> None:
        if not self.has_waited:
            what = "%s. Run %s goes on: its results wait in %s, and are sent when there is a connection again."
            _LOG.warning(what, error, self._run_id, self._spool.path)
        self.has_waited = True
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def _send(self) -> None:
        sent = 0
        while self._sender and not self._stopped.wait(limits.SPOOL_SECONDS):
            try:
                with open_database(self._database.store) as database:
                    sent = self._send_after(database, sent)
                    with self._lock:
                        # What was added meanwhile.
                        self._send_after(database, sent)
                        self._spool.remove()
                        self._sender = None
            except StoreLocked:
                # The next attempt continues after what was sent.
                continue
            except StoreError as error:
                self._failure, self._sender = error, None

    def _send_after(self, database: Database, place: int) -> int:
        """Add the results after a place in the file to the store, but for cases that have one; return their end.

        A run that has ended meanwhile, because it was canceled or others have completed it, gets no more results.
        """
        columns = "run_id, iteration, number, verdict, body"
        for batch in self._spool.batches(after=place):
            with database.transaction(is_alone=False):
                found = database.query(f"{_STATUS}{database.row_lock}", (self._run_id,))
                if not found:
                    raise StoreError(f"run {self._run_id} was deleted; its last results are in {self._spool.path}")
                if not RunStatus(found[0][0]).is_over:
                    rows = [(self._run_id, *result) for result in batch.results]
                    database.insert_new("case_result", columns, lambda: rows, count=len(rows))  # noqa: B023 - called at once
            place = batch.end
        return place


def send_left(database: Database, *, is_free: Callable[[Lease], bool]) -> None:
    """Send the results that processes have left which were killed while the store could not be reached."""
    runs = Runs(database)
    for path in spooled_files(database.folder) if database.store.url else ():
        run = runs.get(path.name.partition("-")[0])
        if run is not None and is_free(runs.lease(run.id)):
            # Another run with this id, in another store, has another file.
            SpooledJournal(RunJournal(database, run.id, ""), database, run).send_earlier()


def _spooled(result: CaseResult) -> SpooledResult:
    return SpooledResult(result.iteration, result.number, str(result.verdict), encode_case(result))
