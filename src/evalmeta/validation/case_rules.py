"""Rules about one test case: its inputs, its history, its context variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.expectations import expectation_kind
from evalmeta.model.problem import quote
from evalmeta.validation.finding import Finding, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.definition import TestCase


_ROLES: Final = ("user", "agent")


def find_empty_utterance(case: TestCase) -> Iterator[Finding]:
    """The utterance is not blank."""
    if not case.inputs.utterance.strip():
        yield Finding((("inputs", 0), ("utterance", 0)), "the utterance is empty", "Write the request to the agent.")


def find_no_expectations(case: TestCase) -> Iterator[Finding]:
    """A test case has at least one expectation."""
    if not case.expectations:
        yield Finding(
            (("expectation", 0),),
            "the test case has no expectation",
            "Add an <expectation>, or a <scorer> in an AiTestingDefinition; without one, nothing is tested.",
        )


def find_context_variables_twice(case: TestCase) -> Iterator[Finding]:
    """A context variable occurs once per test case."""
    seen: set[str] = set()
    for index, variable in enumerate(case.inputs.context_variables):
        if variable.name in seen:
            steps = (("inputs", 0), ("contextVariable", index), ("variableName", 0))
            yield Finding(steps, f"the context variable {quote(variable.name)} occurs twice", "Keep one of them.")
        seen.add(variable.name)


def find_expectations_twice(case: TestCase) -> Iterator[Finding]:
    """A standard expectation occurs once per test case."""
    seen: set[str] = set()
    for index, expectation in enumerate(case.expectations):
        kind = expectation_kind(expectation.name)
        if kind is None or kind.needs == "parameters":
            continue
        if kind.name in seen:
            hint = "Keep one of them, or move the other to another test case."
            yield Finding(
                (("expectation", index), ("name", 0)), f"{expectation.name} occurs twice in the test case", hint
            )
        seen.add(kind.name)


def find_history_role(case: TestCase) -> Iterator[Finding]:
    """Every message has the role user or agent."""
    for index, message in enumerate(case.inputs.conversation_history):
        if message.role not in _ROLES:
            what = "has no role" if message.role is None else f"has the role {quote(message.role)}"
            yield _about(index, "role", f"message {index} of the history {what}", nearest(message.role or "", _ROLES))


def find_history_order(case: TestCase) -> Iterator[Finding]:
    """The history begins with the user, alternates user and agent, and ends with the agent.

    Orgs refuse anything else: "there should be 1 user and 1 agent elements alternating.
    Conversation must end with agent; odd number of turns is not allowed".
    """
    roles = [message.role for message in case.inputs.conversation_history]
    if any(role not in _ROLES for role in roles):
        return
    hint = "Alternate user and agent, with the user first and the agent last; the utterance is the user's next message."
    for index, role in enumerate(roles):
        due = _ROLES[index % 2]
        if role != due:
            yield _about(index, "role", f"message {index} of the history is from the {role}; expected the {due}", hint)
            return
    if len(roles) % 2:
        yield _about(len(roles) - 1, "role", "the history ends with a message from the user", hint)


def find_history_topic(case: TestCase) -> Iterator[Finding]:
    """Every message of the agent has a topic."""
    for index, message in enumerate(case.inputs.conversation_history):
        if message.role == "agent" and not (message.topic or "").strip():
            text = f"message {index} of the history is from the agent and has no topic"
            yield _about(index, "topic", text, "Add <topic>, the topic that the agent used for the message.")


def find_history_index(case: TestCase) -> Iterator[Finding]:
    """Either every message has an index, counted from 0 without gaps, or none has one."""
    history = case.inputs.conversation_history
    if all(message.index is None for message in history):
        return
    for place, message in enumerate(history):
        if message.index != place:
            found = "has no index" if message.index is None else f"has the index {message.index}"
            text = f"message {place} of the history {found}; expected {place}"
            yield _about(place, "index", text, "Number the messages 0, 1, 2 and so on, in order.")
            return


def _about(index: int, field: str, message: str, hint: str) -> Finding:
    return Finding((("inputs", 0), ("conversationHistory", index), (field, 0)), message, hint)
