"""Definitions written as payloads of `sf agent test run-eval`, with a list of losses.

Source: @salesforce/agents, `src/yamlSpecTranslator.ts`. Topics are compared with `equals`, as orgs compare those of
definitions; sf writes `contains`. References have the long form, so that they also work with --no-normalize.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from evalmeta.formats.diagnostics import Loss, Written, case_name, subject_losses
from evalmeta.model.expectations import ACTIONS, OPERATORS, OUTCOME, TOPIC, canonical_name, parse_actions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.definition import Definition, Expectation, TestCase
    from evalmeta.model.json_value import JsonValue

    _Step: TypeAlias = dict[str, JsonValue]


_SESSION: Final = "$.outputs[0].session_id"
_RATING_THRESHOLD: Final = 3.0
_ASSERTIONS: Final = {"string_comparison": "string_assertion", "numeric_comparison": "numeric_assertion"}
_STEP_IDS: Final = ("cs", "sm", "gs")
# Others, such as labels with blanks, could not be used in references.
_ID: Final = re.compile(r"(?!history_|check_)[A-Za-z][\w-]{0,79}", re.ASCII)
_LATENCY: Final = "output_latency_milliseconds"
_GENERATED: Final = "$.generatedData."
_STATE: Final = {"topic": "topic", "invokedActions": "invokedActions", "actionsSequence": "invokedActions"}


def write_run_eval(definition: Definition) -> Written:
    """Write a definition as a payload; sf ignores the name of the agent, and takes that of `--api-name`."""
    losses = [*subject_losses(definition)]
    tests: list[JsonValue] = [
        _Test(case, case_name(case, place), losses).payload(f"{definition.name}_case_{case.number or place}")
        for place, case in enumerate(definition.test_cases, 1)
    ]
    payload = {"tests": tests, "subjectName": definition.subject_name}
    content = orjson.dumps(payload, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return Written(content, tuple(dict.fromkeys(losses)))


class _Test:
    """The steps of one test; what they cannot hold is added to the losses."""

    def __init__(self, case: TestCase, where: str, losses: list[Loss]) -> None:
        self._case = case
        self._where = where
        self._losses = losses
        self._asked = [*self._earlier(), case.inputs.utterance]
        # The places of the last answer and of the state among the outputs, of which the session is the first.
        self._answer, self._state = f"$.outputs[{len(self._asked)}].response", len(self._asked) + 1

    def payload(self, name: str) -> _Step:
        evaluators = list(self._evaluators())
        steps = [self._session(), *self._messages()]
        if any(f"outputs[{self._state}]" in str(evaluator.get("actual")) for evaluator in evaluators):
            steps.append({"type": "agent.get_state", "id": "gs", "session_id": _SESSION})
        return {"id": name, "steps": [*steps, *evaluators]}

    def _earlier(self) -> Iterator[str]:
        for message in self._case.inputs.conversation_history:
            if message.role == "user" and message.message:
                yield message.message
            elif message.role == "agent":
                self._lose("the agent's answers in the history; run-eval asks the earlier questions again")

    def _session(self) -> _Step:
        session: _Step = {"type": "agent.create_session", "id": "cs", "use_agent_api": True}
        if variables := {variable.name: variable.value for variable in self._case.inputs.context_variables}:
            session["context_variables"] = {**variables}
        if self._case.inputs.prompt_inputs:
            self._lose("its prompt inputs; run-eval tests agents")
        return session

    def _messages(self) -> Iterator[_Step]:
        for place, text in enumerate(self._asked, 1):
            name = "sm" if place == len(self._asked) else f"history_{place - 1}"
            yield {"type": "agent.send_message", "id": name, "session_id": _SESSION, "utterance": text}

    def _evaluators(self) -> Iterator[_Step]:
        used = set(_STEP_IDS)
        for place, expectation in enumerate(self._case.expectations, 1):
            if fields := self._evaluator(expectation):
                label = expectation.label or f"check_{place}"
                name = label if _ID.fullmatch(label) and label not in used else f"check_{place}"
                if expectation.label not in {None, name}:
                    self._lose(f"the label {expectation.label!r:.80} of {expectation.name!r}")
                used.add(name)
                yield {"type": f"evaluator.{fields.pop('type')}", "id": name, **fields}

    def _evaluator(self, expectation: Expectation) -> _Step | None:
        name, value = canonical_name(expectation.name), expectation.expected_value
        if name in _ASSERTIONS:
            return self._assertion(expectation, _ASSERTIONS[name])
        if expectation.is_custom or value is None or name not in {TOPIC, ACTIONS, OUTCOME, _LATENCY}:
            self._lose(f"the expectation {expectation.name!r}, for which run-eval has no evaluator")
            return None
        if name == ACTIONS:
            return self._actions(value)
        if name == TOPIC:
            return {"type": "planner_topic_assertion", "operator": "equals", "expected": value, **self._at("topic")}
        if name == OUTCOME:
            texts: _Step = {"utterance": self._asked[-1], "expected": value, "actual": self._answer}
            return {"type": "bot_response_rating", **texts, "threshold": _RATING_THRESHOLD}
        compared: _Step = {"operator": "less_than_or_equal", "expected": _number(value)}
        return {"type": "numeric_assertion", **compared, **self._at("latency")}

    def _actions(self, value: str) -> _Step | None:
        names = parse_actions(value)
        if not names:
            what = "an empty list of actions" if names == () else f"the actions {value!r:.60}, which are not a list"
            self._lose(f"{what}; run-eval cannot expect that no action is taken")
            return None
        self._lose("actions: Salesforce's run-eval has been seen to fail every planner_actions_assertion")
        assertion: _Step = {"operator": "includes_items", "expected": [*names], **self._at("invokedActions")}
        return {"type": "planner_actions_assertion", **assertion}

    def _assertion(self, expectation: Expectation, kind: str) -> _Step | None:
        values = {parameter.name: parameter.value for parameter in expectation.parameters}
        expected = values.get("expected", "")
        if expected.strip().startswith(_GENERATED):
            what = f"the {expectation.name} with {expected.strip()!r:.80}"
            self._lose(f"{what}; run-eval compares only with a value, not with another part of the answer")
            return None
        actual = values.get("actual", "").strip()
        path = self._path(actual.removeprefix(_GENERATED)) if actual.startswith(_GENERATED) else actual
        if path is None:
            self._lose(f"the {expectation.name} of {actual!r:.80}, which run-eval does not report")
            return None
        operator = values.get("operator", "").strip()
        known = operator if operator in OPERATORS[canonical_name(expectation.name)] else operator.lower()
        return {"type": kind, "operator": known, "actual": path, "expected": expected}

    def _at(self, member: str) -> _Step:
        return {"actual": f"$.outputs[{self._state}].response.planner_response.lastExecution.{member}"}

    def _path(self, path: str) -> str | None:
        """Return the reference to what a path of generatedData reads; None if run-eval does not report it."""
        if path in {"outcome", "generatedResponse"}:
            return self._answer
        if path == "sessionId":
            return _SESSION
        member = next((name for name in _STATE if path == name or path.startswith((f"{name}.", f"{name}["))), None)
        if member is None:
            return None
        return f"{self._at(_STATE[member])['actual']}{path.removeprefix(member)}"

    def _lose(self, what: str) -> None:
        self._losses.append(Loss(self._where, what))


def _number(text: str) -> JsonValue:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
