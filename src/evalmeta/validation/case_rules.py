"""Rules about a test case, and about one expectation, which is a scorer in an AiTestingDefinition."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.expectations import (
    OPERATORS,
    PARAMETER_NAMES,
    canonical_name,
    expectation_kind,
    is_action_list,
    known_names,
    scorer_kind,
    scorer_names,
    suggest_operator,
)
from evalmeta.model.problem import quote
from evalmeta.plugins import plugin_names
from evalmeta.validation.rule import ERROR, WARNING, Finding, RuleTable, checks_also, nearest, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.definition import Expectation, Parameter, TestCase
    from evalmeta.model.jsonpath import Reference
    from evalmeta.xmlio.reader import Step


# About the "utterance", all "expectations" and nothing else, the context "variables" or the "history".
CASES: Final[RuleTable[TestCase, Finding]] = RuleTable()
# About what an expectation needs, which is "unknown" if its name is, about a "scorer", or about a "custom scorer".
EXPECTATIONS: Final[RuleTable[Expectation, Finding]] = RuleTable()
_PARAMETERS: Final = ("parameters", "unknown")
# The numbers that the engine accepts.
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ROLES: Final = ("user", "agent")


@rule("utterance-empty", CASES, documented=ERROR, orgs=ERROR, about=("utterance",))
def find_empty_utterance(case: TestCase) -> Iterator[Finding]:
    """The utterance is not blank."""
    if not case.inputs.utterance.strip():
        yield Finding((("inputs", 0), ("utterance", 0)), "the utterance is empty", "Write the request to the agent.")


@rule("expectations-missing", CASES, documented=WARNING, orgs=WARNING, about=("expectations",))
def find_no_expectations(case: TestCase) -> Iterator[Finding]:
    """A test case has at least one expectation."""
    if not case.expectations:
        yield Finding(
            (("expectation", 0),),
            "the test case has no expectation",
            "Add an <expectation>, or a <scorer> in an AiTestingDefinition; without one, nothing is tested.",
        )


@rule("expectation-twice", CASES, documented=WARNING, orgs=WARNING, about=("expectations",))
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

    If indices say the order of all messages, their order in the file does not matter. Orgs refuse anything else:
    "there should be 1 user and 1 agent elements alternating. Conversation must end with agent; odd number of turns is
    not allowed".
    """
    places = case.inputs.conversation_places()
    roles = [message.role for message in case.inputs.conversation]
    if any(role not in _ROLES for role in roles):
        return
    hint = "Alternate user and agent, with the user first and the agent last; the utterance is the user's next message."
    for index, role in enumerate(roles):
        due = _ROLES[index % 2]
        if role != due:
            text = f"message {index} of the history is from the {role}; expected the {due}"
            yield _about(places[index], "role", text, hint)
            return
    if len(roles) % 2:
        yield _about(places[-1], "role", "the history ends with a message from the user", hint)


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
    is_ordered_by_index = case.inputs.conversation != history
    for place, message in enumerate(history):
        if message.index != place:
            what = "has no index" if message.index is None else f"has the index {message.index}"
            text = f"message {place} of the history {what}; expected {place}"
            hint = "Number the messages 0, 1, 2 and so on, in order."
            if is_ordered_by_index:
                hint = "Put the messages in the order of their indices, in which they are read."
            yield _about(place, "index", text, hint)
            return


def _about(index: int, field: str, message: str, hint: str) -> Finding:
    return Finding((("inputs", 0), ("conversationHistory", index), (field, 0)), message, hint)


@rule("expectation-unknown", EXPECTATIONS, documented=ERROR, orgs=ERROR, about=("unknown",))
def find_unknown_name(expectation: Expectation) -> Iterator[Finding]:
    """The expectation's name is listed in the reference, or is a newer name of a listed one."""
    name = expectation.name
    if expectation_kind(name) is None and name not in plugin_names("scorers"):
        yield Finding((("name", 0),), f"{quote(name)} is not a known expectation", nearest(name, known_names()))


@rule("expected-value-missing", EXPECTATIONS, documented=ERROR, orgs=WARNING, about=("value", "scorer"))
def find_value_missing(expectation: Expectation) -> Iterator[Finding]:
    """Expectations about topics, actions and responses have an expectedValue."""
    if expectation.expected_value and not expectation.expected_value.isspace():
        return
    kind = expectation_kind(expectation.name)
    if kind is None or kind.needs != "value":
        return
    steps, hint = (("expectedValue", 0),), "Write the expected value; without it, there is nothing to compare with."
    if expectation.expected_value is None:
        yield Finding(steps, f"{expectation.name} has no <expectedValue>", hint)
    elif kind.name != "action_sequence_match":
        yield Finding(steps, f"{expectation.name} has an empty <expectedValue>", hint)


