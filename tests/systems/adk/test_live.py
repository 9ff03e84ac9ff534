"""What is sent to an agent of google-adk, and how its events are read; tests/journeys ask the real library."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import SubjectError
from evalmeta.model.definition import ContextVariable, HistoryMessage
from evalmeta.model.evaluation import Case, SessionIds
from evalmeta.model.generated_data import Action, Tokens
from evalmeta.systems.adk.live import LiveAgent, is_adk, open_conversation
from systems.adk.google_stand_in import BaseAgent, Content, Event, Part, Runner, called, said, stand_in

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.generated_data import GeneratedData


@pytest.fixture(autouse=True)
def _google(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)


def answer_to(*events: Event) -> GeneratedData:
    async def ask() -> GeneratedData:
        conversation = await open_conversation(Runner([*events]), Case(1, ()))
        return await conversation.ask("Where is my order?")

    return asyncio.run(ask())


def test_an_agent_is_recognised_by_the_names_of_its_classes() -> None:
    class Own(BaseAgent):
        pass

    class Runner:
        """Another Runner than google-adk's."""

    assert is_adk(Own("desk"))
    assert not is_adk(Runner())
    assert not is_adk(Own)


def test_the_answer_is_the_last_final_response_with_its_author_calls_and_tokens() -> None:
    usage = {
        "prompt_token_count": 10,
        "candidates_token_count": 3,
        "thoughts_token_count": 2,
        "cached_content_token_count": None,
    }
    generated = answer_to(
        *called("get_order", {"state": "sent"}, id="1"),
        said("One moment."),
        said("It was sent.", "They ask for order 1.", author="orders", usage_metadata=usage),
    )

    assert generated.outcome == "It was sent."
    assert generated.topic == "orders"
    assert generated.actions == (Action("get_order", {"id": "1"}, {"state": "sent"}),)
    assert generated.tokens == Tokens(10, 5)
    assert generated.session_id == "session-1"


def test_no_calls_are_no_actions_and_not_unknown_ones() -> None:
    generated = answer_to(said("Hello"))

    assert (generated.actions, generated.handoffs, generated.tokens) == ((), (), None)


def test_a_transfer_is_a_call_and_a_handoff() -> None:
    transfer = called("transfer_to_agent", {"result": None}, agent_name="bookings")
    transfer[1].actions["transfer_to_agent"] = "bookings"
    generated = answer_to(*transfer, said("Booked.", author="bookings"))

    assert [(action.name, action.input) for action in generated.actions or ()] == [
        ("transfer_to_agent", {"agent_name": "bookings"})
    ]
    assert (generated.handoffs, generated.topic) == (("bookings",), "bookings")


def test_an_error_of_a_tool_is_the_error_of_its_action() -> None:
    [action] = answer_to(*called("get_order", {"error": "no such order"}, id="9"), said("Sorry.")).actions or ()

    assert action.error == "no such order"


def test_what_a_tool_returned_that_is_not_json_becomes_text() -> None:
    [action] = answer_to(*called("get_order", {"result": object()}, id="9"), said("Sorry.")).actions or ()

    assert "object" in str(action.output)


def test_parts_of_streamed_messages_do_not_count_twice() -> None:
    generated = answer_to(
        *(replace(event, partial=True) for event in (said("Hel"), *called("twice"), said("lo"))), said("Hello")
    )

    assert (generated.outcome, generated.actions) == ("Hello", ())


def test_an_event_without_text_does_not_replace_the_answer() -> None:
    assert answer_to(said("Hello"), Event(content=Content("model", [Part()]))).outcome == "Hello"


def test_an_error_of_the_model_without_an_answer_is_an_error_of_the_case() -> None:
    failed = Event(error_code="429", error_message="quota exceeded")

    with pytest.raises(SubjectError, match="the agent's event is an error: 429: quota exceeded"):
        answer_to(failed)
    assert answer_to(failed, said("Hello")).outcome == "Hello"


def test_a_session_begins_with_the_ids_the_state_and_the_history_of_its_case() -> None:
    runner = Runner([said("Hello")])
    history = (
        HistoryMessage("user", "Hi"),
        HistoryMessage("agent", "Hello", "orders"),
        HistoryMessage("agent", "Yes?"),
    )
    case = Case(
        1, (), history, (ContextVariable("vip", "yes"),), state={"n": 1}, session=SessionIds("weather", "u7", "pinned")
    )

    async def ask() -> GeneratedData:
        conversation = await open_conversation(runner, case)
        generated = await conversation.ask({"order": 1})
        await conversation.close()
        return generated

    generated = asyncio.run(ask())

    assert runner.session_service.all.keys() == {("shop", "u7", "pinned")}
    assert generated.state == {"n": 1, "vip": "yes"}
    assert runner.asked == ['{"order": 1}']
    assert [(event.author, event.content and event.content.role) for event in runner.session_service.events] == [
        ("user", "user"),
        ("orders", "model"),
        ("desk", "model"),
    ]
    assert not runner.is_closed


def test_an_agent_is_loaded_once_and_errors_name_the_line_of_the_project(tmp_path: Path) -> None:
    loads = []

    async def load() -> object:
        loads.append(1)
        await asyncio.sleep(0)
        return Runner([said("One")], [said("Two")])

    async def ask() -> list[str]:
        live = LiveAgent(load, root=tmp_path)
        sessions = await asyncio.gather(*(live.open(Case(number, ())) for number in (1, 2)))
        answers = [(await session.ask("Hello")).outcome for session in sessions]
        with pytest.raises(SubjectError, match="pop from empty list"):
            await sessions[0].ask("Again")
        await live.close()
        return answers

    assert asyncio.run(ask()) == ["One", "Two"]
    assert loads == [1]


def test_a_version_of_google_adk_without_what_is_needed_is_a_clear_error() -> None:
    with pytest.raises(SubjectError, match="the installed version has no google") as caught:
        asyncio.run(open_conversation(BaseAgent("desk"), Case(1, ())))
    assert caught.value.actions == ("Install google-adk>=1.0.",)
