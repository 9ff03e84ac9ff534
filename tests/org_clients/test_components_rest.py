from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import orjson
import pytest

from evalmeta.org.app import create_app
from evalmeta.org.jobs import run_jobs
from org.parts import KIND, URL, definition, package

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization

REQUESTS = "/services/data/v66.0/metadata/deployRequest"
ZIP = package({"A": definition("A")})
OPTIONS = {"checkOnly": False, "rollbackOnError": True}


def send(org: Organization, method: str, path: str = REQUESTS, **content: object) -> tuple[int, dict[str, object]]:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(org), raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {org.token}"}
        async with httpx.AsyncClient(transport=transport, base_url=URL, headers=headers) as http:
            return await http.request(method, path, **content)

    response = asyncio.run(go())
    return response.status_code, response.json()


def form(name: str, **options: object) -> list[tuple[str, tuple[str | None, bytes, str]]]:
    entity = orjson.dumps({"deployOptions": {**OPTIONS, **options}})
    return [("file", ("package.xml", ZIP, "application/zip")), (name, (None, entity, "application/json"))]


def posted(org: Organization, **options: object) -> str:
    status, reply = send(org, "POST", files=form("json", **options))
    assert status == 201
    return str(reply["id"])


def described(org: Organization, job_id: str, query: str = "?includeDetails=true") -> dict[str, object]:
    status, reply = send(org, "GET", f"{REQUESTS}/{job_id}{query}")
    assert status == 200
    return reply["deployResult"]


@pytest.mark.parametrize("name", ["json", "entity_content"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_form_is_read_with_its_parts_in_any_order_and_spelling(
    waiting: Organization, name: str, *, turned: bool
) -> None:
    parts = form(name)
    status, reply = send(waiting, "POST", files=parts[::-1] if turned else parts)
    run_jobs(waiting)
    assert (status, described(waiting, str(reply["id"]))["status"]) == (201, "Succeeded")
    assert waiting.components.content(KIND.name, "A") == definition("A")


def test_a_deployment_is_described_with_details_and_options(waiting: Organization) -> None:
    job_id = posted(waiting, checkOnly=True)
    run_jobs(waiting)
    result = described(waiting, job_id)
    assert [success["fullName"] for success in result["details"]["componentSuccesses"]] == ["package.xml", "A"]
    assert (result["done"], result["checkOnly"], result["numberComponentsTotal"]) == (True, True, 1)


def test_details_come_only_when_asked_for(waiting: Organization) -> None:
    job_id = posted(waiting)
    run_jobs(waiting)
    assert described(waiting, job_id, "")["details"]["componentSuccesses"] == []


def test_a_validation_is_deployed_quickly(waiting: Organization) -> None:
    validation = posted(waiting, checkOnly=True)
    run_jobs(waiting)
    status, reply = send(waiting, "POST", json={"validatedDeployRequestId": validation})
    assert (status, reply["validatedDeployRequestId"]) == (201, validation)
    run_jobs(waiting)
    assert described(waiting, str(reply["id"]))["status"] == "Succeeded"


def test_a_deployment_that_is_over_cannot_be_canceled(waiting: Organization) -> None:
    job_id = posted(waiting)
    run_jobs(waiting)
    body = {"deployResult": {"status": "Canceling"}}
    status, reply = send(waiting, "PATCH", f"{REQUESTS}/{job_id}", json=body)
    assert (status, reply[0]["errorCode"]) == (400, "INVALID_ID_FIELD")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"json": {}}, "INVALID_INPUT"),
        ({"json": []}, "JSON_PARSER_ERROR"),
        ({"files": form("json")[1:]}, "JSON_PARSER_ERROR"),
        ({"files": [form("json")[0], ("json", (None, b"{", "application/json"))]}, "JSON_PARSER_ERROR"),
        ({"files": form("json") * 5}, "JSON_PARSER_ERROR"),
        ({"content": b"--x", "headers": {"content-type": "multipart/form-data; boundary=y"}}, "JSON_PARSER_ERROR"),
        ({"content": b"--x", "headers": {"content-type": "multipart/form-data"}}, "JSON_PARSER_ERROR"),
        ({"files": form("json", checkOnly="perhaps")}, "JSON_PARSER_ERROR"),
    ],
)
def test_a_request_that_is_not_a_deployment_is_refused(
    waiting: Organization, content: dict[str, object], code: str
) -> None:
    status, reply = send(waiting, "POST", **content)
    assert (status, reply[0]["errorCode"]) == (400, code)
    assert waiting.jobs.history() == []


def test_an_unknown_job_is_not_found(waiting: Organization) -> None:
    status, reply = send(waiting, "GET", f"{REQUESTS}/0Af000000000009AAA")
    assert (status, reply[0]["errorCode"]) == (404, "INVALID_CROSS_REFERENCE_KEY")


def test_a_validation_is_deployed_at_the_documented_address_or_not_found(waiting: Organization) -> None:
    validation = posted(waiting, checkOnly=True)
    run_jobs(waiting)
    body, path = {"validatedDeployRequestId": validation}, f"{REQUESTS}/validatedDeployRequestId"
    assert send(waiting, "POST", path, json=body)[0] == 201
    status, reply = send(waiting, "POST", path, json=body)
    assert (status, reply[0]["errorCode"]) == (404, "INVALID_ID_FIELD")
