from __future__ import annotations

import pytest

from client.servers import answering, connect
from evalmeta.client.metadata import cancel, check, deploy, follow, quick_deploy, submit
from evalmeta.errors import OrgFault, WaitRanOut
from evalmeta.protocol.metadata_api import AsyncResult, CancelResult, DeployOptions, DeployResult
from evalmeta.protocol.soap import read_call, read_deploy, read_job_id, write_fault, write_results, write_text_result

RECEIPT = (200, write_results("deploy", [AsyncResult(done=False, id="0Af1")]))
PENDING = DeployResult("0Af1", "Pending", done=False, success=False)
FAILED = DeployResult("0Af1", "Failed", done=True, success=False, error_message="no")


def status(result: DeployResult) -> tuple[int, bytes]:
    return 200, write_results("checkDeployStatus", [result])


def test_a_deployment_is_asked_about_until_it_is_done_and_failure_is_a_result() -> None:
    transport, requests = answering(RECEIPT, status(PENDING), status(PENDING), status(FAILED))
    assert connect(transport, lambda connection: deploy(connection, b"zip")) == FAILED
    calls = [read_call(request.content) for request in requests]
    assert [call.name for call in calls] == ["deploy", *["checkDeployStatus"] * 3]
    assert {call.text("asyncProcessId") for call in calls[1:]} == {"0Af1"}


def test_the_zip_and_the_options_are_sent_as_they_are() -> None:
    transport, requests = answering(RECEIPT, status(FAILED))
    options = DeployOptions(check_only=True)
    connect(transport, lambda connection: deploy(connection, b"PK\x00\xff", options=options))
    assert read_deploy(read_call(requests[0].content)) == (b"PK\x00\xff", options)


def test_a_wait_that_runs_out_names_the_deployment() -> None:
    transport, _ = answering(RECEIPT, status(PENDING))
    with pytest.raises(WaitRanOut) as raised:
        connect(transport, lambda connection: deploy(connection, b"zip", wait=0))
    assert raised.value.job_id == "0Af1"


def test_a_deployment_that_the_org_forgot_is_a_fault() -> None:
    transport, _ = answering(RECEIPT, (500, write_fault("INVALID_CROSS_REFERENCE_KEY", "invalid cross reference id")))
    with pytest.raises(OrgFault, match="invalid cross reference id"):
        connect(transport, lambda connection: deploy(connection, b"zip"))


def test_a_deployment_that_was_submitted_is_followed_by_its_id() -> None:
    transport, requests = answering(RECEIPT, status(PENDING), status(FAILED))
    seen: list[DeployResult] = []

    assert connect(transport, lambda connection: submit(connection, b"zip")) == "0Af1"
    assert connect(transport, lambda connection: follow(connection, "0Af1", on_progress=seen.append)) == FAILED
    assert (seen, len(requests)) == ([PENDING, FAILED], 3)


def test_a_deployment_is_checked_once() -> None:
    transport, requests = answering(status(PENDING))
    assert connect(transport, lambda connection: check(connection, "0Af1")) == PENDING
    assert len(requests) == 1


def test_a_cancellation_names_the_deployment() -> None:
    transport, requests = answering((200, write_results("cancelDeploy", [CancelResult(done=False, id="0Af1")])))
    connect(transport, lambda connection: cancel(connection, "0Af1"))
    call = read_call(requests[0].content)
    assert (call.name, read_job_id(call)) == ("cancelDeploy", "0Af1")


def test_a_quick_deploy_has_an_id_of_its_own() -> None:
    transport, requests = answering((200, write_text_result("deployRecentValidation", "0Af2")))
    assert connect(transport, lambda connection: quick_deploy(connection, "0Af1")) == "0Af2"
    assert read_job_id(read_call(requests[0].content)) == "0Af1"
