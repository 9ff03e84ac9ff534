from __future__ import annotations

import pytest

from client.servers import answering, connect
from evalmeta.client.metadata import list_components, retrieve
from evalmeta.errors import OrgFault, WaitRanOut
from evalmeta.model.registry import Manifest, ManifestTypes
from evalmeta.protocol.metadata_api import AsyncResult, FileProperties, RetrieveMessage, RetrieveResult
from evalmeta.protocol.soap import read_call, read_retrieve, write_results

MANIFEST = Manifest((ManifestTypes("AiEvaluationDefinition", ("A",)),), "64.0")
RECEIPT = (200, write_results("retrieve", [AsyncResult(done=False, id="09S1")]))
GOING_ON = RetrieveResult("09S1", "InProgress", done=False, success=False)
DONE = RetrieveResult(
    "09S1",
    "Succeeded",
    done=True,
    success=True,
    messages=(RetrieveMessage("unpackaged/package.xml", "no A"),),
    zip_file=b"PK",
)


def status(result: RetrieveResult) -> tuple[int, bytes]:
    return 200, write_results("checkRetrieveStatus", [result])


def test_a_retrieve_is_asked_about_until_it_is_done() -> None:
    transport, requests = answering(RECEIPT, status(GOING_ON), status(DONE))
    assert connect(transport, lambda connection: retrieve(connection, MANIFEST)) == DONE
    assert read_retrieve(read_call(requests[0].content)) == (MANIFEST, False)
    assert len(requests) == 3


def test_a_single_package_is_asked_for() -> None:
    transport, requests = answering(RECEIPT, status(DONE))
    connect(transport, lambda connection: retrieve(connection, MANIFEST, single_package=True))
    assert read_retrieve(read_call(requests[0].content)) == (MANIFEST, True)


def test_a_retrieve_that_failed_is_a_fault() -> None:
    failed = RetrieveResult("09S1", "Failed", done=True, success=False, error_message="no", error_status_code="X")
    transport, _ = answering(RECEIPT, status(failed))
    with pytest.raises(OrgFault, match="retrieve 09S1 failed: no") as raised:
        connect(transport, lambda connection: retrieve(connection, MANIFEST))
    assert raised.value.code == "X"


def test_a_wait_that_runs_out_names_the_retrieve() -> None:
    transport, _ = answering(RECEIPT, status(GOING_ON))
    with pytest.raises(WaitRanOut) as raised:
        connect(transport, lambda connection: retrieve(connection, MANIFEST, wait=0))
    assert raised.value.job_id == "09S1"


def test_components_are_listed_as_the_org_has_them() -> None:
    found = [FileProperties("T", "A", "ts/A.t", created_date="2026-11-20T15:08:45.000Z"), FileProperties("T", "B", "b")]
    transport, requests = answering((200, write_results("listMetadata", found)))
    assert connect(transport, lambda connection: list_components(connection, "T")) == found
    assert read_call(requests[0].content).text("queries", "type") == "T"
