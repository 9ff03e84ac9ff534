"""The protocol 0.3 as the library of its time serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, Part, TextPart
from a2a.utils import new_agent_text_message, new_task
from loopback import serving
from talks import answers, results

if TYPE_CHECKING:
    from collections.abc import Iterator


class Desk(AgentExecutor):
    def __init__(self):
        self.said = {}

    async def execute(self, context, queue):
        text = context.get_user_input()
        said = self.said.setdefault(context.context_id, [])
        said.append(text)
        if text.startswith("say"):
            answer = f"{text} in turn {len(said)}"
            await queue.enqueue_event(new_agent_text_message(answer, context.context_id))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await updater.start_work()
        if text == "ask":
            question = new_agent_text_message("Which order?", task.context_id, task.id)
            await updater.requires_input(question, final=True)
        elif text == "fail":
            await updater.failed(new_agent_text_message("No stock.", task.context_id, task.id))
        else:
            await updater.add_artifact([Part(root=TextPart(text=f"It is {text}"))])
            await updater.complete()

    async def cancel(self, context, queue):
        pass


@pytest.fixture(params=[True, False], ids=["streams", "no stream"])
def url(request) -> Iterator[str]:
    def application(url: str) -> object:
        card = AgentCard(
            name="desk",
            description="Orders.",
            version="1",
            url=f"{url}/",
            capabilities=AgentCapabilities(streaming=request.param),
            default_input_modes=["text"],
            default_output_modes=["text"],
            skills=[],
        )
        return A2AStarletteApplication(card, DefaultRequestHandler(Desk(), InMemoryTaskStore())).build()

    with serving(application) as address:
        yield address


def asked(url: str, *cases: list[str]) -> list:
    return list(results({"adapter": "a2a", "url": url}, *cases))


def test_cases_at_once_are_conversations_of_their_own(url: str) -> None:
    talks = [answers(result) for result in asked(url, *(["say Hi", f"say Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"say Bye{number} in turn 2" for number in range(4)]


def test_a_task_that_asks_is_continued_by_the_next_turn(url: str) -> None:
    first, second = answers(asked(url, ["ask", "sent"])[0])
    assert (first.outcome, first.state) == ("Which order?", {"task_state": "input-required"})
    assert (second.outcome, second.state) == ("It is sent", {"task_state": "completed"})


def test_a_task_that_fails_is_an_error(url: str) -> None:
    assert "failed: No stock." in asked(url, ["fail"])[0].error
