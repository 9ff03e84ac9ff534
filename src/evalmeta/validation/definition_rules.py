"""Rules about definitions, their test cases, and all definitions of a project together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.model.agent_scorer import AgentScorer
from evalmeta.model.expectations import expectation_kind, scorer_kind, scorer_names
from evalmeta.model.problem import quote
from evalmeta.model.registry import PARAMETER_API_VERSION
from evalmeta.validation.rule import ERROR, WARNING, Finding, RuleTable, nearest, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Definition, TestCase
    from evalmeta.model.problem import Location
    from evalmeta.model.registry import ApiVersion
    from evalmeta.xmlio.reader import Step


# Names may have megabytes: a repeated group would keep every repetition in memory.
_API_NAME: Final = re.compile(r"(?!.*__)[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
_NAME_HINT: Final = "Use letters, digits and single underscores; begin with a letter and do not end with an underscore."


@dataclass(frozen=True, slots=True)
class DefinitionScope:
    """What a rule about a definition can use."""

    definition: Definition
    full_name: str
    api_version: ApiVersion
    scorer: AgentScorer = field(default_factory=AgentScorer)


class NamedFile(NamedTuple):
    """The file of a definition: its component, its `<name>`, and the location of the name."""

    component: str
    name: str
    location: Location


# Those for custom scorers too are about "scorer".
DEFINITIONS: Final[RuleTable[DefinitionScope, Finding]] = RuleTable()
# Rules about an AiTestingDefinition as a whole, in addition to those about any definition.
TESTING_DEFINITIONS: Final[RuleTable[DefinitionScope, Finding]] = RuleTable()
# About the "utterance", the "case", its context "variables" or its "history".
CASES: Final[RuleTable[TestCase, Finding]] = RuleTable()
# Rules about all definitions of a project: they find files, messages and hints.
PROJECTS: Final[RuleTable[Sequence[NamedFile], tuple[NamedFile, str, str]]] = RuleTable()


def is_api_name(name: str) -> bool:
    """Return whether a name is a valid API name (reference, AiEvaluationDefinition, `name`)."""
    return bool(_API_NAME.fullmatch(name))


@rule("full-name-format", DEFINITIONS, documented=ERROR, orgs=ERROR, about=("scorer",))
def find_full_name_format(scope: DefinitionScope) -> Iterator[Finding]:
    """The file's name is a valid API name, because it is the component's full name."""
    name = scope.full_name
    if not is_api_name(name):
        yield Finding((), f"the file name {quote(name)} is not a valid API name", f"Rename the file. {_NAME_HINT}")
    elif len(name) > limits.MAX_API_NAME_CHARS:
        message = f"the file name has {len(name)} characters; an API name has at most {limits.MAX_API_NAME_CHARS}"
        yield Finding((), message, "Rename the file.")


@rule("name-format", DEFINITIONS, documented=ERROR, orgs=WARNING)
def find_name_format(scope: DefinitionScope) -> Iterator[Finding]:
    """`name` is a valid API name. Orgs also accept a label."""
    name = scope.definition.name
    if name.strip() and not is_api_name(name):
        yield Finding((("name", 0),), f"the name {quote(name)} is not a valid API name", _NAME_HINT)


@rule("required-empty", DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_empty_required(scope: DefinitionScope) -> Iterator[Finding]:
    """A required name is not blank."""
    definition = scope.definition
    names: list[tuple[tuple[Step, ...], str]] = [
        ((("name", 0),), definition.name),
        ((("subjectName", 0),), definition.subject_name),
    ]
    for place, case in enumerate(definition.test_cases):
        inputs = (("testCase", place), ("inputs", 0))
        for index, variable in enumerate(case.inputs.context_variables):
            names.append(((*inputs, ("contextVariable", index), ("variableName", 0)), variable.name))
        for index, given in enumerate(case.inputs.prompt_inputs):
            names.append(((*inputs, ("promptInput", index), ("referenceName", 0)), given.reference_name))
    for steps, text in names:
        if not text.strip():
            yield Finding(steps, f"<{steps[-1][0]}> is empty", "Write a name; it is required.")


@rule("test-cases-missing", DEFINITIONS, documented=WARNING, orgs=WARNING)
def find_no_test_cases(scope: DefinitionScope) -> Iterator[Finding]:
    """A definition has at least one test case."""
    if not scope.definition.test_cases:
        yield Finding(
            (("testCase", 0),), "the definition has no test case", "Add a <testCase>; without one, a run tests nothing."
        )


@rule("test-cases-too-many", DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_too_many_test_cases(scope: DefinitionScope) -> Iterator[Finding]:
    """A definition has at most 1,000 test cases (Testing API Developer Guide, "Considerations")."""
    count = len(scope.definition.test_cases)
    if count > limits.MAX_TEST_CASES:
        message = f"the definition has {count:,} test cases; orgs accept at most {limits.MAX_TEST_CASES:,}"
        yield Finding((("testCase", limits.MAX_TEST_CASES),), message, "Split it into several definitions.")


@rule("type-version", DEFINITIONS, documented=ERROR, orgs=ERROR, about=("scorer",))
def find_type_before_its_version(scope: DefinitionScope) -> Iterator[Finding]:
    """The API version supports the definition's type."""
    kind = scope.definition.type
    if scope.api_version < kind.since:
        message = f"{kind.name} requires API version {kind.since}; the version in use is {scope.api_version}"
        yield Finding((), message, f"Set the version in the manifest or project to {kind.since}.")


