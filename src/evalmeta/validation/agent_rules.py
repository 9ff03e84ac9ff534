"""Rules that compare tests with the files of their agent, if the project has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import nearest_word
from evalmeta.model.agent_parts import HUMAN, plain_name
from evalmeta.model.expectations import ACTIONS, TOPIC, canonical_name, parse_actions
from evalmeta.model.problem import quote
from evalmeta.validation.project_agents import is_unread, plain_variable
from evalmeta.validation.rule import ERROR, WARNING, Finding, RuleTable, rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.agent_script.names import AgentNames, PlacedName
    from evalmeta.model.definition import Expectation
    from evalmeta.validation.project_agents import ProjectAgents


class AgentScope(NamedTuple):
    """An expectation, and the agent that is tested."""

    expectation: Expectation
    agent: str
    names: AgentNames


class SubjectScope(NamedTuple):
    """The agent that a test names, and the agents of its project."""

    agent: str
    agents: ProjectAgents


class VariableScope(NamedTuple):
    """The name of a context variable of a test case, the agent that is tested, and what its files declare."""

    variable: str
    agent: str
    agents: ProjectAgents


SUBJECTS: Final[RuleTable[SubjectScope, Finding]] = RuleTable()
VARIABLES: Final[RuleTable[VariableScope, Finding]] = RuleTable()
# These rules apply if the names in the files of the agent are known.
AGENTS: Final[RuleTable[AgentScope, Finding]] = RuleTable()

_VALUE: Final = (("expectedValue", 0),)
_NOT_ACTIONS: Final = "not_actions"
_HANDOFFS: Final = "handoffs"
_STANDARD_TOPICS: Final = frozenset(
    {
        *("prompt_injection", "reverse_engineering", "inappropriate_content", "off_topic", "ambiguous_question"),
        *("escalation", "small_talk", "generalcrm"),
    }
)


@rule("subject-unknown", SUBJECTS, documented=ERROR, orgs=WARNING)
def find_subject_unknown(scope: SubjectScope) -> Iterator[Finding]:
    """The agent of a test is not a misspelt agent of the project."""
    if meant := scope.agents.missing_agent(scope.agent):
        hint = f"Did you mean {meant.name}, the agent at {meant.place}? To keep the name, add [subjects.{scope.agent}]."
        yield Finding((("subjectName", 0),), f"the project has no agent {quote(scope.agent)}", hint)


@rule("variable-unknown", VARIABLES, documented=ERROR, orgs=WARNING)
def find_variable_unknown(scope: VariableScope) -> Iterator[Finding]:
    """The Agent Script of the agent reads the context variable, if the project has the script."""
    names = scope.agents.agent_names(scope.agent)
    if names is None or names.variables is None or not is_unread(scope.variable, scope.agent, scope.agents):
        return
    name = plain_variable(scope.variable)
    near = nearest_word(name, names.variables)
    if near:
        hint = f"Did you mean {near}? It is at {names.variables[near].place}."
    else:
        hint = f"It reads: {', '.join(names.variables)}." if names.variables else "It reads no context variable."
    message = f"the script of {scope.agent} does not read the variable {quote(name)}"
    yield Finding((("variableName", 0),), message, hint, name)


def _same(word: str, names: Iterable[str]) -> str | None:
    """Return the name that differs from a word in case only; None without one."""
    return next((name for name in names if name.casefold() == word.casefold()), None)


@rule("topic-unknown", AGENTS, documented=ERROR, orgs=WARNING)
def find_topic_unknown(scope: AgentScope) -> Iterator[Finding]:
    """The agent has the expected topic, if the project has its files. Topics of the platform are allowed."""
    expectation = scope.expectation
    value = (expectation.expected_value or "").strip()
    if canonical_name(expectation.name) == TOPIC and value:
        name = plain_name(value)
        if name.casefold() not in _STANDARD_TOPICS:
            yield from _compared("topic", name, scope.agent, scope.names.topics)
    elif expectation.name == _HANDOFFS:
        for handoff in dict.fromkeys(parse_actions(value) or ()):
            if handoff.casefold() not in _STANDARD_TOPICS | {HUMAN}:
                yield from _compared("topic", handoff, scope.agent, scope.names.topics)


@rule("action-unknown", AGENTS, documented=ERROR, orgs=WARNING)
def find_action_unknown(scope: AgentScope) -> Iterator[Finding]:
    """The agent has the expected actions, if the project has its files."""
    expectation = scope.expectation
    expected = expectation.expected_value or ""
    if scope.names.actions is None:
        return
    values: Iterable[str] = ()
    if canonical_name(expectation.name) == ACTIONS:
        values = parse_actions(expected) or ()
    elif expectation.name == _NOT_ACTIONS and not set("*?[") & set(expected):
        # What an agent never has, it never takes: the check would pass whatever the agent does.
        values = (expected,)
    for value in dict.fromkeys(values):
        name = plain_name(value)
        # Two underscores follow the namespace of a package or of the platform.
        if name and "__" not in name:
            yield from _compared("action", name, scope.agent, scope.names.actions)


def _compared(kind: str, word: str, agent: str, names: Mapping[str, PlacedName]) -> Iterator[Finding]:
    """Yield what is wrong with the word of a test: nothing has it, or answers of the script have another name."""
    known = names.get(word) or names.get(_same(word, names) or "")
    if known is None:
        near = nearest_word(word, names)
        if near:
            hint = f"Did you mean {near}? It is defined at {names[near].place}."
        else:
            hint = f"Its files have: {', '.join(names)}." if names else f"Its files have no {kind}s."
        yield Finding(_VALUE, f"the agent {agent} has no {kind} {quote(word)}", hint, word)
    elif known.name == "":
        message = f"{quote(word)} calls no {kind}, so answers of the script of {agent} do not have it"
        yield Finding(_VALUE, message, f"Remove it; it is defined at {known.place}.", word)
    elif known.name not in {None, word}:
        message = f"without an org, answers of {agent} have the {kind} {quote(known.name or '')}, not {quote(word)}"
        yield Finding(_VALUE, message, f"Write {known.name}, the name at {known.place}.", word)
