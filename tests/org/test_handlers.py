from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import orjson
import pytest

from evalmeta import limits
from evalmeta.errors import OrgFault
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.org.app import create_app
from evalmeta.org.jobs import run_jobs
from evalmeta.protocol.metadata_api import AsyncResult, DeployOptions, DeployResult
from evalmeta.protocol.soap import deploy_call, read_results, write_call
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, RunJournal
from org.parts import KIND, URL, definition, deploy, make_project, opened_of, package, started
from protocol.envelopes import jsforce_call, wsdl_call

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evalmeta.org.organization import Organization

SOAP = "/services/Soap/m/66.0"
RUNS = "/services/data/v66.0/einstein/ai-evaluations/runs"


def send(org: Organization, method: str, path: str, content: object = None, **headers: str) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(org), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
            return await http.request(method, path, content=content, headers=headers)

    return asyncio.run(go())


def call(org: Organization, operation: str, *, path: str = SOAP, session: str | None = None) -> httpx.Response:
    session = org.token if session is None else session
    return send(org, "POST", path, jsforce_call(operation, session=session))


def rest(org: Organization, method: str, path: str, content: object = None) -> httpx.Response:
    return send(org, method, path, content, authorization=f"Bearer {org.token}")


def fault(response: httpx.Response) -> tuple[int, str, str]:
    assert response.headers["content-type"] == "text/xml;charset=UTF-8"
    with pytest.raises(OrgFault) as raised:
        read_results(AsyncResult, response.content)
    return response.status_code, raised.value.code, str(raised.value).removeprefix(f"{raised.value.code}: ")


def rest_error(response: httpx.Response) -> tuple[int, str, str]:
    assert response.headers["content-type"] == "application/json;charset=UTF-8"
    [error] = orjson.loads(response.content)
    assert set(error) == {"message", "errorCode"}
    return response.status_code, error["errorCode"], error["message"]


def test_a_call_is_answered_in_xml(org: Organization) -> None:
    response = call(org, "<describeMetadata><asOfVersion>66.0</asOfVersion></describeMetadata>")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/xml;charset=UTF-8")
    assert b"<directoryName>aiEvaluationDefinitions</directoryName><inFolder>" in response.content


def test_calls_with_prefixes_are_answered_alike(org: Organization) -> None:
    ours = send(org, "POST", SOAP, wsdl_call("<met:describeMetadata/>", session=org.token))
    assert ours.content == call(org, "<describeMetadata/>").content


@pytest.mark.parametrize("session", ["", "00D000000000001!wrong"])
def test_a_wrong_session_is_a_fault_over_soap(org: Organization, session: str) -> None:
    text = "Invalid Session ID found in SessionHeader: Illegal Session"
    assert fault(call(org, "<describeMetadata/>", session=session)) == (500, "INVALID_SESSION_ID", text)


@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic OnBhc3M="}])
@pytest.mark.parametrize(("method", "path"), [("POST", RUNS), ("GET", f"{RUNS}/4KB"), ("GET", f"{RUNS}/4KB/results")])
def test_a_wrong_session_is_401_over_rest(org: Organization, method: str, path: str, header: dict[str, str]) -> None:
    expected = (401, "INVALID_SESSION_ID", "Session expired or invalid")
    assert rest_error(send(org, method, path, **header)) == expected


def test_a_wrong_session_leaves_the_body_unread(org: Organization) -> None:
    async def body() -> Iterable[bytes]:
        raise AssertionError("the body was read")
        yield b""

    assert send(org, "POST", RUNS, body()).status_code == 401


