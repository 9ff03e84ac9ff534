from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.model.login import ADMIN
from evalmeta.store.jobs import Jobs
from evalmeta.store.runs import Lease

if TYPE_CHECKING:
    from evalmeta.store.database import Database

FREE = Lease(None, None)


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


def submitted(jobs: Jobs, *, check_only: bool = False, validation: str | None = None) -> str:
    return jobs.submit("deploy", ADMIN, b"zip", options=b"{}", now=1, check_only=check_only, validation=validation)


def finished(jobs: Jobs, status: str = "Succeeded", *, check_only: bool = False) -> str:
    job_id = submitted(jobs, check_only=check_only)
    jobs.finish(job_id, status, b"<reply/>", now=2)
    return job_id


def test_a_new_job_waits_with_its_request(jobs: Jobs) -> None:
    job_id = submitted(jobs)
    job = jobs.get("deploy", job_id)
    assert job is not None
    assert (job.id, job.status, job.user_name, job.is_over) == ("0Af000000000001CAA", "Pending", ADMIN.name, False)
    assert (jobs.request(job_id), jobs.reply(job_id)) == (b"zip", None)


def test_a_job_is_found_by_its_short_id(jobs: Jobs) -> None:
    assert jobs.get("deploy", submitted(jobs)[:15]) == jobs.get("deploy", "0Af000000000001CAA")


def test_a_job_of_another_kind_is_another_job(jobs: Jobs) -> None:
    assert jobs.get("retrieve", submitted(jobs)) is None


def test_a_finished_job_keeps_its_reply_and_drops_its_request(jobs: Jobs) -> None:
    job_id = finished(jobs)
    assert (jobs.request(job_id), jobs.reply(job_id), jobs.count_unfinished()) == (None, b"<reply/>", 0)


def test_only_a_validation_that_succeeded_keeps_its_request(jobs: Jobs) -> None:
    assert jobs.request(finished(jobs, check_only=True)) == b"zip"
    assert jobs.request(finished(jobs, "Failed", check_only=True)) is None


def test_the_oldest_job_comes_first(jobs: Jobs) -> None:
    ids = [submitted(jobs) for _ in range(3)]
    assert [job.id for job, _ in jobs.unfinished()] == ids


def test_a_job_is_claimed_once(jobs: Jobs) -> None:
    job_id = submitted(jobs)
    assert [jobs.claim(job_id, worker, taken_from=FREE, now=5) for worker in "ab"] == [True, False]
    [(job, lease)] = jobs.unfinished()
    assert (job.status, job.started, lease) == ("InProgress", 5, Lease("a", 5 + limits.RUN_LEASE_SECONDS))


def test_the_history_lists_jobs_in_order_of_execution(jobs: Jobs) -> None:
    first, second = submitted(jobs), submitted(jobs)
    for job_id in (second, first):
        jobs.finish(job_id, "Succeeded", b"", now=3)
    assert [job.id for job in jobs.history()] == [second, first]


def test_only_the_latest_deployments_are_read_and_all_are_counted(jobs: Jobs) -> None:
    ids = [finished(jobs) for _ in range(5)]
    submitted(jobs)
    found, count = jobs.latest(limit=2)
    assert ([job.id for job in found], count) == ([ids[4], ids[3]], 5)
    assert jobs.latest(limit=2, user_id="another") == ([], 0)


def test_deployments_that_changed_the_org_since_a_time_are_listed_in_their_order(jobs: Jobs) -> None:
    ids = [finished(jobs, status) for status in ("Succeeded", "Failed", "SucceededPartial", "Succeeded")]
    finished(jobs, check_only=True)
    assert [job.id for job in jobs.applied(since=2, limit=2)] == ids[2:]
    assert jobs.applied(since=3, limit=2) == []


def test_a_canceled_job_says_by_whom(jobs: Jobs) -> None:
    job_id = submitted(jobs)
    jobs.request_cancel(job_id, ADMIN)
    job = jobs.get("deploy", job_id)
    assert job is not None
    assert (job.status, job.canceled_by, job.canceled_name) == ("Canceling", ADMIN.id, ADMIN.name)


def test_claiming_a_job_does_not_undo_its_cancelation(jobs: Jobs) -> None:
    job_id = submitted(jobs)
    jobs.request_cancel(job_id, ADMIN)
    jobs.claim(job_id, "a", taken_from=FREE, now=5)
    assert jobs.unfinished()[0][0].status == "Canceling"


@pytest.mark.parametrize(
    ("check_only", "status", "outdated"),
    [
        (False, "Succeeded", True),
        (True, "Succeeded", False),
        (False, "Failed", False),
        (False, "SucceededPartial", True),
    ],
)
def test_later_changes_of_the_org_outdate_a_validation(
    jobs: Jobs, *, check_only: bool, status: str, outdated: bool
) -> None:
    validation = finished(jobs, check_only=True)
    finished(jobs, status, check_only=check_only)
    assert jobs.is_outdated(validation) is outdated


def test_a_validation_is_used_unless_its_deployment_failed(jobs: Jobs) -> None:
    validation = finished(jobs, check_only=True)
    assert not jobs.is_used(validation)
    job_id = submitted(jobs, validation=validation)
    assert jobs.is_used(validation)
    jobs.finish(job_id, "Failed", b"", now=3)
    assert not jobs.is_used(validation)


def test_old_jobs_are_deleted_but_unfinished_ones_never(jobs: Jobs) -> None:
    done, waiting = finished(jobs), submitted(jobs)
    jobs.prune(now=2 + limits.DEPLOY_KEPT_SECONDS)
    assert jobs.get("deploy", done) is not None
    jobs.prune(now=3 + limits.DEPLOY_KEPT_SECONDS)
    assert jobs.get("deploy", done) is None
    assert jobs.get("deploy", waiting) is not None


def test_the_zip_of_a_validation_too_old_to_deploy_is_deleted(jobs: Jobs) -> None:
    validation = finished(jobs, check_only=True)
    jobs.prune(now=2 + limits.QUICK_DEPLOY_SECONDS)
    assert jobs.request(validation) == b"zip"
    jobs.prune(now=3 + limits.QUICK_DEPLOY_SECONDS)
    assert (jobs.request(validation), jobs.reply(validation)) == (None, b"<reply/>")


def test_the_zip_of_an_outdated_validation_is_deleted(jobs: Jobs) -> None:
    before, _, after = (finished(jobs, check_only=check_only) for check_only in (True, False, True))
    waiting = submitted(jobs, check_only=True)
    jobs.prune(now=3)
    assert [jobs.request(each) for each in (before, after, waiting)] == [None, b"zip", b"zip"]
