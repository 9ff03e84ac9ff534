"""The preview API of an org: scripts are compiled, and sessions carry them out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from canaries import MARK, canary
from evalmeta import limits
from evalmeta.protocol.agent_api import read_plan
from systems.agent_script.previews import NAMED, RULES, preview, read
from systems.agent_script.projects import write_project

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    import httpx

    from systems.agent_script.previews import Client

UNKNOWN = NAMED + "            | The plan is {!@variables.plan}.\n"

WAITING = """\
import pathlib, time

FOLDER = pathlib.Path(__file__).parent

def check_customer(id):
    (FOLDER / "begun").touch()
    while not (FOLDER / "go").exists():
        time.sleep(0.005)
    return {"known": True}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path, rules=RULES)
    (tmp_path / "evalmeta.toml").write_text("")
    return tmp_path


def error(response: httpx.Response) -> tuple[int, str]:
    fault = response.json()
    assert fault["status"] == response.status_code
    assert fault.keys() == {"status", "path", "requestId", "error", "message", "timestamp", "expected"}
    return response.status_code, fault["message"]


def test_a_script_becomes_a_definition_with_its_names(project: Path) -> None:
    async def compile_it(client: Client) -> SimpleNamespace:
        return read(await client.compile())

    reply = preview(project, compile_it)
    configuration, version = reply.compiledArtifact.globalConfiguration, reply.compiledArtifact.agentVersion
    assert (reply.status, reply.errors) == ("success", [])
    assert (configuration.developerName, configuration.label) == ("Bike_Shop", "Bikes")
    assert (configuration.defaultAgentUser, version.initialNode) == ("shop@example.com", "reception")
    assert [node.developerName for node in version.nodes] == ["reception", "repairs", "office"]


def test_a_script_with_errors_is_not_compiled_and_each_has_its_place(project: Path) -> None:
    async def compile_it(client: Client) -> SimpleNamespace:
        return read(await client.compile(UNKNOWN))

    reply = preview(project, compile_it)
    assert (reply.status, reply.compiledArtifact) == ("failure", None)
    [found] = reply.errors
    assert (found.errorType, found.lineStart) == ("script-reference", len(UNKNOWN.splitlines()))
    assert (found.colStart, "there is no variable 'plan'" in found.description) == (29, True)


def test_a_conversation_has_answers_and_their_plans(project: Path) -> None:
    async def converse(client: Client) -> tuple[SimpleNamespace, SimpleNamespace, SimpleNamespace]:
        started = read(await client.request_session())
        answer = await client.say(started.sessionId, "Repair 7?")
        return started, read(answer), await client.plan(started.sessionId, answer)

    started, answer, plan = preview(project, converse)
    assert [message.message for message in started.messages] == ["Hello C1!"]
    assert [(message.type, message.message) for message in answer.messages] == [("Inform", "It costs 120.")]
    assert (plan.type, plan.topic) == ("PlanSuccessResponse", "repairs")
    functions = [step.function for step in plan.plan if step.type == "FunctionStep"]
    assert [(each.name, vars(each.input), vars(each.output)) for each in functions] == [
        ("check_customer", {"id": "C1"}, {"known": True}),
        ("find_ticket", {"number": "7", "detail": True}, {"state": "ready", "cost": 120}),
        ("notify", {"text": "ticket ready"}, {"sent": True}),
    ]
    [transition] = [step.data for step in plan.plan if step.type == "TransitionStep"]
    assert vars(transition) == {"from_agent": "reception", "to_agent": "repairs"}
    assert [step.topic for step in plan.plan if step.type == "UpdateTopicStep"] == ["reception", "repairs"]


def test_a_conversation_that_a_person_takes_over_is_escalated(project: Path) -> None:
    async def escalate(client: Client) -> tuple[SimpleNamespace, httpx.Response]:
        session = await client.start()
        return read(await client.say(session, "A person, please")), await client.say(session, "Hello?", 2)

    answer, later = preview(project, escalate)
    assert (answer.messages[0].type, error(later)[0]) == ("Escalate", 400)


def test_the_failure_of_an_action_is_in_its_step(project: Path) -> None:
    (project / "rules/Bike_Shop.yaml").write_text(RULES.replace('"7"', '"8"'))

    async def fail(client: Client) -> SimpleNamespace:
        session = await client.start()
        return await client.plan(session, await client.say(session, "8"))

    functions = [step.function for step in preview(project, fail).plan if step.type == "FunctionStep"]
    assert functions[0].errors is None
    assert [each.message for each in functions[1].errors] == ["the archive is locked"]


def test_without_a_model_or_rules_the_error_has_the_lines_to_add(project: Path) -> None:
    (project / "rules/Bike_Shop.yaml").unlink()

    async def start(client: Client) -> httpx.Response:
        return await client.request_session()

    status, message = error(preview(project, start))
    assert status == 400
    assert '[subjects.Bike_Shop]\nadapter = "agent_script"\nbundle = "Bike_Shop"\nmodel = ' in message


