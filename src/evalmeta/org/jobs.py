"""What callers do with jobs: hand one in, ask about it, cancel it, deploy what was validated.

The queue of an org's jobs: carried out in order, by a thread that is there while there is work.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import OrgFault, StoreError
from evalmeta.org.deployments import deployment_status, fail_deployment, options_of, run_deployment, write_options
from evalmeta.org.lease import is_free, new_worker, working
from evalmeta.org.retrievals import fail_retrieve, retrieve_status, run_retrieve, write_request
from evalmeta.protocol.metadata_api import CancelResult, DeployDetails, DeployResult
from evalmeta.protocol.soap import read_results, write_results
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.model.component import Manifest
    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization
    from evalmeta.protocol.metadata_api import DeployOptions
    from evalmeta.store.jobs import Job, JobKind


_SETTLE_POLL_SECONDS: Final = 0.01


def submit_deployment(org: Organization, user: User, zip_file: bytes, options: DeployOptions) -> str:
    """Accepts a deployment and gives its id; it is on disk before this returns.

    Raises:
        OrgFault: too many jobs wait already.
    """
    return _submit(org, "deploy", user, zip_file, options=write_options(options), check_only=options.check_only)


def submit_retrieve(org: Organization, user: User, manifest: Manifest, *, single_package: bool) -> str:
    """Accepts a retrieve and gives its id; raises like `submit_deployment`."""
    request, options = write_request(manifest, single_package=single_package)
    return _submit(org, "retrieve", user, request, options=options)


def check_deployment(org: Organization, user: User, job_id: str, *, details: bool = True) -> bytes:
    """Answers checkDeployStatus.

    Raises:
        OrgFault: the user has no such job.
    """
    job = find_job(org, "deploy", user, job_id)
    reply = org.jobs.reply(job.id)
    if reply is None:
        return write_results("checkDeployStatus", [deployment_status(job)])
    if details:
        return reply
    [result] = read_results(DeployResult, reply)
    return write_results("checkDeployStatus", [replace(result, details=DeployDetails())])


def check_retrieve(org: Organization, user: User, job_id: str) -> bytes:
    """Answers checkRetrieveStatus; raises like `check_deployment`."""
    job = find_job(org, "retrieve", user, job_id)
    reply = org.jobs.reply(job.id)
    if reply is None:
        return write_results("checkRetrieveStatus", [retrieve_status(job)])
    return reply


def cancel_deployment(org: Organization, user: User, job_id: str) -> CancelResult:
    """Cancels a deployment that has not ended: before it has changed anything, or not at all.

    Raises:
        OrgFault: the user has no such job, or it is over.
    """
    with org.database.transaction():
        job = find_job(org, "deploy", user, job_id)
        if job.is_over:
            raise OrgFault("Deployment already completed", code="INVALID_ID_FIELD")
        org.jobs.request_cancel(job.id, user)
    org.wake()
    return CancelResult(done=False, id=job.id)


def quick_deploy(org: Organization, user: User, validation_id: str) -> str:
    """Accepts a deployment of exactly the bytes that were validated, and gives its id.

    Raises:
        OrgFault: the user has no such validation, it failed, is older than 10 days or was
            used already, or the org was deployed to after it.
    """
    with org.database.transaction():
        validation = org.jobs.get("deploy", validation_id)
        reason = "There is no such validation" if validation is None else _unfit(org, user, validation)
        zip_file = None if validation is None else org.jobs.request(validation.id)
        if validation is None or zip_file is None or reason:
            raise OrgFault(reason or "The validated package is not kept any more", code="INVALID_ID_FIELD")
        options = replace(options_of(validation), check_only=False)
        job_id = org.jobs.submit(
            "deploy", user, zip_file, options=write_options(options), now=time.time(), validation=validation.id
        )
    org.wake()
    return job_id


def find_job(org: Organization, kind: JobKind, user: User, job_id: str) -> Job:
    """Gives a user's job; an admin's are everybody's.

    Raises:
        OrgFault: the user has no such job.
    """
    job = org.jobs.get(kind, job_id)
    if job is None or not _may_see(user, job):
        raise OrgFault(f"invalid cross reference id {job_id[:80]}", code="INVALID_CROSS_REFERENCE_KEY")
    return job


async def wait_briefly(org: Organization, job_id: str) -> None:
    """Waits a moment for a job that is about to end, so that whoever asks need not come again."""
    deadline = time.monotonic() + limits.SETTLE_SECONDS
    org.wake()
    while time.monotonic() < deadline and org.jobs.is_unfinished(job_id):
        await asyncio.sleep(_SETTLE_POLL_SECONDS)


def _submit(
    org: Organization, kind: JobKind, user: User, request: bytes, *, options: bytes, check_only: bool = False
) -> str:
    with org.database.transaction():
        if org.jobs.count_unfinished() >= limits.MAX_UNFINISHED_JOBS:
            raise OrgFault(
                f"{limits.MAX_UNFINISHED_JOBS:,} jobs wait already; try again later", code="REQUEST_LIMIT_EXCEEDED"
            )
        now = time.time()
        org.jobs.prune(now=now)
        job_id = org.jobs.submit(kind, user, request, options=options, now=now, check_only=check_only)
    org.wake()
    return job_id


def _unfit(org: Organization, user: User, validation: Job) -> str | None:
    """Says why a job cannot be deployed quickly; None when it can."""
    if not _may_see(user, validation):
        return "There is no such validation"
    if not validation.check_only or validation.status != "Succeeded" or validation.ended is None:
        return "The deployment is no validation that succeeded"
    if time.time() - validation.ended > limits.QUICK_DEPLOY_SECONDS:
        return "The validation is older than 10 days; validate again"
    if org.jobs.is_used(validation.id):
        return "The validation was deployed already; validate again"
    if org.jobs.is_outdated(validation.id):
        return "The org was deployed to after this validation; validate again"
    return None


def _may_see(user: User, job: Job) -> bool:
    return user.is_admin or job.user_id == user.id


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


def run_jobs(org: Organization, *, until: Callable[[], bool] = lambda: False) -> None:
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
    with suppress(StoreError), open_database(org.database.path.parent) as database:
        own = replace(org, database=database)
        run_jobs(own, until=until)
        return not own.jobs.count_unfinished()
    return False


def _carry_out(org: Organization, job: Job) -> None:
    carry_out, fail = (run_deployment, fail_deployment) if job.kind == "deploy" else (run_retrieve, fail_retrieve)
    try:
        carry_out(org, job)
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - a job that breaks would break its next worker too
        fail(org, job, "An unexpected error occurred", code="UNKNOWN_EXCEPTION")