@rule(
    "expected-value-unused", EXPECTATIONS, documented=WARNING, orgs=WARNING, about=("nothing", "parameters", "scorer")
)
def find_value_unused(expectation: Expectation) -> Iterator[Finding]:
    """Quality metrics and custom criteria have no expectedValue."""
    kind = expectation_kind(expectation.name)
    if expectation.expected_value is None or kind is None:
        return
    if kind.needs != "value" and kind.name != "output_latency_milliseconds":
        hint = "Remove it." if kind.needs == "nothing" else "Use the parameter named expected instead."
        yield Finding((("expectedValue", 0),), f"{expectation.name} does not use <expectedValue>", hint)


@rule("actions-unreadable", EXPECTATIONS, documented=ERROR, orgs=WARNING, about=("value",))
def find_actions_unreadable(expectation: Expectation) -> Iterator[Finding]:
    """The expected actions are a list such as ['A', 'B']."""
    value = expectation.expected_value
    if canonical_name(expectation.name) != "action_sequence_match" or value is None:
        return
    if not is_action_list(value):
        message = f"{quote(value.strip())} is not a list of actions"
        yield Finding((("expectedValue", 0),), message, "Write the actions as ['A', 'B'], or [] for no actions.")


@rule("parameter-missing", EXPECTATIONS, documented=ERROR, orgs=ERROR, about=_PARAMETERS)
def find_parameter_missing(expectation: Expectation) -> Iterator[Finding]:
    """Custom criteria have the parameters operator, actual and expected."""
    kind = expectation_kind(expectation.name)
    if kind is None or kind.needs != "parameters":
        return
    given = {parameter.name for parameter in expectation.parameters}
    for name in PARAMETER_NAMES:
        if name not in given:
            steps = (("parameter", len(expectation.parameters)),)
            yield Finding(steps, f"{expectation.name} has no parameter {name!r}", f"Add a <parameter> named {name}.")


@rule("parameter-unused", EXPECTATIONS, documented=ERROR, orgs=WARNING, about=("value", "nothing"))
def find_parameter_unused(expectation: Expectation) -> Iterator[Finding]:
    """Only custom criteria have parameters."""
    kind = expectation_kind(expectation.name) if expectation.parameters else None
    if kind and kind.needs != "parameters":
        hint = "Remove them; only string_comparison and numeric_comparison have parameters."
        yield Finding((("parameter", 0),), f"{expectation.name} does not use <parameter>", hint)


@rule("parameter-unknown", EXPECTATIONS, documented=ERROR, orgs=WARNING, about=_PARAMETERS)
def find_parameter_unknown(expectation: Expectation) -> Iterator[Finding]:
    """A parameter's name is operator, actual or expected."""
    for index, parameter in enumerate(expectation.parameters):
        if parameter.name not in PARAMETER_NAMES:
            steps = (("parameter", index), ("name", 0))
            yield Finding(
                steps, f"{quote(parameter.name)} is not a known parameter", nearest(parameter.name, PARAMETER_NAMES)
            )


@rule("parameter-twice", EXPECTATIONS, documented=ERROR, orgs=ERROR, about=_PARAMETERS)
def find_parameter_twice(expectation: Expectation) -> Iterator[Finding]:
    """A parameter occurs once."""
    seen: set[str] = set()
    for index, parameter in enumerate(expectation.parameters):
        if parameter.name in seen:
            steps = (("parameter", index), ("name", 0))
            yield Finding(steps, f"the parameter {quote(parameter.name)} occurs twice", "Keep one of them.")
        seen.add(parameter.name)


@rule("operator-unknown", EXPECTATIONS, documented=ERROR, orgs=ERROR, about=_PARAMETERS)
def find_operator_unknown(expectation: Expectation) -> Iterator[Finding]:
    """The comparison supports the operator."""
    operators = OPERATORS.get(expectation.name)
    placed = _parameter(expectation, "operator")
    if operators is None or placed is None:
        return
    index, parameter = placed
    operator = parameter.value.strip()
    if operator in operators:
        return
    other = next((name for name, theirs in OPERATORS.items() if operator in theirs), None)
    place = f"an operator of {other}, not {expectation.name}" if other else f"not an operator of {expectation.name}"
    hint = suggest_operator(expectation.name, operator)
    yield Finding((("parameter", index), ("value", 0)), f"{quote(operator)} is {place}", hint)


@rule("expected-blank", EXPECTATIONS, documented=WARNING, orgs=WARNING, about=_PARAMETERS)
def find_expected_blank(expectation: Expectation) -> Iterator[Finding]:
    """The operators contains, startswith and endswith compare with a text that is not empty."""
    operator, expected = _parameter(expectation, "operator"), _parameter(expectation, "expected")
    if expectation.name != "string_comparison" or operator is None or expected is None:
        return
    name, value = operator[1].value.strip(), expected[1]
    if name in {"contains", "startswith", "endswith"} and not value.value and not value.is_reference:
        message = f"{name} with an empty expected value always passes"
        hint = "Write the expected text; to expect an empty text, use the operator equals."
        yield Finding((("parameter", expected[0]), ("value", 0)), message, hint)


