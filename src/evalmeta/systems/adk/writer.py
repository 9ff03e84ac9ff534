"""Eval sets written for ADK, and ADK's files written in the spelling of its other program."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.formats.diagnostics import Loss, Written, case_name, number_losses, subject_losses
from evalmeta.model.expectations import ACTIONS, OUTCOME, canonical_name, parse_actions
from evalmeta.model.expected_values import is_matcher
from evalmeta.model.jsonpath import Names
from evalmeta.model.jsonpath_parser import read_reference
from evalmeta.model.session_state import STATE, state_reference
from evalmeta.systems.adk.cases import KEYS, AdkCase, AdkTurn, Call, Dialect, Session, both, snake
from evalmeta.systems.adk.reader import LEGACY, read_adk_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase
    from evalmeta.model.json_value import JsonObject, JsonValue


_USER: Final = "user"
_ANY_ARGUMENTS: Final = {"tool_trajectory_avg_score": {"threshold": 1.0, "ignore_args": True}}
_ANSWERS: Final = {"response_match_score": 0.8}


def write_adk(definition: Definition, *, dialect: Dialect = "python") -> Written:
    """Write a definition as an eval set: a case for each test case, and the criteria for `test_config.json`.

    A test case whose history is the history, question and expected answer of the one before it is the next turn of
    the same case. The dialect decides the spelling: adk-python reads snake_case only, adk-ts camelCase only.
    """
    losses = list(subject_losses(definition))
    if not definition.test_cases:
        what = "the subject's name, which only cases have; an eval set without cases cannot be read"
        losses.append(Loss("definition", what))
    cases: list[AdkCase] = []
    before: _TurnBuilder | None = None
    for place, case in enumerate(definition.test_cases, 1):
        losses += number_losses(case, place)
        link = _TurnBuilder(case, definition.subject_name, case_name(case, place))
        losses += link.losses
        if before and link.follows(before):
            losses += before.state_losses()
            turns = (*cases[-1].turns, link.turn)
            cases[-1] = replace(cases[-1], turns=turns, final_state=link.final_state)
        else:
            losses += link.history_losses()
            turns = (*link.questions(), link.turn)
            cases.append(AdkCase(f"case-{len(cases) + 1}", turns, link.session, final_state=link.final_state))
        before = link
    config = None
    if any(turn.calls for case in cases for turn in case.turns):
        has_answers = any(turn.reference is not None for case in cases for turn in case.turns)
        config = {"criteria": {**_ANY_ARGUMENTS, **(_ANSWERS if has_answers else {})}}
        what = f"the comparison without arguments, which needs this test_config.json: {orjson.dumps(config).decode()}"
        losses.append(Loss("definition", what))
    content = write_adk_cases(cases, name=definition.name, description=definition.description, dialect=dialect)
    return Written(content, tuple(losses), None if config is None else _pretty(config))


def write_adk_cases(
    cases: Sequence[AdkCase], *, name: str, description: str | None = None, dialect: Dialect = "python"
) -> bytes:
    """Write cases as an eval set in the spelling of a dialect; times are 0, so that equal cases give equal files."""
    about: JsonObject = {} if description is None else {"description": description}
    listed: list[JsonValue] = list(map(_case_json, cases))
    eval_set = {"evalSetId": name, "name": name, **about, "evalCases": listed, "creationTimestamp": 0}
    return _pretty(_respelt(eval_set, _SPELLINGS[dialect]))


def _pretty(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


class _TurnBuilder:
    """A test case that becomes a turn of a conversation."""

    def __init__(self, case: TestCase, subject_name: str, where: str) -> None:
        self._inputs = case.inputs
        self._where = where
        self.losses: list[Loss] = []
        self.final_state: dict[str, JsonValue] = {}
        prompts = "\n".join(f"{prompt.reference_name}: {prompt.value}" for prompt in case.inputs.prompt_inputs)
        self.turn = AdkTurn(case.inputs.utterance or prompts, *self._expected(case.expectations))
        state = {variable.name: variable.value for variable in case.inputs.context_variables}
        if len(state) < len(case.inputs.context_variables):
            self._lose("all but the last context variable of the same name")
        for message in case.inputs.conversation:
            if message.topic is not None:
                self._lose(f"the topic {message.topic!r} of the history")
        for given in case.inputs.prompt_inputs:
            self._lose(f"the input {given.reference_name!r} of a prompt as such; it becomes a part of the question")
        self.session = Session(subject_name, _USER, state)

    def follows(self, before: _TurnBuilder) -> bool:
        """Return whether its history is that of another test case with its question and answer."""
        answer = before.turn.reference
        said = [*_said(before._inputs), ("user", before.turn.utterance), ("agent", answer)]
        return answer is not None and _said(self._inputs) == said and self.session == before.session

    def questions(self) -> Iterator[AdkTurn]:
        """Yield the user's messages of the history as turns without expectations: ADK has no other place for them."""
        for message in self._inputs.conversation:
            if message.role == "user" and message.message:
                yield AdkTurn(message.message)

    def history_losses(self) -> Iterator[Loss]:
        history = self._inputs.conversation
        if any(message.role == "agent" for message in history):
            yield Loss(self._where, "the agent's messages in the history; the user's messages are sent again")
        elif any(message.role == "user" for message in history):
            yield Loss(self._where, "the history as such; its messages are sent as turns")
        for role in dict.fromkeys(message.role for message in history if message.role not in {"user", "agent"}):
            yield Loss(self._where, f"the {role} messages of the history; ADK's agents have their own")

    def state_losses(self) -> Iterator[Loss]:
        """Yield the expected state if another turn follows in the same case."""
        if self.final_state:
            yield Loss(self._where, "the state that is expected; ADK has only that at the end of a case")

    def _expected(self, expectations: Sequence[Expectation]) -> tuple[str | None, tuple[Call, ...] | None]:
        reference: str | None = None
        calls: tuple[Call, ...] | None = None
        for expectation in expectations:
            name, value = canonical_name(expectation.name), expectation.expected_value
            names = parse_actions(value) if name == ACTIONS and value is not None else None
            if name == OUTCOME and value is not None and reference is None:
                reference = value
            elif names is not None and calls is None:
                calls = tuple(Call(action, {}) for action in names)
            elif name == STATE and _add_value(self.final_state, expectation):
                continue
            else:
                shown = expectation.label if name == STATE else expectation.name
                self._lose(f"the expectation {shown!r}, which ADK cannot express")
                continue
            if expectation.name != name:
                self._lose(f"the name {expectation.name!r}; {name!r} means the same")
            if expectation.label is not None:
                self._lose(f"the label {expectation.label!r} of {expectation.name!r}")
        return reference, calls

    def _lose(self, what: str) -> None:
        loss = Loss(self._where, what)
        if loss not in self.losses:
            self.losses.append(loss)