def test_an_agent_with_another_adapter_needs_a_table_for_its_script(project: Path) -> None:
    table = '[subjects.Bike_Shop]\nadapter = "python"\ntarget = "shop:answer"\n'

    async def start(client: Client) -> httpx.Response:
        return await client.request_session()

    (project / "evalmeta.toml").write_text(table)
    status, message = error(preview(project, start))
    assert (status, "[subjects.Bike_Shop_Script]" in message) == (400, True)
    lines = '[subjects.Drafts]\nadapter = "agent_script"\nbundle = "Bike_Shop"\n'
    (project / "evalmeta.toml").write_text(table + lines)
    assert preview(project, start).status_code == 200


@pytest.mark.parametrize("setting", ['target = "shop:choose"', 'functions = "shop"'])
def test_a_served_org_imports_no_code_for_a_preview(project: Path, setting: str) -> None:
    (project / "shop.py").write_text("raise SystemExit")
    table = f'[subjects.Bike_Shop]\nadapter = "agent_script"\nbundle = "Bike_Shop"\n{setting}\n'
    (project / "evalmeta.toml").write_text(table)

    async def start(client: Client) -> httpx.Response:
        return await client.request_session()

    status, message = error(preview(project, start))
    assert (status, "Python code (shop" in message) == (400, True)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"enableSimulationMode": False}, "--simulate-actions"),
        ({"executionHistory": [{"role": "user"}]}, "executionHistory is not supported"),
        ({"conversationContext": [{"role": "user"}]}, "conversationContext is not supported"),
        ({"agentDefinition": {}}, "no agentDefinition"),
        ({"agentDefinition": {"schemaVersion": "2.0"}}, "not compiled by this org"),
        ({"variables": [{"name": "Colour", "type": "Text", "value": "red"}]}, "Colour"),
    ],
)
def test_a_session_that_cannot_be_carried_out_is_refused(project: Path, changes: dict[str, object], part: str) -> None:
    async def start(client: Client) -> httpx.Response:
        return await client.request_session(**changes)

    status, message = error(preview(project, start))
    assert (status, part in message) == (400, True), message


def test_a_definition_that_was_changed_is_refused(project: Path) -> None:
    async def start(client: Client) -> httpx.Response:
        definition = (await client.compile()).json()["compiledArtifact"]
        definition["agentVersion"]["nodes"][0]["description"] = "Another"
        return await client.request_session(agentDefinition=definition)

    assert error(preview(project, start)) == (
        400,
        "the agentDefinition was changed after it was compiled\nCompile it again.",
    )


def test_a_script_without_a_name_has_no_settings(project: Path) -> None:
    async def start(client: Client) -> httpx.Response:
        return await client.request_session(NAMED.replace("developer_name", "other_name"))

    status, message = error(preview(project, start))
    assert (status, "the script does not name its agent" in message) == (400, True)


def test_variables_keep_their_types(project: Path) -> None:
    (project / "rules/Bike_Shop.yaml").write_text(
        'rules: [{answer: "{!@variables.visits + 1} {!@variables.verified}"}]'
    )
    variables = [
        {"name": "visits", "type": "Number", "value": 2},
        {"name": "verified", "type": "Boolean", "value": True},
    ]

    async def start(client: Client) -> str:
        answer = await client.say(await client.start(variables=variables), "Hi")
        return str(read(answer).messages[0].message)

    assert preview(project, start) == "3 True"


def test_a_failed_turn_ends_the_session_with_the_row_to_add(project: Path) -> None:
    async def fail(client: Client) -> tuple[httpx.Response, httpx.Response]:
        session = await client.start()
        return await client.say(session, "I lost the number"), await client.say(session, "7", 2)

    failed, later = preview(project, fail)
    status, message = error(failed)
    assert (status, "Add this row to actions/find_ticket.yaml" in message) == (400, True)
    status, message = error(later)
    assert (status, "Start a new session." in message) == (400, True)


def test_numbers_of_messages_grow(project: Path) -> None:
    async def repeat(client: Client) -> list[int]:
        session = await client.start()
        return [(await client.say(session, "7", number)).status_code for number in (5, 5, 4, 6)]

    assert preview(project, repeat) == [200, 400, 400, 200]


def test_one_message_of_a_session_is_answered_at_a_time(project: Path) -> None:
    (project / "shop.py").write_text(WAITING)
    (project / "actions/check_customer.yaml").unlink()
    table = 'adapter = "agent_script"\nbundle = "Bike_Shop"\nfunctions = "shop"\n'
    (project / "evalmeta.toml").write_text(f"[subjects.Bike_Shop]\n{table}")

    async def hurry(client: Client) -> list[int]:
        session = await client.start()
        first = asyncio.create_task(client.say(session, "7"))
        while not (project / "begun").exists():
            await asyncio.sleep(0.005)
        second = await client.say(session, "7", 2)
        end = await client.send("DELETE", f"/preview/sessions/{session}")
        (project / "go").touch()
        return [(await first).status_code, second.status_code, end.status_code]

    assert preview(project, hurry, is_served=False) == [200, 423, 423]


