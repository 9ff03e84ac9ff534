from __future__ import annotations

import orjson
import pytest

from client.servers import answering, connect
from evalmeta.client.agent_tests import Progress, fetch_results, follow, start_run
from evalmeta.errors import MessageUnreadable, WaitRanOut
from evalmeta.model.run import RunOptions, RunStatus
from evalmeta.wire.connect import write_options


def reply(**fields: object) -> tuple[int, bytes]:
    return 200, orjson.dumps(fields)


def test_a_run_is_started_with_what_salesforce_asks_for_and_no_more() -> None:
    transport, requests = answering(reply(runId="4KB1", status="NEW"))
    assert connect(transport, lambda connection: start_run(connection, "Orders")) == "4KB1"
    assert orjson.loads(requests[0].content) == {"aiEvaluationDefinitionName": "Orders"}


def test_options_are_sent_beside_it() -> None:
    transport, requests = answering(reply(runId="4KB1"))
    options = RunOptions(iterations=3)
    connect(transport, lambda connection: start_run(connection, "Orders", options=options))
    assert orjson.loads(requests[0].content)["runOptions"] == write_options(options)


def test_a_start_without_an_id_is_unreadable() -> None:
    transport, _ = answering(reply(status="NEW"))
    with pytest.raises(MessageUnreadable, match="gave no runId"):
        connect(transport, lambda connection: start_run(connection, "Orders"))


@pytest.mark.parametrize("last", ["COMPLETED", "ERROR", "TERMINATED"])
def test_a_run_is_followed_until_it_is_over(last: str) -> None:
    transport, requests = answering(reply(status="NEW"), reply(status="RETRY"), reply(status=last, errorMessage="x"))
    seen: list[Progress] = []
    progress = connect(transport, lambda connection: follow(connection, "4KB1", on_progress=seen.append))
    assert progress == Progress(last, error="x")
    assert ([each.status for each in seen], len(requests)) == (["NEW", "RETRY", last], 3)


def test_counts_are_told_when_the_org_tells_them() -> None:
    counts = {"testCasesCompleted": 2, "testCasesNotPassed": 1, "testCasesTotal": 5}
    transport, _ = answering(reply(status="COMPLETED", **counts))
    done = connect(transport, lambda connection: follow(connection, "4KB1", on_progress=lambda _: None))
    assert done == Progress("COMPLETED", 2, 1, 5)


def test_a_wait_that_runs_out_names_the_run() -> None:
    transport, _ = answering(reply(status="IN_PROGRESS"))
    with pytest.raises(WaitRanOut) as raised:
        connect(transport, lambda connection: follow(connection, "4KB1", wait=0, on_progress=lambda _: None))
    assert raised.value.job_id == "4KB1"


def test_results_of_an_org_are_given_the_names_that_it_does_not_tell() -> None:
    transport, _ = answering(reply(status="IN_PROGRESS", subjectName="Desk", testCases=[{}]))
    run = connect(transport, lambda connection: fetch_results(connection, "4KB1", definition="Orders"))
    assert (run.id, run.definition, run.status, len(run.cases)) == ("4KB1", "Orders", RunStatus.IN_PROGRESS, 1)
