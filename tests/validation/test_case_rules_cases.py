from __future__ import annotations

import pytest

from evalmeta.model.definition import ContextVariable, Expectation, HistoryMessage, Inputs, TestCase
from evalmeta.validation.case_rules import (
    find_context_variables_twice,
    find_empty_utterance,
    find_history_index,
    find_history_order,
    find_history_role,
    find_history_topic,
    find_no_expectations,
)


def case(*roles: str | None) -> TestCase:
    return TestCase(Inputs("u", (), tuple(HistoryMessage(role, "m", "t") for role in roles)))


def indexed(*indexes: int | None) -> TestCase:
    return TestCase(Inputs("u", (), tuple(HistoryMessage("user", "m", None, index) for index in indexes)))


@pytest.mark.parametrize(("utterance", "count"), [("", 1), (" \n\t", 1), ("\u3000", 1), ("?", 0)])
def test_an_utterance_holds_more_than_blanks(utterance: str, count: int) -> None:
    assert len(list(find_empty_utterance(TestCase(Inputs(utterance))))) == count


def test_a_test_case_expects_something() -> None:
    assert len(list(find_no_expectations(case()))) == 1
    assert list(find_no_expectations(TestCase(Inputs("u"), (Expectation("coherence"),)))) == []


@pytest.mark.parametrize(("names", "places"), [("ab", []), ("aba", [2]), ("aaa", [1, 2]), ("aA", [])])
def test_a_variable_that_comes_again_is_shown(names: str, places: list[int]) -> None:
    variables = tuple(ContextVariable(name, "v") for name in names)
    found = find_context_variables_twice(TestCase(Inputs("u", variables)))
    assert [finding.steps[1] for finding in found] == [("contextVariable", place) for place in places]


@pytest.mark.parametrize(
    ("role", "message", "hint"),
    [
        (None, "message 0 of the history has no role", "Known: user, agent."),
        ("", "message 0 of the history has the role ''", "Known: user, agent."),
        ("User", "message 0 of the history has the role 'User'", "Did you mean user?"),
        ("agents", "message 0 of the history has the role 'agents'", "Did you mean agent?"),
    ],
)
def test_a_role_is_user_or_agent(role: str | None, message: str, hint: str) -> None:
    (finding,) = find_history_role(case(role))
    assert (finding.message, finding.hint) == (message, hint)


@pytest.mark.parametrize(
    ("roles", "place"),
    [
        ((), None),
        (("user", "agent"), None),
        (("user", "agent") * 3, None),
        (("user",), 0),
        (("agent",), 0),
        (("agent", "user"), 0),
        (("user", "user"), 1),
        (("user", "agent", "agent"), 2),
        (("user", "agent", "user"), 2),
    ],
)
def test_user_and_agent_take_turns(roles: tuple[str, ...], place: int | None) -> None:
    found = [finding.steps[1][1] for finding in find_history_order(case(*roles))]
    assert found == ([] if place is None else [place])


def test_complete_indices_say_the_order_wherever_the_messages_are() -> None:
    answered = (HistoryMessage("agent", "Hi", "t", 1), HistoryMessage("user", "Hello", None, 0))
    asked = (HistoryMessage("user", "Hello", None, 1), HistoryMessage("agent", "Hi", "t", 0))

    assert list(find_history_order(TestCase(Inputs("u", (), answered)))) == []
    (hint,) = (finding.hint for finding in find_history_index(TestCase(Inputs("u", (), answered))))
    assert hint == "Put the messages in the order of their indices, in which they are read."
    (finding,) = find_history_order(TestCase(Inputs("u", (), asked)))
    assert (finding.steps[1][1], finding.message) == (
        1,
        "message 0 of the history is from the agent; expected the user",
    )


def test_an_unknown_role_leaves_the_order_open() -> None:
    assert list(find_history_order(case("agent", "assistant"))) == []


@pytest.mark.parametrize(("topic", "count"), [(None, 2), ("", 2), (" ", 2), ("t", 0)])
def test_the_agent_names_a_topic_with_every_message(topic: str | None, count: int) -> None:
    history = tuple(HistoryMessage(role, "m", topic) for role in ("user", "agent") * 2)
    assert len(list(find_history_topic(TestCase(Inputs("u", (), history))))) == count


@pytest.mark.parametrize(
    ("indexes", "place"),
    [
        ((), None),
        ((None, None), None),
        ((0, 1, 2), None),
        ((1, 2), 0),
        ((0, 2), 1),
        ((0, 0), 1),
        ((0, None), 1),
        ((None, 1), 0),
        ((-1, 0), 0),
    ],
)
def test_indexes_are_the_places_or_absent(indexes: tuple[int | None, ...], place: int | None) -> None:
    found = [finding.steps[1][1] for finding in find_history_index(indexed(*indexes))]
    assert found == ([] if place is None else [place])
