"""Payloads of `sf agent test run-eval`, read and written: a test is a case, a message a turn, an evaluator a check.

Source: @salesforce/agents, `src/evalNormalizer.ts` (steps and their keys) and `src/yamlSpecTranslator.ts`. An evaluator
belongs to the turn whose answer it reads. Topics are written with `equals`, as orgs compare those of definitions; sf
writes `contains`. References are written in the long form, so that they also work with --no-normalize.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import orjson

from evalmeta.formats.diagnostics import Diagnostics, Loss, Record, Written, case_name, subject_losses
from evalmeta.formats.document import Document
from evalmeta.formats.sources import read_json
from evalmeta.model.definition import ContextVariable, Definition, Expectation, TestCase
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.expectations import ACTIONS, OPERATORS, OUTCOME, TOPIC, canonical_name, parse_actions
from evalmeta.systems.run_eval.evaluators import KNOWN, PREFIX, StepOutput, expectation_of, plain, read_operand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue

    _Step: TypeAlias = dict[str, JsonValue]


_SESSION: Final = "agent.create_session"
_MESSAGE: Final = "agent.send_message"
_STATE: Final = "agent.get_state"
_STEPS: Final = {
    _SESSION: (
        *("agent_id", "agent_version_id", "use_agent_api", "planner_id", "state", "setupSessionContext"),
        "context_variables",
    ),
    _MESSAGE: ("session_id", "utterance"),
    _STATE: ("session_id",),
}
_IGNORED: Final = ("agent.get_plan", "agent.get_plan_v2", "agent.end_session", "general.echo")


class PlannedTest(NamedTuple):
    """A test of a payload."""

    id: str  # its id
    agent_id: str  # the record id of its agent; empty if it names none
    outputs: tuple[StepOutput, ...]  # the steps with an output, in order
    evaluators: dict[str, str]  # the types of its evaluators by their ids, in order


class Payload(NamedTuple):
    """A payload that was read; the tests are the cases of the document, in order."""

    document: Document
    tests: tuple[PlannedTest, ...]


def read_payload(data: bytes, *, label: str, name: str, is_raw: bool = False) -> Payload:
    """Read a payload; with `is_raw`, the sf CLI has normalised it, so that other spellings are not known."""
    file, diagnostics = read_json(data, label=label), Diagnostics(label)
    root = Record(file, (), file.value, diagnostics, called="a payload")
    root.check_keys("tests", "subjectName")
    if not root.items("tests") and root.is_object:
        root.error("run-eval-empty", "a payload needs 'tests' with at least one test")
    records = [*root.records("tests", called="a test")]
    read = [_Test(record, is_raw=is_raw) for record in records]
    names: set[str] = set()
    for record in records:
        if (test_id := record.text("id") or "") and test_id in names:
            record.warn("run-eval-double", f"two tests of the payload have the id {test_id!r}", "id")
        names.add(test_id)
    cases = tuple(test.case(number) for number, test in enumerate(read, 1))
    diagnostics.check()
    evaluation = Evaluation(name, root.text("subjectName") or "", cases)
    lines = dict(enumerate(file.lines_of(("tests",)), 1))
    return Payload(Document(evaluation, notes=diagnostics.notes, lines=lines), tuple(test.plan for test in read))


class _Test:
    """A test, read step by step; every problem is added to the diagnostics."""

    def __init__(self, record: Record, *, is_raw: bool) -> None:
        record.check_keys("id", "name", "steps")
        record.require("steps")
        self._record = record
        self._is_raw = is_raw
        self._utterances: list[str] = []
        self._variables: tuple[ContextVariable, ...] = ()
        self._agent_id = ""
        self._has_session = False
        self._outputs: list[StepOutput] = []
        self._evaluators: list[tuple[Record, str]] = []
        self._ids: set[str] = set()
        for place, value in enumerate(record.items("steps")):
            step = value
            if isinstance(value, dict) and not is_raw:
                step = _corrected(value, place=len(self._evaluators))
            self._read_step(record.at(step, "steps", place, called="a step"))
        if record.has("steps") and not self._utterances:
            record.error("run-eval-empty", f"a test needs a step of the type {_MESSAGE!r}", "steps")

    @property
    def plan(self) -> PlannedTest:
        evaluators = {record.text("id") or "": PREFIX + name for record, name in self._evaluators}
        return PlannedTest(self._name, self._agent_id, tuple(self._outputs), evaluators)

    @property
    def _name(self) -> str:
        return self._record.text("id", "name") or ""

    def case(self, number: int) -> Case:
        expectations: dict[int, list[Expectation]] = {}
        for record, name in self._evaluators:
            turn, expectation = self._expectation(record, name)
            expectations.setdefault(turn, []).append(expectation)
        turns = (Turn(text, tuple(expectations.get(place, ()))) for place, text in enumerate(self._utterances, 1))
        return Case(number, tuple(turns), context_variables=self._variables, label=self._name)

    def _read_step(self, step: Record) -> None:
        kind, name = step.required_text("type"), step.required_text("id")
        if name and name in self._ids:
            step.error("run-eval-double", f"two steps of the test have the id {name!r}", "id")
        self._ids.add(name)
        if kind in KNOWN:
            self._evaluators.append((step, kind.removeprefix(PREFIX)))
            return
        if kind.startswith(PREFIX):
            names = [known.removeprefix(PREFIX) for known in KNOWN]
            hint = step.diagnostics.suggest(kind.removeprefix(PREFIX), names)
            step.error("run-eval-type", f"{kind!r} is not a known evaluator", "type", hint=hint)
            return
        if kind in _STEPS:
            step.check_keys("type", "id", *_STEPS[kind])
        elif kind in _IGNORED:
            step.warn("run-eval-step", f"evalmeta has no step {kind!r}; it is ignored", "type")
        elif kind:
            hint = step.diagnostics.suggest(kind, (*_STEPS, *KNOWN))
            step.error("run-eval-type", f"{kind!r} is not a type of step that evalmeta knows", "type", hint=hint)
        if kind == _SESSION:
            self._read_session(step)
        elif kind == _MESSAGE:
            self._utterances.append(step.required_text("utterance"))
        self._outputs.append(StepOutput(name, kind, len(self._utterances)))

    def _read_session(self, step: Record) -> None:
        if self._has_session:
            step.error("run-eval-session", "a test has two sessions; evalmeta runs a test in one", "type")
        self._has_session = True
        context = step.object("setupSessionContext").get("tags")
        tagged = context.get("botId") if isinstance(context, dict) else None
        self._agent_id = step.text("agent_id") or (tagged if isinstance(tagged, str) else "")
        self._variables = tuple(_variables(step))
        if step.has("state"):
            step.warn("run-eval-state", "evalmeta's agents have no planner state; it is ignored", "state")

    def _expectation(self, step: Record, name: str) -> tuple[int, Expectation]:
        key = "generated_output" if name in _SCORED else "actual"
        reading = read_operand(plain(step.raw(key)), self._outputs, is_raw=self._is_raw)
        if reading.fault:
            step.error("run-eval-reference", reading.fault, key)
        expectation = expectation_of(step, name, reading)
        if "reason" in expectation.terms:
            step.warn("run-eval-unjudged", f"evalmeta cannot judge {name!r}: {expectation.terms['reason']}", "type")
        return reading.turn or len(self._utterances), expectation


def _variables(step: Record) -> Iterator[ContextVariable]:
    if isinstance(step.raw("context_variables"), list):
        for record in step.records("context_variables", called="a context variable"):
            yield ContextVariable(record.required_text("name"), plain(record.raw("value")))
    else:
        for name, text in step.object("context_variables").items():
            yield ContextVariable(name, plain(text))


# The evaluators whose texts are called `generated_output` and `reference_answer`.
_SCORED: Final = ("text_alignment", "hallucination_detection", "citation_recall", "answer_faithfulness")

_AGENT: Final = {
    "agentId": "agent_id",
    "agentVersionId": "agent_version_id",
    "sessionId": "session_id",
    **dict.fromkeys(("text", "message", "input", "prompt", "user_message", "userMessage"), "utterance"),
    "useAgentApi": "use_agent_api",
}
_EVALUATOR: Final = {
    "subject": "actual",
    **dict.fromkeys(("expectedValue", "expected_value"), "expected"),
    **dict.fromkeys(("actualValue", "actual_value"), "actual"),
    **dict.fromkeys(("assertionType", "assertion_type", "comparator"), "operator"),
}
_ASSERTION: Final = {
    **dict.fromkeys(("generated_output", "actual_output", "response"), "actual"),
    **dict.fromkeys(("reference_answer", "expected_output", "ground_truth"), "expected"),
}
_SCORING: Final = {
    **dict.fromkeys(("actual", "actual_output", "response"), "generated_output"),
    **dict.fromkeys(("expected", "expected_output", "ground_truth"), "reference_answer"),
}
_ASSERTIONS: Final = ("string_assertion", "json_assertion")


def _corrected(step: JsonObject, *, place: int) -> JsonObject:
    """Return a step with the keys that the sf CLI sends; `place` counts evaluators, for a missing id."""
    kind = step.get("type")
    if kind == "evaluator" and isinstance(step.get("evaluator_type"), str):
        step = _long_form(step, place)
        kind = step["type"]
    if not isinstance(kind, str):
        return step
    family, _, name = kind.partition(".")
    if family == "agent":
        return _renamed(step, _AGENT)
    if family != "evaluator":
        return step
    step = _renamed(step, _EVALUATOR)
    names = _SCORING if name in _SCORED else _ASSERTION if name in _ASSERTIONS else {}
    return _renamed(step, names)


def _long_form(step: JsonObject, place: int) -> JsonObject:
    """Return `{"type": "evaluator", "evaluator_type": NAME, "field": "STEP.PATH"}` with the keys of other steps."""
    renamed = {key: value for key, value in step.items() if key not in {"evaluator_type", "field"}}
    renamed["type"] = f"evaluator.{step['evaluator_type']}"
    field: JsonValue = step.get("field")
    if isinstance(field, str):
        renamed.setdefault("actual", f"{{{field}}}" if "." in field else field)
    if not renamed.get("id"):
        renamed["id"] = f"eval_{place}"
    return renamed


def _renamed(step: JsonObject, names: Mapping[str, str]) -> JsonObject:
    renamed = dict(step)
    for other, name in names.items():
        if other in renamed and name not in renamed:
            renamed[name] = renamed.pop(other)
    return renamed


_SESSION_ID: Final = "$.outputs[0].session_id"
_RATING_THRESHOLD: Final = 3.0
_COMPARISONS: Final = {"string_comparison": "string_assertion", "numeric_comparison": "numeric_assertion"}
_STEP_IDS: Final = ("cs", "sm", "gs")
# Others, such as labels with blanks, could not be used in references.
_ID: Final = re.compile(r"(?!history_|check_)[A-Za-z][\w-]{0,79}", re.ASCII)
_LATENCY: Final = "output_latency_milliseconds"
_GENERATED: Final = "$.generatedData."
_STATE_PATHS: Final = {"topic": "topic", "invokedActions": "invokedActions", "actionsSequence": "invokedActions"}


def write_run_eval(definition: Definition) -> Written:
    """Write a definition as a payload; sf ignores the name of the agent, and takes that of `--api-name`."""
    losses = [*subject_losses(definition)]
    tests: list[JsonValue] = [
        _WrittenTest(case, case_name(case, place), losses).payload(f"{definition.name}_case_{case.number or place}")
        for place, case in enumerate(definition.test_cases, 1)
    ]
    payload = {"tests": tests, "subjectName": definition.subject_name}
    content = orjson.dumps(payload, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return Written(content, tuple(dict.fromkeys(losses)))


class _WrittenTest:
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
            steps.append({"type": _STATE, "id": "gs", "session_id": _SESSION_ID})
        return {"id": name, "steps": [*steps, *evaluators]}

    def _earlier(self) -> Iterator[str]:
        for message in self._case.inputs.conversation:
            if message.role == "user" and message.message:
                yield message.message
            elif message.role == "agent":
                self._lose("the agent's answers in the history; run-eval asks the earlier questions again")

    def _session(self) -> _Step:
        session: _Step = {"type": _SESSION, "id": "cs", "use_agent_api": True}
        if variables := {variable.name: variable.value for variable in self._case.inputs.context_variables}:
            session["context_variables"] = {**variables}
        if self._case.inputs.prompt_inputs:
            self._lose("its prompt inputs; run-eval tests agents")
        return session

    def _messages(self) -> Iterator[_Step]:
        for place, text in enumerate(self._asked, 1):
            name = "sm" if place == len(self._asked) else f"history_{place - 1}"
            yield {"type": _MESSAGE, "id": name, "session_id": _SESSION_ID, "utterance": text}

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
        if name in _COMPARISONS:
            return self._assertion(expectation, _COMPARISONS[name])
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
            return _SESSION_ID
        member = next(
            (name for name in _STATE_PATHS if path == name or path.startswith((f"{name}.", f"{name}["))), None
        )
        if member is None:
            return None
        return f"{self._at(_STATE_PATHS[member])['actual']}{path.removeprefix(member)}"

    def _lose(self, what: str) -> None:
        self._losses.append(Loss(self._where, what))


def _number(text: str) -> JsonValue:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
