"""The queue of an org's jobs: carried out in order, by a thread that is there while there is work."""

from __future__ import annotations

import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.org.deployments import carry_out_deployment, fail_deployment
from evalmeta.org.leases import is_free, new_worker, working
from evalmeta.org.retrievals import carry_out_retrieve, fail_retrieve
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.org.organization import Organization
    from evalmeta.store.jobs import Job

__all__ = ["JobQueue", "carry_out_jobs"]

# How soon the queue looks again for jobs that it could not work on: the database was busy, or another worker has them.
_LOOK_SECONDS: Final = 0.5


class JobQueue:
    """Carries jobs out in a thread of its own, with a connection of its own; several processes may share a database.

    Attributes:
        org: whose jobs they are; set it before the first `wake`.
    """

    def __init__(self) -> None:
        self.org: Organization | None = None
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Says that there may be work."""
        with self._lock:
            self._wanted.set()
            if self._thread is None and self.org is not None:
                self._thread = threading.Thread(target=self._work, args=(self.org,), name="jobs", daemon=True)
                self._thread.start()

    def close(self, *, at_once: bool = False) -> None:
        """Waits until all work is done, or `at_once` the job in hand, at most 10 seconds.

        What is not done then is left to the next process.
        """
        if at_once:
            self._leaving.set()
        self._closing.set()
        self._wanted.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(limits.CLOSE_SECONDS)

    def _work(self, org: Organization) -> None:
        while self._is_wanted():
            self._wanted.clear()
            if not _try_to_carry_out(org, until=self._leaving.is_set) and not self._closing.is_set():
                self._wanted.wait(_LOOK_SECONDS)
                self._wanted.set()

    def _is_wanted(self) -> bool:
        with self._lock:
            if not self._wanted.is_set():
                self._thread = None
            return self._wanted.is_set()


def carry_out_jobs(org: Organization, *, until: Callable[[], bool] = lambda: False) -> None:
    """Carries out every job that waits, the oldest first, and those whose worker died; `until` ends that early.

    Raises:
        StoreError: the database cannot be used; jobs that are not done yet stay.
    """
    worker = new_worker()
    with working(worker):
        for job, lease in org.jobs.unfinished():
            if until():
                return
            if is_free(lease) and org.jobs.claim(job.id, worker, taken_from=lease, now=time.time()):
                _carry_out(org, job)


def _try_to_carry_out(org: Organization, *, until: Callable[[], bool]) -> bool:
    """Carries jobs out; False when some are left, such as those that a busy database kept from it."""
    with suppress(StoreError), closing(open_database(org.database.path.parent)) as database:
        own = replace(org, database=database)
        carry_out_jobs(own, until=until)
        return not own.jobs.count_unfinished()
    return False


def _carry_out(org: Organization, job: Job) -> None:
    carry_out, fail = (
        (carry_out_deployment, fail_deployment) if job.kind == "deploy" else (carry_out_retrieve, fail_retrieve)
    )
    try:
        carry_out(org, job)
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - a job that breaks would break its next worker too
        fail(org, job, "An unexpected error occurred", code="UNKNOWN_EXCEPTION")
