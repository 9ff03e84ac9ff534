from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.store.components import Receipts, open_receipts
from stores import store_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SENT = {"AiEvaluationDefinition": {"Orders": bytes(32)}}


@pytest.fixture
def receipts(tmp_path: Path) -> Iterator[Receipts]:
    with open_receipts(store_in(tmp_path / "state"), root=tmp_path, org_url="https://a.invalid") as opened:
        yield opened


def test_the_most_recent_job_of_a_kind_is_found(receipts: Receipts) -> None:
    for kind, job_id in (("deploy", "0Af1"), ("validate", "0Af2"), ("test", "4KB1"), ("deploy", "0Af3")):
        receipts.keep(kind, job_id, now=0)
    assert [receipts.latest(kind) for kind in ("deploy", "validate", "test")] == ["0Af3", "0Af2", "4KB1"]
    assert receipts.latest("validate", "test") == "4KB1"


def test_the_most_recent_job_of_a_kind_in_any_org_is_found(receipts: Receipts, tmp_path: Path) -> None:
    assert receipts.latest_anywhere("test") is None
    receipts.keep("test", "4KB1", now=0)
    with open_receipts(store_in(tmp_path / "state"), root=tmp_path, org_url="https://b.invalid") as others:
        others.keep("test", "4KB2", now=0)
        others.keep("deploy", "0Af1", now=0)
    assert receipts.latest_anywhere("test") == ("https://b.invalid", "4KB2")


def test_without_jobs_nothing_is_found(receipts: Receipts) -> None:
    assert (receipts.latest("deploy"), receipts.sent("0Af1")) == (None, None)


@pytest.mark.parametrize("job_id", ["0Af000000000001", "0Af000000000001CAA"])
def test_sent_contents_are_kept_until_they_are_deleted(receipts: Receipts, job_id: str) -> None:
    receipts.keep("deploy", "0Af000000000001CAA", now=0, sent=SENT)
    assert receipts.sent(job_id) == SENT
    receipts.delete_sent(job_id)
    assert (receipts.sent(job_id), receipts.latest("deploy")) == (None, "0Af000000000001CAA")


def test_jobs_without_contents_are_found_too(receipts: Receipts) -> None:
    receipts.keep("deploy", "0Af1", now=0, sent={})
    assert receipts.sent("0Af1") == {}


def test_jobs_that_orgs_have_forgotten_are_deleted(receipts: Receipts) -> None:
    receipts.keep("deploy", "0Af1", now=0)
    receipts.keep("test", "4KB1", now=limits.DEPLOY_KEPT_SECONDS + 1)
    assert receipts.latest("deploy") is None


def test_projects_and_orgs_are_separate(receipts: Receipts, tmp_path: Path) -> None:
    receipts.keep("deploy", "0Af1", now=0, sent=SENT)
    for root, url in ((tmp_path / "b", "https://a.invalid"), (tmp_path, "https://b.invalid")):
        with open_receipts(store_in(tmp_path / "state"), root=root, org_url=url) as others:
            assert (others.latest("deploy"), others.sent("0Af1")) == (None, None)