@rule("parameter-version", DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_parameters_before_their_version(scope: DefinitionScope) -> Iterator[Finding]:
    """`parameter` requires API version 64.0 or later (reference, AiEvaluationTestCaseCritParam)."""
    if scope.api_version >= PARAMETER_API_VERSION:
        return
    for place, case in enumerate(scope.definition.test_cases):
        for index, expectation in enumerate(case.expectations):
            if expectation.parameters:
                steps = (("testCase", place), ("expectation", index), ("parameter", 0))
                needed = PARAMETER_API_VERSION
                message = f"<parameter> requires API version {needed}; the version in use is {scope.api_version}"
                yield Finding(steps, message, f"Set the version in the manifest or project to {needed}.")
                return


@rule("name-duplicate", PROJECTS, documented=ERROR, orgs=WARNING)
def find_names_twice(files: Sequence[NamedFile]) -> Iterator[tuple[NamedFile, str, str]]:
    """`name` is unique in the project, because it must be unique in an org.

    Definitions of different types may have the same name.
    """
    first: dict[tuple[str, str], NamedFile] = {}
    for file in files:
        other = first.setdefault((file.component.partition(":")[0], file.name), file)
        if other.component.casefold() != file.component.casefold():
            message = f"the name {file.name!r} is already used by {other.location.path}"
            yield file, message, "Choose a unique name."


@rule("name-mismatch", TESTING_DEFINITIONS, documented=ERROR, orgs=WARNING)
def find_name_elsewhere(scope: DefinitionScope) -> Iterator[Finding]:
    """`name` of an AiTestingDefinition equals the file's name."""
    name = scope.definition.name
    if is_api_name(name) and name != scope.full_name:
        hint = f"Write {scope.full_name}, or rename the file."
        yield Finding(
            (("name", 0),), f"the name {quote(name)} is not the name of the file, {quote(scope.full_name)}", hint
        )


@rule("description-too-long", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_description_too_long(scope: DefinitionScope) -> Iterator[Finding]:
    """`description` of an AiTestingDefinition, which is its label in the org, has at most 100 characters."""
    length, most = len(scope.definition.description or ""), limits.MAX_LABEL_CHARS
    if length > most:
        message = f"the description has {length} characters; orgs use it as a label, which has at most {most}"
        yield Finding((("description", 0),), message, "Shorten it.")


@rule("number-gap", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_number_gap(scope: DefinitionScope) -> Iterator[Finding]:
    """Test cases of an AiTestingDefinition are numbered 1, 2, 3 and so on, in any order."""
    count = len(scope.definition.test_cases)
    for place, case in enumerate(scope.definition.test_cases):
        if case.number is not None and not 1 <= case.number <= count:
            message = f"the test case has the number {case.number}; the numbers of {count} test cases are 1 to {count}"
            yield Finding((("testCase", place), ("number", 0)), message, "Number the test cases 1, 2, 3 and so on.")
            return


@rule("prompt-inputs-missing", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_prompt_inputs_missing(scope: DefinitionScope) -> Iterator[Finding]:
    """A test case of a prompt template has prompt inputs."""
    if scope.definition.subject_type != "PROMPT":
        return
    for place, case in enumerate(scope.definition.test_cases):
        if not case.inputs.prompt_inputs:
            steps = (("testCase", place), ("inputs", 0), ("promptInput", 0))
            hint = "Add a <promptInput> with <referenceName> and <value> for each input of the template."
            yield Finding(steps, "the test case has no prompt input", hint)


@rule("scorer-unsupported", TESTING_DEFINITIONS, documented=WARNING, orgs=WARNING)
def find_unsupported_scorers(scope: DefinitionScope) -> Iterator[Finding]:
    """A scorer supports the definition's subject type."""
    subject_type = scope.definition.subject_type
    for place, case in enumerate(scope.definition.test_cases):
        for index, scorer in enumerate(case.expectations):
            kind = None if scorer.is_custom else scorer_kind(scorer.name)
            if kind and subject_type not in kind.subjects and subject_type in scope.definition.type.subject_types:
                message = f"{scorer.name} does not support subjects of the type {subject_type}"
                hint = f"Scorers that support them: {', '.join(scorer_names(subject_type))}."
                yield Finding((("testCase", place), ("scorer", index), ("name", 0)), message, hint)


@rule("scorer-history-missing", TESTING_DEFINITIONS, documented=ERROR, orgs=ERROR)
def find_history_missing(scope: DefinitionScope) -> Iterator[Finding]:
    """A test case with the scorer `task_resolution` has a conversation history."""
    for place, case in enumerate(scope.definition.test_cases):
        if case.inputs.conversation_history:
            continue
        for index, scorer in enumerate(case.expectations):
            kind = None if scorer.is_custom else scorer_kind(scorer.name)
            if kind and kind.needs_history:
                message = f"{scorer.name} judges a conversation, but the test case has no history"
                hint = "Add <conversationHistory> to its <inputs>, or remove the scorer."
                yield Finding((("testCase", place), ("scorer", index), ("name", 0)), message, hint)


_ROLES: Final = ("user", "agent")


@rule("utterance-empty", CASES, documented=ERROR, orgs=ERROR, about=("utterance",))
def find_empty_utterance(case: TestCase) -> Iterator[Finding]:
    """The utterance is not blank."""
    if not case.inputs.utterance.strip():
        yield Finding((("inputs", 0), ("utterance", 0)), "the utterance is empty", "Write the request to the agent.")


@rule("expectations-missing", CASES, documented=WARNING, orgs=WARNING, about=("case",))
def find_no_expectations(case: TestCase) -> Iterator[Finding]:
    """A test case has at least one expectation."""
    if not case.expectations:
        yield Finding(
            (("expectation", 0),),
            "the test case has no expectation",
            "Add an <expectation>, or a <scorer> in an AiTestingDefinition; without one, nothing is tested.",
        )


@rule("expectation-twice", CASES, documented=WARNING, orgs=WARNING, about=("case",))
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


@rule("context-variable-twice", CASES, documented=ERROR, orgs=WARNING, about=("variables",))
def find_context_variables_twice(case: TestCase) -> Iterator[Finding]:
    """A context variable occurs once per test case."""
    seen: set[str] = set()
    for index, variable in enumerate(case.inputs.context_variables):
        if variable.name in seen:
            steps = (("inputs", 0), ("contextVariable", index), ("variableName", 0))
            yield Finding(steps, f"the context variable {quote(variable.name)} occurs twice", "Keep one of them.")
        seen.add(variable.name)


@rule("context-variable-empty", CASES, documented=ERROR, orgs=WARNING, about=("variables",))
def find_context_variables_without_value(case: TestCase) -> Iterator[Finding]:
    """A context variable has a value."""
    for index, variable in enumerate(case.inputs.context_variables):
        if not variable.value:
            steps = (("inputs", 0), ("contextVariable", index), ("variableValue", 0))
            message = f"the context variable {quote(variable.name)} has no value"
            yield Finding(steps, message, "Write its value in <variableValue>; agents receive an empty text.")


@rule("history-role", CASES, documented=ERROR, orgs=ERROR, about=("history",))
def find_history_role(case: TestCase) -> Iterator[Finding]:
    """Every message has the role user or agent."""
    for index, message in enumerate(case.inputs.conversation_history):
        if message.role not in _ROLES:
            what = "has no role" if message.role is None else f"has the role {quote(message.role)}"
            yield _about(index, "role", f"message {index} of the history {what}", nearest(message.role or "", _ROLES))


@rule("history-order", CASES, documented=ERROR, orgs=ERROR, about=("history",))
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


@rule("history-topic", CASES, documented=ERROR, orgs=WARNING, about=("history",))
def find_history_topic(case: TestCase) -> Iterator[Finding]:
    """Every message of the agent has a topic."""
    for index, message in enumerate(case.inputs.conversation_history):
        if message.role == "agent" and not (message.topic or "").strip():
            text = f"message {index} of the history is from the agent and has no topic"
            yield _about(index, "topic", text, "Add <topic>, the topic that the agent used for the message.")


@rule("history-index", CASES, documented=ERROR, orgs=WARNING, about=("history",))
def find_history_index(case: TestCase) -> Iterator[Finding]:
    """Either every message has an index, counted from 0 without gaps, or none has one."""
    history = case.inputs.conversation_history
    if all(message.index is None for message in history):
        return
    for place, message in enumerate(history):
        if message.index != place:
            what = "has no index" if message.index is None else f"has the index {message.index}"
            text = f"message {place} of the history {what}; expected {place}"
            yield _about(place, "index", text, "Number the messages 0, 1, 2 and so on, in order.")
            return


def _about(index: int, field: str, message: str, hint: str) -> Finding:
    return Finding((("inputs", 0), ("conversationHistory", index), (field, 0)), message, hint)
