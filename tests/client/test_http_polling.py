from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

import pytest

from client.servers import http_reply, replying_with, visit
from evalmeta import limits
from evalmeta.client.http import poll
from evalmeta.client.metadata import follow
from evalmeta.errors import OrgBusy, OrgError, OrgUnreachable, UsageError, WaitRanOut
from evalmeta.protocol.metadata_api import DeployResult
from evalmeta.protocol.soap import write_results

if TYPE_CHECKING:
    from collections.abc import Sequence

PASSING = OrgUnreachable("no answer", may_pass=True)
LASTING = OrgUnreachable("no way", may_pass=False)
GOING_ON = http_reply(
    200, write_results("checkDeployStatus", [DeployResult("0Af1", "InProgress", done=False, success=False)])
)
DONE = http_reply(200, write_results("checkDeployStatus", [DeployResult("0Af1", "Failed", done=True, success=False)]))


def ask_until(last: int, *, wait: float | None = None, every: float = 0.001, errors: Sequence[object] = ()) -> int:
    """Poll a job whose checks first raise these errors, then return 1, 2, 3...; return the number of checks."""
    seen: list[object] = []

    async def check() -> int:
        seen.append(None)
        said = errors[len(seen) - 1] if len(seen) <= len(errors) else None
        if isinstance(said, OrgError):
            raise said
        return len(seen)

    asyncio.run(poll(check, lambda number: number >= last, job_id="0Af", wait=wait, every=every))
    return len(seen)


def test_a_job_that_is_done_is_asked_about_once() -> None:
    assert ask_until(1, wait=0, every=3600) == 1


def test_a_wait_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(UsageError, match="wait is nan"):
        ask_until(1, wait=math.nan)


def test_a_job_is_asked_about_until_it_is_done() -> None:
    assert ask_until(5) == 5


def test_a_wait_that_times_out_names_the_job_that_continues() -> None:
    with pytest.raises(WaitRanOut, match=r"job 0Af is not done after 2\.5 seconds; it continues in the org") as raised:
        ask_until(2, wait=2.5, every=3600)
    assert (raised.value.job_id, raised.value.exit_code) == ("0Af", 69)


def test_transient_errors_are_retried() -> None:
    assert ask_until(1, errors=[PASSING] * (limits.MAX_POLL_ERRORS - 1)) == limits.MAX_POLL_ERRORS


def test_only_errors_in_a_row_count() -> None:
    most = limits.MAX_POLL_ERRORS - 1
    assert ask_until(2 * most + 2, errors=[*[PASSING] * most, None, *[PASSING] * most], every=0.0001) == 2 * most + 2


@pytest.mark.parametrize("errors", [[PASSING] * limits.MAX_POLL_ERRORS, [LASTING]])
def test_one_error_too_many_and_one_that_does_not_pass_end_the_wait(errors: list[OrgError]) -> None:
    with pytest.raises(OrgUnreachable):
        ask_until(1, errors=errors, every=0.0001)


def test_a_wait_without_any_answer_ends_with_the_reason() -> None:
    with pytest.raises(OrgUnreachable, match="no answer"):
        ask_until(1, errors=[PASSING], wait=0)


def test_a_wait_that_ends_in_trouble_is_a_wait_that_ran_out() -> None:
    with pytest.raises(WaitRanOut):
        ask_until(9, errors=[None, OrgBusy("busy", after=60)], wait=5)


def test_a_question_that_hangs_does_not_outlive_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_TIMEOUT_SECONDS", 0.01)

    async def hang() -> int:
        await asyncio.sleep(3600)
        return 1

    with pytest.raises(WaitRanOut):
        asyncio.run(poll(hang, bool, job_id="0Af", wait=0.01, every=0.001))


def test_an_org_that_is_restarted_under_way_is_asked_again() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<half"
    with replying_with(GOING_ON, b"", half, http_reply(502, b"<html>"), GOING_ON, DONE) as server:
        done = visit(server, lambda connection: follow(connection, "0Af1"))
    assert (done.status, len(server.requests)) == ("Failed", 6)
