from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import httpx
import orjson
import pytest

from evalmeta import limits
from evalmeta.org.app import embedded_org
from evalmeta.org_clients.records import Records
from evalmeta.package.project import find_project
from org.parts import URL, definition, deploy, make_project, opened_of, package
from systems.run_eval.payloads import STATE, evaluator, message

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject

PATH = "/einstein/evaluation/v1/tests"
AGENTS = "/services/data/v66.0/query?q=SELECT+Id+FROM+BotDefinition"
AGENT = """\
def answer(utterance):
    if utterance == "break":
        raise RuntimeError("closed")
    if utterance == "plain":
        return "Hello."
    return {"outcome": "On its way.", "topic": "Orders", "actions": [{"name": "Find", "input": {"id": "7"}}]}
"""
LAST = "$.outputs[2].response.planner_response.lastExecution"


def session(agent: str = "DESK") -> JsonObject:
    return {"type": "agent.create_session", "id": "cs", "agent_id": agent, "use_agent_api": True}


def post(folder: Path, *tests: list[JsonObject], session_id: str = "") -> httpx.Response:
    project = (
        find_project(folder / "project")
        if (folder / "project").exists()
        else make_project(folder / "project", agent=AGENT)
    )
    body = {"tests": [{"id": f"t{place}", "steps": steps} for place, steps in enumerate(tests)]}

    async def go() -> httpx.Response:
        async with embedded_org(project) as (app, own):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
                found = await http.get(AGENTS, headers={"authorization": f"Bearer {own}"})
                content = json.dumps(body).replace("DESK", orjson.loads(found.content)["records"][0]["Id"])
                headers = {"authorization": f"Bearer {session_id or own}"}
                return await http.post(PATH, content=content, headers=headers, timeout=60)

    return asyncio.run(go())


def results(folder: Path, *tests: list[JsonObject]) -> list[dict[str, list[dict[str, object]]]]:
    response = post(folder, *tests)
    assert response.status_code == 200, response.text
    return list(orjson.loads(response.content)["results"])


def test_a_test_is_run_and_judged(tmp_path: Path) -> None:
    checks = [
        evaluator("planner_topic_assertion", id="topic", actual=f"{LAST}.topic", expected="Ord", operator="contains"),
        evaluator("string_assertion", id="text", actual="$.outputs[1].response", expected="Never"),
        evaluator(
            "planner_actions_assertion",
            id="actions",
            actual=f"{LAST}.invokedActions",
            expected=["Find"],
            operator="includes_items",
        ),
    ]
    [found] = results(tmp_path, [session(), message("Where?"), STATE, *checks])

    assert [(each["id"], each["score"], each["is_pass"]) for each in found["evaluation_results"]] == [
        ("topic", 1.0, True),
        ("text", 0.0, False),
        ("actions", 1.0, True),
    ]
    assert (found["id"], found["errors"]) == ("t0", [])
    created, sent, state = found["outputs"]
    assert created["session_id"]
    assert sent == {"type": "agent.send_message", "id": "sm", "response": "On its way."}
    assert state["response"]["planner_response"]["lastExecution"]["topic"] == "Orders"  # type: ignore[index]


def test_an_undecided_result_says_why(tmp_path: Path) -> None:
    topic = evaluator("planner_topic_assertion", actual=f"{LAST}.topic", expected="Orders")
    [found] = results(tmp_path, [session(), message("plain"), STATE, topic])

    [result] = found["evaluation_results"]
    assert (result["score"], result["is_pass"], found["errors"]) == (None, None, [])
    assert result["error_message"] == "undecided: the agent does not report its topic"


def test_what_cannot_be_judged_and_a_failing_agent_are_errors(tmp_path: Path) -> None:
    near = evaluator("text_alignment", generated_output="$.outputs[1].response")
    judged, broken = results(tmp_path, [session(), message("Where?"), near], [session(), message("break")])

    assert [each["id"] for each in judged["errors"]] == ["check"]
    assert "evaluator.text_alignment cannot be judged here" in str(judged["errors"][0]["error_message"])
    [error] = broken["errors"]
    assert (error["id"], "RuntimeError: closed" in str(error["error_message"])) == ("sm", True)
    assert [each["id"] for each in broken["outputs"]] == ["cs"]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([session("0Xx000000000009AAA"), message("Hi")], "the agent '0Xx000000000009AAA' is not in this org"),
        ([session(""), message("Hi")], "the test 't0' names no agent: its agent.create_session needs an agent_id"),
        ([session()], "a test needs a step of the type 'agent.send_message'"),
    ],
)
def test_a_payload_that_cannot_run_is_refused(tmp_path: Path, steps: list[JsonObject], why: str) -> None:
    response = post(tmp_path, steps)
    [error] = orjson.loads(response.content)
    assert (response.status_code, error["errorCode"], why in error["message"]) == (400, "INVALID_INPUT", True)


def test_no_agent_is_asked_if_one_of_them_cannot_be(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", agent=AGENT)
    with opened_of(project) as org:
        deploy(org, package({"Other": definition("Other", subject="Other")}))
        ids = {row["DeveloperName"]: str(row["Id"]) for row in Records(org)("BotDefinition")}
    response = post(tmp_path, [session(ids["Desk"]), message("Where?")], [session(ids["Other"]), message("Hi")])

    assert (response.status_code, orjson.loads(response.content)[0]["errorCode"]) == (400, "SUBJECT_NOT_BOUND")
    with opened_of(project) as org:
        assert org.runs.unfinished() == []
        assert org.runs.get("4KB000000000001GAA") is None


def test_a_token_is_needed(tmp_path: Path) -> None:
    assert post(tmp_path, [session(), message("Hi")], session_id="00D000000000001!wrong").status_code == 401


def test_a_payload_has_a_limited_size(tmp_path: Path) -> None:
    assert post(tmp_path, [session(), message("x" * limits.MAX_SPEC_BYTES)]).status_code == 413
