from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from a2a.helpers import new_data_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface
from loopback import serving
from starlette.applications import Starlette
from talks import answers, results

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = [("1.0", True), ("1.0", False), ("0.3", True), ("0.3", False)]


class Desk(AgentExecutor):
    """Does what the first word of the message says, and remembers the messages of a context."""

    def __init__(self):
        self.said = {}

    async def execute(self, context, queue):
        text = context.get_user_input()
        said = self.said.setdefault(context.context_id, [])
        said.append(text)
        if text == "raise":
            raise ValueError("no such tool")
        if text.startswith("say"):
            answer = f"{text} in turn {len(said)}, {context.message.metadata.fields['city'].string_value or 'nowhere'}"
            await queue.enqueue_event(new_text_message(answer, context_id=context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await updater.start_work()
        reason = updater.new_agent_message([new_text_part("Which order?")])
        if text == "ask":
            await updater.requires_input(reason)
        elif text == "login":
            await updater.requires_auth(reason)
        elif text == "fail":
            await updater.failed(reason)
        elif text == "data":
            await updater.add_artifact([new_data_part({"id": "7"})])
            await updater.complete()
        else:
            await updater.add_artifact([new_text_part("It is ")], artifact_id="a")
            await updater.add_artifact([new_text_part(text)], artifact_id="a", append=True, last_chunk=True)
            await updater.complete()

    async def cancel(self, context, queue):
        pass


@pytest.fixture(params=KINDS, ids=str)
def url(request) -> Iterator[str]:
    version, streams = request.param

    def application(url: str) -> Starlette:
        card = AgentCard(
            name="desk",
            version="1",
            supported_interfaces=[
                AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version=version)
            ],
            capabilities=AgentCapabilities(streaming=streams),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
        )
        handler = DefaultRequestHandler(Desk(), InMemoryTaskStore(), card)
        routes = create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=version == "0.3")
        return Starlette(routes=create_agent_card_routes(card) + routes)

    with serving(application) as address:
        yield address


def asked(url: str, *cases: object) -> list:
    return list(results({"adapter": "a2a", "url": url}, *cases))


def test_two_turns_are_one_conversation(url: str) -> None:
    (result,) = asked(url, ["say Hi", "say Bye"])
    first, second = answers(result)
    assert (first.outcome, second.outcome) == ("say Hi in turn 1, nowhere", "say Bye in turn 2, nowhere")
    assert first.session_id == second.session_id is not None


def test_a_task_that_asks_is_continued_by_the_next_turn(url: str) -> None:
    first, second = answers(asked(url, ["ask", "sent"])[0])
    assert (first.outcome, first.state) == ("Which order?", {"task_state": "input-required"})
    assert (second.outcome.replace("\n", ""), second.state) == ("It is sent", {"task_state": "completed"})


def test_data_is_a_structured_answer(url: str) -> None:
    assert answers(asked(url, ["data"])[0])[0].value == {"id": "7"}


@pytest.mark.parametrize(
    ("text", "why"), [("fail", "failed: Which"), ("login", "authorization"), ("raise", "-32603: no such tool")]
)
def test_a_task_without_an_answer_is_an_error(url: str, text: str, why: str) -> None:
    assert why in asked(url, [text])[0].error


def test_cases_at_once_do_not_share_a_conversation(url: str) -> None:
    talks = [answers(result) for result in asked(url, *(["say Hi", f"say Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"say Bye{number} in turn 2, nowhere" for number in range(4)]


def test_the_history_and_the_context_of_a_case_are_known(url: str) -> None:
    history = [{"role": "user", "message": "say Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"input": "say now", "conversationHistory": history, "context": {"city": "Bonn"}}
    assert answers(asked(url, case)[0])[0].outcome == "say now in turn 2, Bonn"


@pytest.mark.parametrize("url", KINDS[:1], indirect=True)
def test_init_and_run_take_the_address(url: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("EVALMETA_HOME", str(tmp_path / "home"))
    outputs = []
    for call in (["init", "--agent", f"a2a:{url}"], ["run", "tests", "--json"], ["doctor"]):
        program = [sys.executable, "-m", "evalmeta", *call]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
        outputs.append(done.stdout + done.stderr)
        assert done.returncode in {0, 100}, outputs
    assert json.loads(outputs[1])["result"]
    assert '"outcome"' in outputs[1]


def test_a_server_that_is_gone_is_an_error() -> None:
    assert "is it running" in asked("http://127.0.0.1:9", ["Hi"])[0].error