def test_a_turn_has_a_deadline(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PREVIEW_TURN_SECONDS", 0.05)
    (project / "actions/check_customer.yaml").write_text("- outputs: {known: true}\n  delay: 30\n")

    async def wait(client: Client) -> httpx.Response:
        return await client.say(await client.start(), "7")

    assert error(preview(project, wait))[0] == 504


def test_an_ended_session_is_gone(project: Path) -> None:
    async def end(client: Client) -> tuple[SimpleNamespace, httpx.Response]:
        session = await client.start()
        ended = read(await client.send("DELETE", f"/preview/sessions/{session}"))
        return ended, await client.say(session, "7")

    ended, later = preview(project, end)
    assert (ended.messages[0].type, error(later)[0]) == ("SessionEnded", 404)


def test_sessions_end_when_they_are_not_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def leave(client: Client) -> list[int]:
        session = await client.start()
        monkeypatch.setattr(limits, "PREVIEW_IDLE_SECONDS", 0.0)
        return [(await client.say(session, "7")).status_code]

    assert preview(project, leave) == [404]


def test_an_idle_session_makes_room_but_one_in_use_does_not(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PREVIEWS", 2)

    async def crowd(client: Client) -> list[int]:
        first, _ = await client.start(), await client.start()
        refused = await client.request_session()
        monkeypatch.setattr(limits, "PREVIEW_ROOM_SECONDS", 0.0)
        third = await client.start()
        answers = [await client.say(session, "7") for session in (first, third)]
        return [refused.status_code, *(answer.status_code for answer in answers)]

    assert preview(project, crowd) == [429, 404, 200]


def test_a_session_keeps_its_last_plans(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PREVIEW_PLANS", 1)

    async def talk(client: Client) -> list[int]:
        session = await client.start()
        answers = [read(await client.say(session, "7", turn)) for turn in (1, 2)]
        plans = [answer.messages[0].planId for answer in answers]
        return [(await client.send("GET", f"/preview/sessions/{session}/plans/{plan}")).status_code for plan in plans]

    assert preview(project, talk) == [404, 200]


def test_a_session_is_only_its_users(project: Path) -> None:
    async def look(client: Client) -> list[int]:
        session = await client.start()
        path = f"/preview/sessions/{session}"
        others = await client.send("DELETE", path, token=client.others)
        nobodys = await client.send("POST", "/authoring/scripts", {}, token="")
        own = await client.send("DELETE", path)
        return [error(others)[0], error(nobodys)[0], own.status_code]

    assert preview(project, look) == [404, 401, 200]


def test_errors_show_no_key(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", canary("model"))
    table = 'adapter = "agent_script"\nbundle = "Bike_Shop"\nmodel = "m"\nurl = "http://127.0.0.1:1/v1"\n'
    (project / "evalmeta.toml").write_text(f'[subjects.Bike_Shop]\n{table}api_key_env = "SHOP_KEY"\n')

    async def fail(client: Client) -> httpx.Response:
        return await client.say(await client.start(), "7")

    status, message = error(preview(project, fail))
    assert (status, MARK in message) == (502, False)


def test_greetings_and_answers_hide_what_the_settings_hide(project: Path) -> None:
    (project / "evalmeta.toml").write_text('[redact]\npatterns = ["1[0-9]0", "C1"]\n')

    async def talk(client: Client) -> list[str]:
        started = read(await client.request_session())
        answer = read(await client.say(started.sessionId, "My repair"))
        return [started.messages[0].message, answer.messages[0].message]

    assert preview(project, talk) == ["Hello [secret]!", "It costs [secret]."]


def test_a_name_that_no_bundle_can_have_is_refused(project: Path) -> None:
    async def start(client: Client) -> httpx.Response:
        return await client.request_session(NAMED.replace('"Bike_Shop"', '"Bike Shop"'))

    status, message = error(preview(project, start))
    assert (status, message.splitlines()[0]) == (400, "'Bike Shop' is not a valid name of an agent")


def test_a_number_that_json_cannot_hold_is_an_error_of_the_script(project: Path) -> None:
    async def compile_it(client: Client) -> SimpleNamespace:
        return read(await client.compile(NAMED.replace("number = 0", f"number = {2**63}", 1)))

    [found] = preview(project, compile_it).errors
    assert "a whole number is larger than 9,223,372,036,854,775,807" in found.description


def test_a_plan_says_which_outputs_must_be_reviewed(project: Path) -> None:
    (project / "actions/find_ticket.yaml").write_text("- {outputs: {state: ready, cost: 120}, review: true}\n")

    async def talk(client: Client) -> object:
        session = await client.start()
        answer = read(await client.say(session, "My repair"))
        path = f"/preview/sessions/{session}/plans/{answer.messages[0].planId}"
        return (await client.send("GET", path)).json()

    actions = read_plan(preview(project, talk)).actions or ()
    assert {action.name: action.review for action in actions} == {
        "check_customer": "", "find_ticket": "actions/find_ticket.yaml:1", "notify": "",
    }  # fmt: skip
