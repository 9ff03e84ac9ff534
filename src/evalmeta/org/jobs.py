"""What callers do with jobs: hand one in, ask about it, cancel it, deploy what was validated."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import OrgFault
from evalmeta.org.deployments import describe_deployment, options_of, write_options
from evalmeta.org.retrievals import describe_retrieve, write_request
from evalmeta.wire.messages import CancelResult, DeployDetails, DeployResult
from evalmeta.wire.soap import read_results, write_results

if TYPE_CHECKING:
    from evalmeta.model.manifest import Manifest
    from evalmeta.model.user import User
    from evalmeta.org.organization import Organization
    from evalmeta.store.jobs import Job, JobKind
    from evalmeta.wire.messages import DeployOptions

__all__ = [
    "cancel_deployment",
    "check_deployment",
    "check_retrieve",
    "find_job",
    "quick_deploy",
    "settle",
    "submit_deployment",
    "submit_retrieve",
]

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
        return write_results("checkDeployStatus", [describe_deployment(job)])
    if details:
        return reply
    [result] = read_results(DeployResult, reply)
    return write_results("checkDeployStatus", [replace(result, details=DeployDetails())])


def check_retrieve(org: Organization, user: User, job_id: str) -> bytes:
    """Answers checkRetrieveStatus; raises like `check_deployment`."""
    job = find_job(org, "retrieve", user, job_id)
    reply = org.jobs.reply(job.id)
    if reply is None:
        return write_results("checkRetrieveStatus", [describe_retrieve(job)])
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
        org.jobs.ask_to_cancel(job.id, user)
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


async def settle(org: Organization, job_id: str) -> None:
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