@pytest.mark.parametrize(
    ("operation", "code", "text"),
    [
        ("<describeValueType/>", "INVALID_OPERATION", "No operation available for request describeValueType"),
        (
            "<listMetadata><queries><type>no type</type></queries></listMetadata>",
            "INVALID_TYPE",
            "Unknown type:no type",
        ),
        (
            f"<listMetadata>{f'<queries><type>{KIND.name}</type></queries>' * 4}</listMetadata>",
            "EXCEEDED_MAX_TYPES_LIMIT",
            "4 queries; at most 3 are allowed in one call",
        ),
        (
            "<checkDeployStatus><asyncProcessId>0Af9</asyncProcessId></checkDeployStatus>",
            "INVALID_CROSS_REFERENCE_KEY",
            "invalid cross reference id 0Af9",
        ),
        ("<checkRetrieveStatus/>", "INVALID_CROSS_REFERENCE_KEY", "invalid cross reference id "),
        ("<deploy/>", "INVALID_OPERATION", "deploy has no ZipFile"),
        ("<retrieve/>", "INVALID_OPERATION", "retrieve has no manifest"),
        (
            "<retrieve><retrieveRequest><packageNames>Orders</packageNames></retrieveRequest></retrieve>",
            "INVALID_CROSS_REFERENCE_KEY",
            "No package named 'Orders' found",
        ),
        ("", "INVALID_OPERATION", "the SOAP body is empty"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_a_fault(org: Organization, operation: str, code: str, text: str) -> None:
    assert fault(call(org, operation)) == (500, code, text)


@pytest.mark.parametrize("version", ["62.0", "69.0", "x", "66.1"])
def test_an_unsupported_version_is_a_fault_or_404(org: Organization, version: str) -> None:
    status, code, _ = fault(call(org, "<describeMetadata/>", path=f"/services/Soap/m/{version}"))
    assert (status, code) == (500, "UNSUPPORTED_API_VERSION")
    assert rest_error(rest(org, "GET", RUNS.replace("66.0", version) + "/4KB"))[:2] == (404, "NOT_FOUND")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("PUT", RUNS, 405)])
def test_an_unknown_address_gets_salesforces_error(org: Organization, method: str, path: str, status: int) -> None:
    assert rest_error(rest(org, method, path))[0] == status


def test_a_method_that_is_not_allowed_is_answered_with_those_that_are(org: Organization) -> None:
    assert rest(org, "PUT", RUNS).headers["allow"] == "POST"
    found = rest(org, "DELETE", "/services/data/v66.0/metadata/deployRequest/0Af000000000001AAA")
    assert found.headers["allow"] == "GET, HEAD, PATCH"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"a": ', b"\xff"])
def test_a_body_that_is_not_a_json_object_is_refused(org: Organization, body: bytes) -> None:
    assert rest_error(rest(org, "POST", RUNS, body))[:2] == (400, "JSON_PARSER_ERROR")


def test_a_body_with_a_doctype_is_a_fault_and_reads_no_file(org: Organization) -> None:
    canary = org.root / "canary"
    canary.write_text("canary text")
    entity = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{canary}">]>'
    body = jsforce_call("<x>&e;</x>", session=org.token).replace(b"?><", f"?>{entity}<".encode(), 1)
    response = send(org, "POST", SOAP, body)
    assert fault(response)[1] == "INVALID_OPERATION"
    assert b"canary" not in response.content


def test_a_body_over_the_limit_is_refused_before_it_is_kept(org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SOAP_BYTES", 1_000)
    monkeypatch.setattr(limits, "MAX_JSON_BYTES", 1_000)
    given = []

    async def body() -> Iterable[bytes]:
        for _ in range(100):
            given.append(1)
            yield bytes(500)

    assert fault(send(org, "POST", SOAP, body()))[1] == "REQUEST_TOO_LARGE"
    assert rest_error(rest(org, "POST", RUNS, bytes(1_001)))[:2] == (413, "REQUEST_TOO_LARGE")
    assert len(given) < 10


def test_a_deployment_is_answered_with_a_receipt_and_kept(waiting: Organization) -> None:
    zip_file = package({"A": definition("A")})
    sent = write_call(deploy_call(zip_file, DeployOptions()), session=waiting.token, client="c")
    [receipt] = read_results(AsyncResult, send(waiting, "POST", SOAP, sent).content)
    check = f"<checkDeployStatus><asyncProcessId>{receipt.id}</asyncProcessId></checkDeployStatus>"
    run_jobs(waiting)
    [result] = read_results(DeployResult, call(waiting, check).content)
    assert (receipt.done, receipt.state, result.id, result.success) == (False, "Queued", receipt.id, True)


@pytest.fixture
def locked(org: Organization, monkeypatch: pytest.MonkeyPatch) -> Iterable[Organization]:
    """The org while another program holds its database."""
    monkeypatch.setattr(limits, "STORE_BUSY_SECONDS", 0.01)
    with open_database(org.database.store) as other, other.transaction():
        yield org


@pytest.mark.sqlite
def test_a_locked_database_is_reported_without_its_path(locked: Organization) -> None:
    operation = "<retrieve><request><unpackaged/></request></retrieve>"
    response = call(locked, operation)
    status, code, text = fault(response)
    assert (status, code, text) == (500, "SERVER_UNAVAILABLE", "state/org.sqlite3 is locked by another program")
    assert str(locked.root).encode() not in response.content


@pytest.mark.sqlite
def test_a_broken_database_is_reported_without_its_path(org: Organization) -> None:
    org.database.execute("DROP TABLE run")
    response = rest(org, "GET", f"{RUNS}/4KB")
    status, code, text = rest_error(response)
    assert (status, code) == (500, "SERVER_UNAVAILABLE")
    assert text.startswith("state/org.sqlite3 is not a valid database: no such table: run\nMove org.sqlite3")


def test_an_unexpected_error_shows_no_traceback(org: Organization) -> None:
    broken = replace(org, database=None)
    expected = (500, "UNKNOWN_EXCEPTION", "An unexpected error occurred")
    assert rest_error(rest(broken, "GET", f"{RUNS}/4KB")) == expected
    assert fault(call(broken, "<retrieve><request><unpackaged/></request></retrieve>")) == expected


def test_a_run_is_canceled_once_and_names_the_user(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        canceled = rest(org, "POST", f"{RUNS}/{run_id}/cancel")
        again = rest_error(rest(org, "POST", f"{RUNS}/{run_id}/cancel"))
        status = rest(org, "GET", f"{RUNS}/{run_id}").json()
    assert (canceled.status_code, canceled.json()) == (200, {"success": True})
    assert (status["status"], status["errorMessage"]) == ("TERMINATED", "canceled by Local Admin")
    assert again == (400, "INVALID_STATUS", f"Run {run_id} has already finished")


def test_a_run_that_does_not_exist_cannot_be_canceled(org: Organization) -> None:
    assert rest_error(rest(org, "POST", f"{RUNS}/4KB000000000009GAA/cancel"))[:2] == (404, "NOT_FOUND")


def test_errors_of_cases_and_results_name_no_folders(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=1)
    told = f"no answer in {project.root}/run.json"
    result = TestResult("topic_assertion", Verdict.ERROR, explanation=told, error=told)
    case = CaseResult(1, 1, "Orders 1", Verdict.ERROR, 0, 1, (result,), error=told)
    with opened_of(project) as org:
        org.runs.claim(run_id, "worker", taken_from=Lease(None, None), until=time.time() + 60)
        RunJournal(org.database, run_id, "worker").append([case])
        content = rest(org, "GET", f"{RUNS}/{run_id}/results").text
    assert content.count("no answer in run.json") == 3
    assert str(project.root) not in content


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "OAuth", "OAUTH"])
def test_a_token_is_accepted_with_both_schemes_in_any_case(org: Organization, scheme: str) -> None:
    assert send(org, "GET", "/services/oauth2/userinfo", authorization=f"{scheme} {org.token}").status_code == 200


def test_a_run_is_found_by_its_short_id(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        for path in (f"{RUNS}/{run_id[:15]}", f"{RUNS}/{run_id[:15]}/results"):
            assert rest(org, "GET", path).status_code == 200


def test_a_run_of_another_user_is_not_found(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        own = org.new_token(org.users.add("ci", "ci", now=1), now=1, expires=9e9)
        refused = send(org, "POST", f"{RUNS}/{run_id}/cancel", authorization=f"Bearer {own}")
        assert rest_error(refused) == (404, "NOT_FOUND", f"Run not found: {run_id}")
        begun = send(org, "POST", RUNS, b'{"aiEvaluationDefinitionName": "Orders"}', authorization=f"Bearer {own}")
        path = f"{RUNS}/{begun.json()['runId']}/cancel"
        assert send(org, "POST", path, authorization=f"Bearer {own}").status_code == 200


@pytest.mark.parametrize(("method", "way"), [("GET", "definition"), ("POST", "extend"), ("POST", "rescore")])
def test_a_run_of_another_user_cannot_be_read_or_extended(tmp_path: Path, method: str, way: str) -> None:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        other = org.new_token(org.users.add("ci", "ci", now=1), now=1, expires=9e9)
        body = None if method == "GET" else b'{"iterations": 2}'
        refused = send(org, method, f"{RUNS}/{run_id}/{way}", body, authorization=f"Bearer {other}")
    assert rest_error(refused) == (404, "NOT_FOUND", f"Run not found: {run_id}")


@pytest.mark.parametrize(("asked", "told"), [("true", True), ("1", True), ("0", False), ("false", False)])
def test_details_are_returned_on_request(waiting: Organization, asked: str, *, told: bool) -> None:
    job_id = deploy(waiting, package({"A": definition("A")}))
    operation = f"<asyncProcessId>{job_id}</asyncProcessId><includeDetails>{asked}</includeDetails>"
    reply = call(waiting, f"<checkDeployStatus>{operation}</checkDeployStatus>")
    assert (b"<componentSuccesses>" in reply.content) is told
