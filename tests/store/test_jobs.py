from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.store.jobs import Jobs

if TYPE_CHECKING:
    from evalmeta.store.database import Database


def test_a_jobs_reply_is_kept_under_its_id(database: Database) -> None:
    jobs = Jobs(database)
    job_id = jobs.new_id("deploy")
    jobs.save("deploy", job_id, b"<reply/>", now=1)
    assert job_id == "0Af000000000001CAA"
    assert jobs.reply("deploy", job_id) == b"<reply/>"


def test_a_job_of_another_kind_is_another_job(database: Database) -> None:
    jobs = Jobs(database)
    jobs.save("retrieve", jobs.new_id("retrieve"), b"<reply/>", now=1)
    assert jobs.reply("deploy", "09S000000000001EAA") is None
    assert jobs.reply("retrieve", "09S000000000002EAA") is None
