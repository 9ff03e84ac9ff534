"""Deploy and retrieve jobs: submit, check and cancel them, and the queue that runs them in a thread."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import OrgFault, StoreCorrupt, StoreError, StoreFull, StoreLocked
from evalmeta.org.deployments import deployment_status, fail_deployment, options_of, run_deployment, write_options
from evalmeta.org.lease import is_free, new_worker, working
from evalmeta.org.retrievals import fail_retrieve, retrieve_status, run_retrieve, write_request
from evalmeta.protocol.metadata_api import (
    TEST_LEVELS,
    AsyncResult,
    CancelResult,
    DeployDetails,
    DeployOptions,
    DeployResult,
)
from evalmeta.protocol.soap import read_results, write_results
from evalmeta.store.database import open_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.model.login import User
    from evalmeta.model.registry import Manifest
    from evalmeta.org.organization import Organization
    from evalmeta.store.jobs import Job, JobKind


_LOG: Final = logging.getLogger(__name__)
_WAIT_POLL_SECONDS: Final = 0.01
# The pause before the queue retries jobs, when the database was locked or another worker has them.
_POLL_SECONDS: Final = 0.5


def submit_deployment(org: Organization, user: User, zip_file: bytes, options: DeployOptions) -> str:
    """Accept a deployment and return its id, when it is on disk.

    Raise OrgFault if too many jobs wait, or the options have an unknown test level.
    """
    if options.test_level is not None and options.test_level not in TEST_LEVELS:
        message = f"{options.test_level[:80]!r} is not a valid value for the enum 'TestLevel'"
        raise OrgFault(message, code="INVALID_INPUT", actions=[f"Known: {', '.join(TEST_LEVELS)}."])
    return _submit(org, "deploy", user, zip_file, options=write_options(options), check_only=options.check_only)


def submit_retrieve(org: Organization, user: User, manifest: Manifest, *, single_package: bool) -> str:
    """Accept a retrieve and return its id; raise like `submit_deployment`."""
    request, options = write_request(manifest, single_package=single_package)
    return _submit(org, "retrieve", user, request, options=options)


def check_deployment(org: Organization, user: User, job_id: str, *, details: bool = True) -> bytes:
    """Return the reply to checkDeployStatus.

    Raise OrgFault if the user has no such job, and StoreError if the queue cannot execute it.
    """
    job = find_job(org, "deploy", user, job_id)
    reply = org.jobs.reply(job.id)
    if reply is None:
        waiting = replace(deployment_status(job), state_detail=waiting_for(org, job))
        return write_results("checkDeployStatus", [waiting])
    if details:
        return reply
    [result] = read_results(DeployResult, reply)
    return write_results("checkDeployStatus", [replace(result, details=DeployDetails())])


def check_retrieve(org: Organization, user: User, job_id: str) -> bytes:
    """Return the reply to checkRetrieveStatus; raise like `check_deployment`."""
    job = find_job(org, "retrieve", user, job_id)
    reply = org.jobs.reply(job.id)
    if reply is None:
        waiting_for(org, job)
        return write_results("checkRetrieveStatus", [retrieve_status(job)])
    return reply


def waiting_for(org: Organization, job: Job) -> str | None:
    """Return what an unfinished job waits for, such as room on the disk; raise StoreError if that lasts too long."""
    trouble = org.trouble()
    if trouble is None:
        return None
    error, seconds = trouble
    if not isinstance(error, StoreFull):
        raise error
    if seconds < limits.DISK_FULL_SECONDS:
        return f"waiting for room on the disk: {error}"
    message = f"{error}; {job.kind} {job.id} has waited {limits.DISK_FULL_SECONDS} seconds for room"
    raise StoreFull(message, actions=["Make room on the disk: the job is then executed by the next command."])


def check_job(org: Organization, user: User, job_id: str) -> AsyncResult:
    """Return the state of a deployment or a retrieve as checkStatus does; raise like `check_deployment`."""
    job = org.jobs.get("deploy", job_id) or org.jobs.get("retrieve", job_id)
    if job is None or not _may_see(user, job):
        raise _unknown_job(job_id)
    if not job.is_over:
        return AsyncResult(done=False, id=job.id, state="Queued" if job.started is None else "InProgress")
    if job.status in {"Succeeded", "SucceededPartial"}:
        return AsyncResult(done=True, id=job.id, state="Completed")
    message = f"The {job.kind} ended as {job.status}"
    return AsyncResult(done=True, id=job.id, state="Error", message=message, status_code="UNKNOWN_EXCEPTION")


def cancel_deployment(org: Organization, user: User, job_id: str) -> CancelResult:
    """Request that a deployment is canceled before it changes anything; raise OrgFault if it is over."""
    with org.database.transaction():
        job = find_job(org, "deploy", user, job_id)
        if job.is_over:
            raise OrgFault("Deployment already completed", code="INVALID_ID_FIELD")
        org.jobs.request_cancel(job.id, user)
    org.wake()
    return CancelResult(done=False, id=job.id)


def quick_deploy(org: Organization, user: User, validation_id: str) -> str:
    """Accept a deployment of exactly the validated bytes, and return its id.

    Raise OrgFault if the validation failed, is older than 10 days, was already used, or the org has changed since.
    """
    with org.database.transaction():
        validation = org.jobs.get("deploy", validation_id)
        reason = (
            "The validation cannot be found" if validation is None else _quick_deploy_problem(org, user, validation)
        )
        zip_file = None if validation is None else org.jobs.request(validation.id)
        if validation is None or zip_file is None or reason:
            raise OrgFault(reason or "The validated package was deleted", code="INVALID_ID_FIELD")
        options = replace(options_of(validation), check_only=False)
        job_id = org.jobs.submit(
            "deploy", user, zip_file, options=write_options(options), now=org.database.now(), validation=validation.id
        )
    org.wake()
    return job_id


def find_job(org: Organization, kind: JobKind, user: User, job_id: str) -> Job:
    """Return a job of a user, any job for an admin; raise OrgFault if the user has no such job."""
    job = org.jobs.get(kind, job_id)
    if job is None or not _may_see(user, job):
        raise _unknown_job(job_id)
    return job


def _unknown_job(job_id: str) -> OrgFault:
    return OrgFault(f"invalid cross reference id {job_id[:80]}", code="INVALID_CROSS_REFERENCE_KEY")


async def wait_briefly(org: Organization, job_id: str) -> None:
    """Wait a moment for a job that may end soon, which saves the client another request."""
    deadline = time.monotonic() + limits.SETTLE_SECONDS
    org.wake()
    while time.monotonic() < deadline and org.jobs.is_unfinished(job_id):
        await asyncio.sleep(_WAIT_POLL_SECONDS)


def _submit(
    org: Organization, kind: JobKind, user: User, request: bytes, *, options: bytes, check_only: bool = False
) -> str:
    with org.database.transaction():
        if org.jobs.count_unfinished() >= limits.MAX_UNFINISHED_JOBS:
            raise OrgFault(
                f"{limits.MAX_UNFINISHED_JOBS:,} jobs are already waiting; try again later",
                code="REQUEST_LIMIT_EXCEEDED",
            )
        now = org.database.now()
        org.jobs.prune(now=now)
        job_id = org.jobs.submit(kind, user, request, options=options, now=now, check_only=check_only)
    org.wake()
    return job_id


def _quick_deploy_problem(org: Organization, user: User, validation: Job) -> str:
    if not _may_see(user, validation):
        return "The validation cannot be found"
    if not validation.check_only or validation.status != "Succeeded" or validation.ended is None:
        return "The deployment is not a successful validation"
    if org.database.now() - validation.ended > limits.QUICK_DEPLOY_SECONDS:
        return "The validation is older than 10 days; validate again"
    if org.jobs.is_used(validation.id):
        return "The validation was already deployed; validate again"
    if org.jobs.is_outdated(validation.id):
        return "The org has changed since this validation; validate again"
    return ""


def _may_see(user: User, job: Job) -> bool:
    return user.is_admin or job.user_id == user.id


class JobQueue:
    """Run jobs in a thread with its own database connection; several processes may share a database.

    Set `org` before the first `wake`.
    """

    def __init__(self) -> None:
        self.org: Organization | None = None
        self._is_awake = threading.Event()
        self._closing = threading.Event()
        self._stop_early = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._trouble: tuple[StoreError, float] | None = None

    def trouble(self) -> tuple[StoreError, float] | None:
        """Return why jobs cannot be executed, and for how many seconds already; None if they can."""
        if self._trouble is None:
            return None
        error, since = self._trouble
        return error, time.monotonic() - since

    def wake(self) -> None:
        """Start the thread, or wake it: a job may be waiting."""
        with self._lock:
            self._is_awake.set()
            if self._thread is None and self.org is not None:
                self._thread = threading.Thread(target=self._work, args=(self.org,), name="jobs", daemon=True)
                self._thread.start()

    def close(self, *, at_once: bool = False) -> None:
        """Wait at most 10 seconds until all jobs are done, or with `at_once` the current one.

        The next process runs the remaining jobs.
        """
        if at_once:
            self._stop_early.set()
        self._closing.set()
        self._is_awake.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(limits.CLOSE_SECONDS)

    def _work(self, org: Organization) -> None:
        while self._is_wanted():
            self._is_awake.clear()
            if not self._try_to_run_jobs(org) and not self._closing.is_set():
                self._is_awake.wait(_POLL_SECONDS)
                self._is_awake.set()

    def _try_to_run_jobs(self, org: Organization) -> bool:
        """Run jobs; return False if some remain, for example because the database is locked or the disk is full."""
        try:
            with open_database(org.database.store) as database:
                own = replace(org, database=database)
                run_jobs(own, until=self._stop_early.is_set)
                self._trouble = None
                return not own.jobs.count_unfinished()
        except StoreLocked:
            return False
        except StoreError as error:
            if self._trouble is None or type(self._trouble[0]) is not type(error):
                _LOG.warning("deployments and retrieves wait: %s", error)
                self._trouble = error, time.monotonic()
            return False

    def _is_wanted(self) -> bool:
        with self._lock:
            if not self._is_awake.is_set():
                self._thread = None
            return self._is_awake.is_set()


def run_jobs(org: Organization, *, until: Callable[[], bool] = lambda: False) -> None:
    """Run every waiting job, oldest first, and those whose worker died; stop early when `until` is true.

    After StoreError, unfinished jobs stay in the queue.
    """
    worker = new_worker()
    with working(worker):
        for job, lease in org.jobs.unfinished():
            if until():
                return
            if is_free(lease, now=org.database.now()) and org.jobs.claim(
                job.id, worker, taken_from=lease, now=org.database.now()
            ):
                _run(org, job)


def _run(org: Organization, job: Job) -> None:
    run, fail = (run_deployment, fail_deployment) if job.kind == "deploy" else (run_retrieve, fail_retrieve)
    try:
        run(org, job)
    except StoreCorrupt as error:
        # The damage may concern only this job, which must not block the others.
        fail(org, job, org.without_paths(". ".join([str(error), *error.actions])), code="SERVER_UNAVAILABLE")
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - a job that fails would fail in the next worker too
        fail(org, job, "An unexpected error occurred", code="UNKNOWN_EXCEPTION")