@rule("number-invalid", EXPECTATIONS, documented=ERROR, orgs=ERROR, about=_PARAMETERS)
def find_number_invalid(expectation: Expectation) -> Iterator[Finding]:
    """The literals of a numeric comparison are numbers."""
    if expectation.name != "numeric_comparison":
        return
    for name in ("actual", "expected"):
        placed = _parameter(expectation, name)
        if placed and not placed[1].is_reference and not _is_number(placed[1].value):
            message = f"the parameter {name!r} is {quote(placed[1].value.strip())}, which is not a number"
            yield Finding((("parameter", placed[0]), ("value", 0)), message, "Write a number such as 5 or 0.25.")


@rule("reference-invalid", EXPECTATIONS, documented=ERROR, orgs=ERROR, about=_PARAMETERS)
def find_reference_invalid(expectation: Expectation) -> Iterator[Finding]:
    """A reference is a supported JSONPath over generatedData."""
    for steps, _, reference in _references(expectation):
        if isinstance(reference, str):
            hint = "Write a JSONPath such as $.generatedData.outcome, or set isReference to false."
            yield Finding(steps, reference, hint)


@rule("reference-root", EXPECTATIONS, documented=ERROR, orgs=ERROR, about=_PARAMETERS)
def find_reference_elsewhere(expectation: Expectation) -> Iterator[Finding]:
    """A reference starts at `$.generatedData`."""
    for steps, text, reference in _references(expectation):
        if not isinstance(reference, str) and not reference.starts_at_generated_data:
            message = f"the reference {text.strip()!r} does not start at $.generatedData"
            yield Finding(steps, message, "Begin with $.generatedData: a reference cannot use anything else.")


@rule("reference-unreachable", EXPECTATIONS, documented=WARNING, orgs=WARNING, about=_PARAMETERS)
def find_reference_unreachable(expectation: Expectation) -> Iterator[Finding]:
    """A reference can match a value that evalmeta records. Orgs may record more."""
    for steps, _, reference in _references(expectation):
        if isinstance(reference, str) or not reference.starts_at_generated_data:
            continue
        from evalmeta.model.jsonpath import why_unreachable

        reason = why_unreachable(reference)
        if reason:
            yield Finding(steps, f"the reference can never match: {reason}", "Correct the reference.")


@rule("parameter-too-long", EXPECTATIONS, documented=ERROR, orgs=WARNING, about=_PARAMETERS)
def find_parameter_too_long(expectation: Expectation) -> Iterator[Finding]:
    """A parameter's value has at most 100 characters (Testing API Developer Guide, "Custom Evaluation Criteria")."""
    for index, parameter in enumerate(expectation.parameters):
        length = len(parameter.value)
        if length > limits.MAX_PARAMETER_CHARS:
            most = limits.MAX_PARAMETER_CHARS
            message = f"the parameter {parameter.name!r} has {length} characters; at most {most} are documented"
            hint = "Use an index instead of a filter, such as $.generatedData.invokedActions[0][0]."
            yield Finding((("parameter", index), ("value", 0)), message, hint)


def _references(expectation: Expectation) -> Iterator[tuple[tuple[Step, ...], str, Reference | str]]:
    """Yield place and text of each reference, and the parsed reference or what is wrong with it."""
    for index, parameter in enumerate(expectation.parameters):
        if parameter.is_reference:
            from evalmeta.model import jsonpath_parser

            reference = jsonpath_parser.read_reference(parameter.value)
            yield (("parameter", index), ("value", 0)), parameter.value, reference


def _parameter(expectation: Expectation, name: str) -> tuple[int, Parameter] | None:
    for index, parameter in enumerate(expectation.parameters):
        if parameter.name == name:
            return index, parameter
    return None


def _is_number(text: str) -> bool:
    try:
        return bool(_NUMBER.fullmatch(text.strip())) and Decimal(text.strip()).is_finite()
    except InvalidOperation:
        return False


@rule("scorer-unknown", EXPECTATIONS, documented=WARNING, orgs=WARNING, about=("scorer",))
def find_unknown_scorer(scorer: Expectation) -> Iterator[Finding]:
    """The name of a standard scorer is known to the sf CLI. Orgs may know more."""
    if scorer_kind(scorer.name) is None:
        hint = f"{nearest(scorer.name, scorer_names('AGENT'))} For a scorer of your own org, set scorerType to Custom."
        yield Finding((("name", 0),), f"{quote(scorer.name)} is not a known scorer", hint)


@checks_also("actions-unreadable", EXPECTATIONS, about=("scorer",))
def find_scorer_actions_unreadable(scorer: Expectation) -> Iterator[Finding]:
    """The expected actions are a list such as ['A', 'B'], or the name of one action."""
    if (scorer.expected_value or "").lstrip().startswith("["):
        yield from find_actions_unreadable(scorer)


@checks_also("expected-value-unused", EXPECTATIONS, about=("custom scorer",))
def find_custom_value(scorer: Expectation) -> Iterator[Finding]:
    """A custom scorer has no expectedValue."""
    if scorer.expected_value is not None:
        yield Finding(
            (("expectedValue", 0),), f"the custom scorer {scorer.name} does not use <expectedValue>", "Remove it."
        )