def _add_value(state: dict[str, JsonValue], expectation: Expectation) -> bool:
    """Add the value that a check of the state expects; return whether ADK can hold it: at names, without matchers."""
    value = expectation.terms.get("expected")
    reference = read_reference(state_reference(str(expectation.terms.get("path"))))
    steps = () if isinstance(reference, str) else reference.steps
    names = [step.names[0] for step in steps if isinstance(step, Names) and len(step.names) == 1]
    is_plain = expectation.terms.get("literal") is True or not _has_matcher(value)
    if not names or len(names) < len(steps) or not is_plain:
        return False
    *outer, last = names
    inner: JsonValue = state
    for name in outer:
        inner = inner.setdefault(name, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or inner.get(last, value) != value:
        return False
    inner[last] = deepcopy(value)
    return True


def _has_matcher(value: JsonValue) -> bool:
    if isinstance(value, list):
        return any(map(_has_matcher, value))
    return is_matcher(value) or (isinstance(value, dict) and any(map(_has_matcher, value.values())))


def _said(inputs: Inputs) -> list[tuple[str | None, str | None]]:
    return [(message.role, message.message) for message in inputs.conversation]


def _case_json(case: AdkCase) -> JsonObject:
    turns: list[JsonValue] = [_turn_json(turn) for turn in case.turns]
    eval_case: dict[str, JsonValue] = {"evalId": case.eval_id, "conversation": turns}
    if case.session:
        session = case.session
        eval_case["sessionInput"] = {"appName": session.app_name, "userId": session.user_id, "state": session.state}
    if case.final_state:
        eval_case["finalSessionState"] = case.final_state
    return eval_case


def _turn_json(turn: AdkTurn) -> JsonObject:
    invocation: dict[str, JsonValue] = {"creationTimestamp": 0, "userContent": _content("user", turn.utterance)}
    if turn.reference is not None:
        invocation["finalResponse"] = _content("model", turn.reference)
    # Intermediate data without calls would expect no calls.
    if turn.calls is not None:
        replies: list[JsonValue] = [[reply.author, [{"text": reply.text}]] for reply in turn.replies]
        uses: list[JsonValue] = [call.as_json() for call in turn.calls]
        invocation["intermediateData"] = {"toolUses": uses, "intermediateResponses": replies}
    return invocation


def _content(role: str, text: str) -> JsonObject:
    return {"role": role, "parts": [{"text": text}]}


_SPELLINGS: Final[dict[Dialect, dict[str, str]]] = {
    "python": {name: snake(name) for name in KEYS},
    "typescript": {spelling: name for name in KEYS for spelling in both(name)},
}
_USERS: Final = frozenset(chain.from_iterable(map(both, ("state", "args", "finalSessionState", "partMetadata"))))
_ANSWER_KEYS: Final = frozenset((*both("functionResponse"), *both("toolResponses")))


def respell(data: bytes, *, label: str, name: str, dialect: Dialect) -> Written:
    """Write a file of ADK in the spelling of a dialect; raise FormatError if it cannot be read.

    Only ADK's own keys change in an eval set. A deprecated array becomes an eval set with this name; its ignored keys
    are losses.
    """
    file = read_adk_file(data, label=label)
    if file.dialect is None:
        spelt = _respelt(orjson.loads(data.removeprefix(b"\xef\xbb\xbf")), _SPELLINGS[dialect])
        return Written(_pretty(spelt))
    losses = [Loss(f"line {note.location.line}", note.message) for note in file.notes if note.code != LEGACY]
    for case in file.cases:
        for place, turn in enumerate(case.turns, 1):
            if turn.replies and turn.calls is None:
                what = "its intermediate responses; with them, ADK would expect no tool calls"
                losses.append(Loss(f"turn {place} of {case.eval_id!r}", what))
    return Written(write_adk_cases(file.cases, name=name, dialect=dialect), tuple(losses))


def _respelt(value: JsonValue, spellings: dict[str, str], *, is_answer: bool = False) -> JsonValue:
    """Return a value with other spellings of its keys; the data of the user's tools and sessions does not change."""
    if isinstance(value, list):
        return [_respelt(item, spellings, is_answer=is_answer) for item in value]
    if not isinstance(value, dict):
        return value
    users = _USERS | {"response"} if is_answer else _USERS
    return {
        spellings.get(key) or key: inner if key in users else _respelt(inner, spellings, is_answer=key in _ANSWER_KEYS)
        for key, inner in value.items()
    }
