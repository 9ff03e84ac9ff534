from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson
import pytest

from client.servers import answering, connect
from evalmeta import limits
from evalmeta.client.runs import Progress, cancel_run, fetch_results, poll_run, start_run
from evalmeta.errors import MessageUnreadable, OrgBusy, OrgError, UsageError, WaitRanOut
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.model.run import RunStatus
from evalmeta.model.run_options import RunOptions
from evalmeta.protocol.runs import write_options

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection
    from evalmeta.model.run import Run


def reply(**fields: object) -> tuple[int, bytes]:
    return 200, orjson.dumps(fields)


def test_a_run_is_started_with_what_salesforce_asks_for_and_no_more() -> None:
    transport, requests = answering(reply(runId="4KB1", status="NEW"))
    assert connect(transport, lambda connection: start_run(connection, "Orders")) == "4KB1"
    assert orjson.loads(requests[0].content) == {"aiEvaluationDefinitionName": "Orders"}


def test_a_test_of_the_other_type_is_started_followed_and_read_where_it_is_run() -> None:
    case = {"subjectResponse": "{&quot;content&quot;: &quot;Hello&quot;}"}
    replies = [
        reply(runId="3A21", status="CREATED"),
        reply(status="SUCCESS"),
        reply(status="SUCCESS", testCases=[case]),
    ]
    transport, requests = answering(*replies)

    async def run(connection: Connection) -> Run:
        run_id = await start_run(connection, "Visits", kind=TESTING_DEFINITION)
        assert (await poll_run(connection, run_id, on_progress=lambda _: None)).status == "COMPLETED"
        return await fetch_results(connection, run_id)

    found = connect(transport, run)
    assert (found.status, found.cases[0].generated.outcome) == (RunStatus.COMPLETED, "Hello")
    assert orjson.loads(requests[0].content) == {"testDefinitionName": "Visits"}
    assert {"/einstein/ai-testing/runs" in str(request.url) for request in requests} == {True}


@pytest.mark.parametrize("is_ours", [True, False])
def test_options_are_sent_beside_it_to_our_own_orgs_alone(is_ours: bool) -> None:  # noqa: FBT001
    transport, requests = answering(reply(runId="4KB1"))
    options = RunOptions(iterations=3)

    async def start(connection: Connection) -> str:
        connection.is_ours = is_ours
        return await start_run(connection, "Orders", options=options)

    connect(transport, start)
    beside = {"runOptions": write_options(options)} if is_ours else {}
    assert orjson.loads(requests[0].content) == {"aiEvaluationDefinitionName": "Orders", **beside}


@pytest.mark.parametrize("options", [RunOptions(min_pass_rate=math.nan), RunOptions(iterations=0)])
def test_options_out_of_range_are_not_sent(options: RunOptions) -> None:
    transport, requests = answering((200, b'{"runId": "4KB1"}'))

    async def start(connection: Connection) -> str:
        connection.is_ours = True
        return await start_run(connection, "Orders", options=options)

    with pytest.raises(UsageError, match=r"^options: \w+ is .* (?:are allowed|is expected)"):
        connect(transport, start)
    assert requests == []


def test_a_start_that_agentforce_studio_puts_off_says_why() -> None:
    transport, _ = answering(reply(status="CREATED"))
    with pytest.raises(OrgBusy, match="a run of Visits is already in progress in the org"):
        connect(transport, lambda connection: start_run(connection, "Visits", kind=TESTING_DEFINITION))


def test_a_cancel_that_the_org_ignores_is_reported() -> None:
    transport, _ = answering(reply(success=False))
    with pytest.raises(OrgError, match="did not cancel run 4KB1"):
        connect(transport, lambda connection: cancel_run(connection, "4KB1"))


def test_a_start_without_an_id_is_unreadable() -> None:
    transport, _ = answering(reply(status="NEW"))
    with pytest.raises(MessageUnreadable, match="returned no runId"):
        connect(transport, lambda connection: start_run(connection, "Orders"))


@pytest.mark.parametrize("last", ["COMPLETED", "ERROR", "TERMINATED"])
def test_a_run_is_followed_until_it_is_over(last: str) -> None:
    transport, requests = answering(reply(status="NEW"), reply(status="RETRY"), reply(status=last, errorMessage="x"))
    seen: list[Progress] = []
    progress = connect(transport, lambda connection: poll_run(connection, "4KB1", on_progress=seen.append))
    assert progress == Progress(last, error="x")
    assert ([status.status for status in seen], len(requests)) == (["NEW", "RETRY", last], 3)


def test_counts_are_reported_if_the_org_has_them() -> None:
    counts = {"testCasesCompleted": 2, "testCasesNotPassed": 1, "testCasesTotal": 5}
    transport, _ = answering(reply(status="COMPLETED", **counts))
    done = connect(transport, lambda connection: poll_run(connection, "4KB1", on_progress=lambda _: None))
    assert done == Progress("COMPLETED", 2, 1, 5)


def test_a_wait_that_runs_out_names_the_run() -> None:
    transport, _ = answering(reply(status="IN_PROGRESS"))
    with pytest.raises(WaitRanOut) as raised:
        connect(transport, lambda connection: poll_run(connection, "4KB1", wait=0, on_progress=lambda _: None))
    assert raised.value.job_id == "4KB1"


def test_a_run_is_canceled_where_it_runs() -> None:
    transport, requests = answering(reply(success=True))
    connect(transport, lambda connection: cancel_run(connection, "4KB1"))
    assert requests[0].url.path == "/services/data/v66.0/einstein/ai-evaluations/runs/4KB1/cancel"


@pytest.mark.parametrize(("status", "times"), [(503, 2), (502, 1)])
def test_a_start_is_repeated_only_when_the_org_refused_it(status: int, times: int) -> None:
    transport, requests = answering((status, b"<html>"), reply(runId="4KB1"))
    with suppress(OrgBusy):
        connect(transport, lambda connection: start_run(connection, "Orders"))
    assert len(requests) == times


def test_results_of_an_org_are_given_the_names_that_it_does_not_tell() -> None:
    transport, _ = answering(reply(status="IN_PROGRESS", subjectName="Desk", testCases=[{}]))
    run = connect(transport, lambda connection: fetch_results(connection, "4KB1", definition="Orders"))
    assert (run.id, run.definition, run.status, len(run.cases)) == ("4KB1", "Orders", RunStatus.IN_PROGRESS, 1)


async def fetch_from_ours(connection: Connection) -> Run:
    connection.is_ours = True
    return await fetch_results(connection, "4KB1")


def test_results_of_our_own_orgs_are_fetched_page_by_page() -> None:
    pages = ((2, "1-2"), (1, "1-3"), (0, ""))
    transport, requests = answering(
        *(reply(status="COMPLETED", testCases=[{}] * count, evalmeta={"next": after}) for count, after in pages)
    )
    run = connect(transport, fetch_from_ours)
    assert len(run.cases) == 3
    assert [request.url.params["after"] for request in requests] == ["0-0", "1-2", "1-3"]


@pytest.mark.parametrize("most", [0, 1000])
def test_results_that_have_no_end_are_given_up(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(limits, "MAX_TEST_CASES", most)
    transport, _ = answering(reply(status="COMPLETED", testCases=[{}], evalmeta={"next": "1-1"}))
    with pytest.raises(MessageUnreadable, match="never end"):
        connect(transport, fetch_from_ours)
