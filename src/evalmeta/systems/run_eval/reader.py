"""Payloads of `sf agent test run-eval` as evaluations: a test is a case, a message a turn, an evaluator an expectation.

Source: @salesforce/agents, `src/evalNormalizer.ts` (steps and their keys). An evaluator belongs to the turn whose
answer it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.formats.diagnostics import Diagnostics, Record
from evalmeta.formats.document import Document
from evalmeta.formats.sources import read_json
from evalmeta.model.definition import ContextVariable, Expectation
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.systems.run_eval.evaluators import KNOWN, PREFIX, StepOutput, expectation_of, plain, read_operand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue


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
